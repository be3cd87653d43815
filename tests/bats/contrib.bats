#!/usr/bin/env bats
# What pinfold gives to other programs: contrib/ and `make install`. Docker and containerd are tried with these files in
# tests/engines, podman in podman.bats.
load helpers

setup() {
    WORK=$(mktemp -d "$BATS_RUN_TMPDIR/t.XXXXXX")
    TOP=$(readlink -f "$PINFOLD_TESTS/..")
    PINFOLD=$(readlink -f "$PINFOLD")
}

@test "make install puts the program, its helpers, podman's drop-in, logrotate's and the shells' files in their places" {
    build=$(dirname "$PINFOLD")
    [ -e "$build/Makefile" ] || skip "the runtime is in no build tree"
    (cd "$build" && make -s install DESTDIR="$WORK/root" prefix=/opt/pinfold) >"$WORK/out" 2>&1 || { cat "$WORK/out" >&2; false; }
    place=$WORK/root/opt/pinfold
    [ -x "$place/bin/pinfold" ]
    is "$(stat -c %a "$place/libexec/pinfold/pinfold-policy-generate")" 755
    for file in /share/bash-completion/completions/pinfold /share/zsh/site-functions/_pinfold /share/doc/pinfold/contrib/docker/daemon.json; do
        is "$(stat -c %a "$place$file")" 644
    done
    etc=$(dirname "$(dirname "$(find "$WORK/root" -name logrotate.d)")")/etc
    contains "$(cat "$etc/containers/containers.conf.d/pinfold.conf")" 'pinfold-npm = ["/opt/pinfold/bin/pinfold-npm"'
    lacks "$(cat "$place/share/doc/pinfold/contrib/docker/daemon.json")" /usr/local/
    hook=$(jq -r .hook.path "$place/share/containers/oci/hooks.d/pinfold-egress.json")
    is "$hook" /opt/pinfold/libexec/oci/hooks.d/pinfold-egress-hook
    [ -x "$WORK/root$hook" ]
    # installed, it finds its helper in libexec
    run "$place/bin/pinfold" policy generate npm --registry http://127.0.0.1:1/
    ended 0 '{host: "127.0.0.1", ports: [1], private: true}'
    (cd "$build" && make -s uninstall DESTDIR="$WORK/root" prefix=/opt/pinfold) >/dev/null
    is "$(find "$WORK/root" -type f)" ''
}

@test "bash completes commands, options, subcommands and managers from the program itself" {
    mkdir "$WORK/state"
    complete() { # WORD...
        bash -c '. "$0"; PATH='"$(dirname "$PINFOLD")"':$PATH; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pinfold; echo "${COMPREPLY[*]}"' \
            <(grep -v '^complete' "$TOP/contrib/completions/pinfold.bash") "$@"
    }
    words=" $(complete "$PINFOLD" '') "
    for command in $("$PINFOLD" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p') --policy; do
        contains "$words" " $command "
    done
    contains " $words" " sandbox "
    is "$(complete "$PINFOLD" feat)" features
    is "$(complete "$PINFOLD" --root /x run --bun)" --bundle
    is "$(complete "$PINFOLD" policy gen)" generate
    is "$(complete "$PINFOLD" policy generate ma)" maven
    is "$(complete "$PINFOLD" policy generate npm --reg)" --registry
}

@test "zsh takes its completion file" {
    command -v zsh >/dev/null || skip "zsh is not installed"
    zsh -n "$TOP/contrib/completions/_pinfold"
}

@test "logrotate takes its file, keeps what it says, and makes no new one" {
    command -v logrotate >/dev/null || skip "logrotate is not installed"
    mkdir "$WORK/log"
    sed "s|/var/log/pinfold|$WORK/log|" "$TOP/contrib/logrotate/pinfold" >"$WORK/rotate"
    chmod 644 "$WORK/rotate"
    echo '{}' >"$WORK/log/a.jsonl"
    for round in 1 2; do
        run logrotate -s "$WORK/rotated" -f "$WORK/rotate"
        ended 0
        is "$(ls "$WORK/log")" a.jsonl.1
    done
}

@test "CRI-O's, containerd's and podman's files are TOML, Docker's is JSON; handlers, links and policies agree" {
    python3 -c 'import tomllib' 2>/dev/null || skip "python3 has no tomllib"
    run python3 - "$TOP/contrib" <<-'END'
	import json, sys, tomllib
	def load(name):
	    with open(f"{sys.argv[1]}/{name}", "rb") as file:
	        return tomllib.load(file)
	crio = load("crio/pinfold.conf")["crio"]["runtime"]["runtimes"]
	containerd = load("containerd/pinfold.toml")["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]
	engine = load("containers/pinfold.conf")["engine"]
	with open(f"{sys.argv[1]}/docker/daemon.json") as file:
	    docker = json.load(file)["runtimes"]
	for name, runtime in engine["runtimes"].items():
	    assert runtime == [f"/usr/local/bin/{name}", f"/usr/bin/{name}"], name
	    assert name in engine["runtime_supports_json"] and name in engine["runtime_supports_nocgroup"], name
	assert engine["runtime_supports_nocgroup"] == engine["runtime_supports_nocgroups"]
	for name, runtime in crio.items():
	    assert runtime["runtime_path"] == f"/usr/local/bin/{name}" and name in engine["runtimes"], name
	for name, runtime in containerd.items():
	    assert runtime["options"]["BinaryName"] == f"/usr/local/bin/{name}", name
	    assert runtime["runtime_type"] == "io.containerd.runc.v2"
	assert containerd["pinfold"]["pod_annotations"] == containerd["pinfold"]["container_annotations"] == ["dev.pinfold.*"]
	for name, runtime in docker.items():
	    wanted = [f"--policy={name.removeprefix('pinfold-')}"] if name != "pinfold" else None
	    assert runtime["path"] == "/usr/local/bin/pinfold" and runtime.get("runtimeArgs") == wanted, name
	print("all read")
	END
    ended 0 "all read"
}
