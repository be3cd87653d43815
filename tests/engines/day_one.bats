#!/usr/bin/env bats
# Day one: what a new user does first with an agent's image, in podman, under the agent policy. Each of it works, or is
# denied with a record whose remedy, applied as it stands, makes it work.

load engine.bash

bats_require_minimum_version 1.5.0

DAY=localhost/day-one:1

setup_file() {
    engine_begin podman conmon jq dpkg-deb apt-cache git gcc python3 curl
    podman_begin
    contents
    "$ENGINES/host-image" base-files base-passwd bash dash mawk coreutils diffutils libc-bin dpkg apt git gcc libc6-dev python3 python3-pip util-linux sed grep findutils tar gzip \
        nodejs >"$HOUSE/day.tar"
    tar -C "$HOUSE/extra" -r -f "$HOUSE/day.tar" app day
    # Debian's packages compile Python's modules when they are installed, which nobody did here: they are not written either.
    podman import -q -c 'ENV PYTHONDONTWRITEBYTECODE=1' -c 'USER agent' -c 'WORKDIR /app' -c 'ENV PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin' -c 'CMD ["python3", "agent.py"]' \
        "$HOUSE/day.tar" "$DAY"
    rm "$HOUSE/day.tar"
    project
}
teardown_file() {
    engine_end
}

# The agent's own files, in /app, and what is installed, in /day.
contents() {
    local extra=$HOUSE/extra
    mkdir -p "$extra/app" "$extra/day/deb/DEBIAN" "$extra/day/deb/usr/bin" "$extra/day/npm/package" "$extra/day/wheels"
    echo 'print("hello from the agent")' >"$extra/app/agent.py"
    chown -R 1000:1000 "$extra/app"

    printf 'Package: day-one\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: a test\n' \
        >"$extra/day/deb/DEBIAN/control"
    printf '#!/bin/sh\ntouch /etc/day-one.conf\nchown nobody /etc/day-one.conf\n' >"$extra/day/deb/DEBIAN/postinst"
    printf '#!/bin/sh\necho installed by dpkg\n' >"$extra/day/deb/usr/bin/day-one"
    chmod 755 "$extra/day/deb/DEBIAN/postinst" "$extra/day/deb/usr/bin/day-one"
    dpkg-deb --root-owner-group -b "$extra/day/deb" "$extra/day/day-one.deb" >/dev/null

    echo '{"name": "day-one", "version": "1.0.0", "main": "index.js", "scripts": {"postinstall": "echo built > built.txt"}}' \
        >"$extra/day/npm/package/package.json"
    echo 'module.exports = "installed by npm"' >"$extra/day/npm/package/index.js"
    tar -C "$extra/day/npm" -czf "$extra/day/day-one-1.0.0.tgz" package
    mkdir -p "$HOUSE/registries/npm" "$HOUSE/registries/pip"
    cp "$extra/day/day-one-1.0.0.tgz" "$HOUSE/registries/npm/"

    python3 - "$extra/day/wheels/day_one-1.0-py3-none-any.whl" <<-'END'
	import sys, zipfile
	with zipfile.ZipFile(sys.argv[1], "w") as wheel:
	    wheel.writestr("day_one.py", 'WORD = "installed by pip"\ndef main():\n    print(WORD)\n')
	    wheel.writestr("day_one-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: day-one\nVersion: 1.0\n")
	    wheel.writestr("day_one-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
	    wheel.writestr("day_one-1.0.dist-info/entry_points.txt", "[console_scripts]\nday-one = day_one:main\n")
	    wheel.writestr("day_one-1.0.dist-info/RECORD", "day_one.py,,\nday_one-1.0.dist-info/METADATA,,\nday_one-1.0.dist-info/WHEEL,,\n"
	        "day_one-1.0.dist-info/entry_points.txt,,\nday_one-1.0.dist-info/RECORD,,\n")
	END
    cp "$extra/day/wheels"/*.whl "$HOUSE/registries/pip/"
}

# A project of the user's, a git repository with C code.
project() {
    mkdir "$HOUSE/project"
    printf '#include <stdio.h>\nint main(void) { puts("built by gcc"); }\n' >"$HOUSE/project/main.c"
    git -C "$HOUSE/project" init -q
    git -C "$HOUSE/project" -c user.name=u -c user.email=u@example.org -c commit.gpgsign=false commit -q --allow-empty -m first
    chown -R 1000:1000 "$HOUSE/project"
}

day() { # [PODMAN-OPTION...] -- COMMAND...: as a new user writes it
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    podman run --rm "${options[@]}" "$DAY" "$@"
}
# The reasons and remedies of the test's denials, without the capabilities that podman gives and nobody has.
denials() {
    cat "$HOUSE"/log/*.jsonl | jq -r 'select(.action_id == 2 and .status_detail != "capability.dropped") | "\(.status_detail) \(.unmapped.remedy // "")"' | sort -u
}
setup() {
    rm -f "$HOUSE"/log/*
}

@test "the image's own command runs, as its user, in its working directory" {
    run day --
    ended 0 "hello from the agent"
}

@test "an agent edits its own files in WORKDIR, makes new ones, and runs its code" {
    run day -- bash -c 'id -un; pwd; sed -i s/hello/changed/ agent.py && echo x >new && mkdir d && mv new d/ && python3 agent.py'
    ended 0
    is "$output" $'agent\n/app\nchanged from the agent'
    is "$(denials)" ''
}

@test "git: a commit, a branch and a merge in a mounted project" {
    run day -v "$HOUSE/project:/project" -w /project -- bash -ec '
        git config --global user.name agent; git config --global user.email agent@example.org
        echo "by the agent" >notes; git add notes; git commit -qm second
        git checkout -qb topic; echo more >>notes; git commit -qam third; git checkout -q -; git merge -q topic; git log --format=%s'
    ended 0
    is "$output" $'third\nsecond\nfirst'
    is "$(git -c safe.directory="*" -C "$HOUSE/project" log -1 --format=%an)" agent
    is "$(denials)" ''
}

@test "git: a worktree beside its repository" {
    run day -v "$HOUSE/project:/project" -w /project -- bash -ec '
        git worktree add -q /tmp/tree -b side; cd /tmp/tree; echo x >side
        git add side; git -c user.name=a -c user.email=a@example.org commit -qm side; git -C /project log -1 --format=%s side'
    ended 0
    is "$output" side
    is "$(denials)" ''
}

@test "gcc builds in the mounted project, in the agent's directory and in /tmp" {
    for directory in /project /app; do
        run day -v "$HOUSE/project:/project" -w "$directory" -- bash -ec 'for place in . /tmp; do gcc -O2 -o $place/prog /project/main.c; $place/prog; done'
        ended 0
        is "$output" $'built by gcc\nbuilt by gcc'
    done
    is "$(denials)" ''
}

@test "an entrypoint as root that prepares its directory and goes on as the user" {
    run day --user 0 -- bash -ec 'chown -R agent:agent /app /run; exec setpriv --reuid agent --regid agent --init-groups -- bash -ec "id -un; touch /app/x; python3 agent.py"'
    ended 0
    is "$output" $'agent\nhello from the agent'
    is "$(denials)" ''
}

@test "a service that listens on localhost is reached there, with any network of podman's" {
    for network in none podman; do
        run day --network "$network" -- python3 -c '
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen("http://localhost:%d/agent.py" % server.server_port).read().decode(), end="")'
        ended 0
        contains "$output" 'print("hello from the agent")'
    done
    is "$(denials)" ''
}

@test "pip installs from a local directory into the user's home" {
    run day -- bash -ec 'python3 -m pip install -q --no-index --find-links /day/wheels --user --break-system-packages day-one
        python3 -c "import day_one; day_one.main()"; ~/.local/bin/day-one'
    ended 0
    contains "$output" $'installed by pip\ninstalled by pip'
    is "$(denials)" ''
}

@test "npm installs a local package into the project, and runs its script" {
    [ -d /usr/lib/node_modules/npm ] || skip "no npm of Debian's nodejs"
    run day -- bash -ec 'npm init -y >/dev/null; npm install --offline --no-audit --no-fund /day/day-one-1.0.0.tgz >/dev/null
        node -p "require(\"day-one\")"; cat node_modules/day-one/built.txt'
    ended 0
    contains "$output" $'installed by npm\nbuilt'
    is "$(denials | grep -v '^dns.name.not_allowed ')" '' # npm looks for a newer npm, whatever it is told
}

@test "apt-get install of a local package is denied under the agent policy, and says what would allow it" {
    run day --user 0 -- apt-get install -y -q /day/day-one.deb
    [ "$status" != 0 ]
    contains "$output" "Read-only file system"
    contains "$(denials)" 'fs.write.read_only filesystem: {writable:'
}

@test "apt-get install of a local package works under the preset build, its script included" {
    cp "$PINFOLD_TESTS/../policies/build.yaml" "$HOUSE/etc/build.yaml"
    FLAGS=policy=$HOUSE/etc/build.yaml run day --user 0 -- bash -ec 'apt-get install -y -q /day/day-one.deb && day-one && stat -c %U /etc/day-one.conf'
    ended 0 $'installed by dpkg\nnobody'
    # dpkg removes what it may have left beside each directory that a package names, /usr among them.
    is "$(denials | grep -v '"/usr.dpkg-tmp"')" ''
}

# -- registries on this machine ------------------------------------------------------------------------------------

# registry.test and pypi.test, on the host's side of podman's bridge.
registries() {
    [ -e "$HOUSE/registries/pid" ] || {
        inside python3 "$ENGINES/registries.py" "$HOUSE/registries" 80 >/dev/null 2>&1 3>&- &
        echo $! >"$HOUSE/registries/pid"
    }
    until inside curl -so /dev/null http://127.0.0.1/; do sleep 0.1; done
    : >"$HOUSE/registries/requests"
}

# The remedy of the last denial that kept a program from this name or address, as a policy. (npm also looks for a newer npm, in
# a registry of its own choice, whatever it is told: its denial is none of ours.)
remedy_policy() { # WORDS-OF-THE-MESSAGE
    { echo "version: 1"; cat "$HOUSE"/log/*.jsonl | jq -rs --arg words "$1" \
        '[.[] | select(.action_id == 2 and (.message | contains($words))) | .unmapped.remedy // empty] | last'; } >"$HOUSE/etc/remedy.yaml"
}

# Denied at first; then with the line that the denial's record gives, as it stands, and no other.
by_remedy() { # NAME WORDS COMMAND: the words that COMMAND prints when it works
    local name=$1 words=$2 options=(--add-host "$1:10.88.0.1" -v "$HOUSE/project:/project" -w /project)
    registries
    run day "${options[@]}" -- bash -ec "$3"
    [ "$status" != 0 ]
    is "$(cat "$HOUSE/registries/requests")" ''
    remedy_policy "10.88.0.1:80 "
    FLAGS=policy=$HOUSE/etc/remedy.yaml run day "${options[@]}" -- bash -ec "$3"
    ended 0
    contains "$output" "$words"
    contains "$(cat "$HOUSE/registries/requests")" "$name /"
}

@test "npm installs from a registry on this machine, by the remedy of the denial" {
    [ -d /usr/lib/node_modules/npm ] || skip "no npm of Debian's nodejs"
    by_remedy registry.test $'installed by npm\nbuilt' 'rm -rf node_modules; npm init -y >/dev/null
        npm install --registry http://registry.test/ --fetch-retries 0 --no-audit --no-fund --no-update-notifier day-one >/dev/null
        node -p "require(\"day-one\")"; cat node_modules/day-one/built.txt'
}

@test "pip installs from an index on this machine, by the remedy of the denial" {
    by_remedy pypi.test $'installed by pip\ninstalled by pip' 'python3 -m pip install -q --retries 0 --timeout 5 --index-url http://pypi.test/simple --trusted-host pypi.test \
            --user --break-system-packages day-one
        python3 -c "import day_one; day_one.main()"; ~/.local/bin/day-one'
}

@test "a name that podman was given an address for is allowed by its name, at that address, and held to that name" {
    registries
    printf 'version: 1\nnetwork: {allowed_hosts: [registry.test, pypi.test]}\n' >"$HOUSE/etc/names.yaml"
    FLAGS=policy=$HOUSE/etc/names.yaml run day --add-host registry.test:10.88.0.1 --add-host pypi.test:10.88.0.1 --add-host other.test:10.88.0.1 -- bash -c '
        get() { python3 - "$@" <<-END
			import sys, urllib.request
			try:
			    request = urllib.request.Request(sys.argv[1], headers={"Host": sys.argv[2]} if sys.argv[2:] else {})
			    print(urllib.request.urlopen(request, timeout=10).status)
			except urllib.error.HTTPError as error:
			    print(error.code)
			except OSError as error:
			    print(error)
		END
        }
        get http://registry.test/day-one; get http://pypi.test/simple/day-one/
        get http://other.test/; get http://registry.test/ other.test; get http://registry.test:8080/'
    ended 0
    is "$output" $'200\n200\n403\n403\n<urlopen error [Errno 111] Connection refused>'
    is "$(cut -d' ' -f1 "$HOUSE/registries/requests" | tr '\n' ' ')" 'registry.test pypi.test '
    is "$(denials | cut -d' ' -f1 | tr '\n' ' ')" 'net.address.private net.http.host_mismatch '
}
