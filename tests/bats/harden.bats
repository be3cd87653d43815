#!/usr/bin/env bats
# What the default policy, agent, does to a container (docs/security.md). Each test looks from inside the container, and
# then at the record.
load helpers

setup() {
    setup_container
    POLICY=''
}
teardown() { teardown_container; }

bind() { # SOURCE DESTINATION OPTION...
    local source=$1 destination=$2
    shift 2
    jq --arg source "$source" --arg destination "$destination" '.mounts += [{destination: $destination, type: "bind", source: $source, options: $ARGS.positional}]' \
        "$BUNDLE/config.json" --args "$@" >"$BUNDLE/config.json.new" && mv "$BUNDLE/config.json.new" "$BUNDLE/config.json"
}
refused() { # REASON PART
    run pf_run
    ended 1 "$1"
    contains "$output" "$2"
    run pf state "$ID"
    ended 1 "does not exist"
}

# -- root ---------------------------------------------------------------------------------------------------------

@test "root: read-only, whatever config.json says; the attempt is recorded" {
    configure '.root.readonly = false'
    script_is 'echo x > /etc/passwd'
    run pf_run
    [ "$status" != 0 ]
    contains "$output" "Read-only file system"
    is "$(grep -c x: "$ROOT/etc/passwd")" "$(grep -c x: "$BATS_RUN_TMPDIR/root-template/etc/passwd")"
    has_record fs.write.read_only '.file.path == "/etc/passwd"'
    is "$(records '.status_detail == "fs.write.read_only"' | jq -r '"\(.class_uid) \(.action_id) \(.activity_id)"' | sort -u | head -n 1)" "1001 2 3"
}

@test "root: every kind of change is refused" {
    script_is 'for change in "touch /new" "mkdir /newdir" "rm /etc/group" "mv /etc/group /etc/g" "ln -s a /link" "ln /etc/group /hard" "chmod 777 /etc/group" "chown 1 /etc/group" "mknod /dev2 p"; do
        $change 2>/dev/null && echo "worked: $change"; done; exit 0'
    run pf_run
    ended 0
    is "$output" ""
}

@test "scratch: /tmp, /var/tmp, /run and the home are writable, private and gone afterwards" {
    configure '.process.env += ["HOME=/root"]'
    echo kept >"$ROOT/tmp/kept"
    script_is 'for d in /tmp /var/tmp /run /root; do echo x > $d/new && echo $d; done; cat /tmp/kept'
    run pf_run
    is "$(xargs <<<"$output")" "/tmp /var/tmp /run /root kept"
    [ ! -e "$ROOT/tmp/new" ]
    [ ! -e "$ROOT/root/new" ]
}

@test "a writable bind mount of the engine's stays writable" {
    mkdir "$WORK/project"
    bind "$WORK/project" /workspace rbind rw
    script_is 'echo x > /workspace/result'
    run pf_run
    ended 0
    is "$(cat "$WORK/project/result")" x
}

# -- credentials --------------------------------------------------------------------------------------------------

@test "environment: secrets are removed by name and by shape, look-alikes stay" {
    configure '.process.env += ["GITHUB_TOKEN=fake1", "OPENAI_API_KEY=fake2", "DB_PASSWORD=fake3", "aws_secret_access_key=fake4",
      "INNOCENT=ghp_0123456789012345678901234567890123456", "AWS_REGION=eu", "GPG_KEY=E3FF2839", "MAX_THINKING_TOKENS=5", "EDITOR=vi"]'
    command_is env
    run pf_run
    for name in GITHUB_TOKEN OPENAI_API_KEY DB_PASSWORD aws_secret_access_key INNOCENT; do lacks "$output" "$name="; done
    for word in AWS_REGION=eu GPG_KEY=E3FF2839 MAX_THINKING_TOKENS=5 EDITOR=vi PATH=; do contains "$output" "$word"; done
    has_record credential.env.removed '.message | contains("GITHUB_TOKEN")'
}

@test "environment: loader variables stay, and are removed where processes.loader_variables is false; in exec too" {
    configure '.process.env += ["LD_LIBRARY_PATH=/opt/lib", "NODE_OPTIONS=--require=/x", "GIT_SSH_COMMAND=sh /x", "BASH_FUNC_ls%%=() { :; }",
        "ENV=production", "LDFLAGS=-g", "PYTHONPATH=/a", "PYTHONUNBUFFERED=1"]'
    command_is env
    POLICY=agent run pf_run
    contains "$output" LD_LIBRARY_PATH=/opt/lib
    contains "$output" "NODE_OPTIONS=--require=/x"
    printf '%s\n' 'version: 1' 'processes: {loader_variables: false}' 'credentials: {environment: [PYTHONPATH]}' >"$WORK/policy.yaml"
    POLICY=$WORK/policy.yaml ID=$ID-without LOG=$LOGS/$ID.jsonl
    run pf_run
    for each in LD_LIBRARY NODE_OPTIONS GIT_SSH BASH_FUNC; do lacks "$output" $each; done
    for each in ENV=production LDFLAGS=-g PYTHONPATH=/a PYTHONUNBUFFERED=1; do contains "$output" $each; done
    has_record credential.env.removed '.message | contains("LD_LIBRARY_PATH was removed: it makes programs load or run other code")'
    has_record credential.env.removed '.firewall_rule.name == "processes.loader_variables: false" and (.unmapped.remedy | contains("NODE_OPTIONS"))'
    configure '.process.env = ["PATH=/bin:/usr/bin"]'
    start_sleeper
    run pf exec --env LD_PRELOAD=/x --env ENV=/x/profile "$ID" env
    lacks "$output" LD_PRELOAD
    lacks "$output" ENV=/x
    pf delete --force "$ID"
    # inherit_user_credentials is about secrets
    printf '%s\n' 'version: 1' 'processes: {loader_variables: false}' 'credentials: {inherit_user_credentials: true}' >"$WORK/policy.yaml"
    configure '.process.env = ["PATH=/bin:/usr/bin", "LD_PRELOAD=/x", "GITHUB_TOKEN=x"]'
    command_is env
    run pf_run
    contains "$output" GITHUB_TOKEN=x
    lacks "$output" LD_PRELOAD
}

@test "environment: no value of a removed secret is in the record, in the state directory or in any process of pinfold" {
    configure '.process.env += ["GITHUB_TOKEN=veryfakevalue4711"]'
    start_sleeper
    has_record credential.env.removed
    in_none veryfakevalue4711 "$LOG" "$STATE"
    [ -n "$(own_processes)" ]
    for pid in $(own_processes); do
        in_none veryfakevalue4711 "/proc/$pid/environ" "/proc/$pid/cmdline"
    done
}

@test "environment: exec is filtered too, --env and --process" {
    start_sleeper
    run pf exec --env GITHUB_TOKEN=fake --env FINE=1 "$ID" env
    lacks "$output" GITHUB_TOKEN
    contains "$output" FINE=1
    jq '.process | .args = ["env"] | .env += ["NPM_TOKEN=fake", "ALSO=1"]' "$BUNDLE/config.json" >"$WORK/process.json"
    run pf exec --process "$WORK/process.json" "$ID"
    lacks "$output" NPM_TOKEN
    contains "$output" ALSO=1
}

@test "mounts: credentials that someone asked for are refused, also through a symbolic link" {
    mkdir -p "$WORK/home/.ssh" "$WORK/home/.aws"
    echo key >"$WORK/home/.ssh/id_ed25519"
    ln -s "$WORK/home/.ssh" "$WORK/innocent"
    bind "$WORK/home/.ssh" /root/.ssh rbind ro
    refused mount.credential.refused .ssh
    configure --arg source "$WORK/innocent" '.mounts[-1].source = $source | .mounts[-1].destination = "/data"'
    refused mount.credential.refused .ssh
}

@test "mounts: a service-account token that an engine mounts is removed, and recorded" {
    mkdir -p "$WORK/sa" && echo token >"$WORK/sa/token"
    bind "$WORK/sa" /var/run/secrets/kubernetes.io/serviceaccount rbind ro
    script_is 'cat /var/run/secrets/kubernetes.io/serviceaccount/token 2>&1'
    run pf_run
    lacks "$output" $'token\n'
    [ "$status" != 0 ]
    has_record credential.mount.removed
}

@test "mounts: control sockets are refused, by inode and not by name" {
    python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()' "$WORK/docker.sock"
    bind "$WORK/docker.sock" /var/run/docker.sock bind
    refused mount.socket.refused docker.sock
}

@test "mounts: places of the host are refused, equal to or containing them" {
    for source in / /etc /root /home /proc /sys /dev /boot /run; do
        [ -d "$source" ] || continue
        jq --arg source "$source" '.mounts |= map(select(.destination != "/host")) | .mounts += [{destination: "/host", type: "bind", source: $source, options: ["rbind", "ro"]}]' \
            "$BUNDLE/config.json" >"$WORK/c" && cp "$WORK/c" "$BUNDLE/config.json"
        refused mount.host_path.refused "$source"
    done
}

@test "mounts: a cover stays in the container, also where the volume is shared with the host" {
    mkdir -p "$WORK/volume"
    mount -t tmpfs volume "$WORK/volume" && mount --make-shared "$WORK/volume"
    mkdir -p "$WORK/volume/.ssh" "$WORK/volume/.aws"
    mount -t tmpfs below "$WORK/volume/.aws" && mount --make-shared "$WORK/volume/.aws"
    echo key | tee "$WORK/volume/.ssh/id_ed25519" >"$WORK/volume/.aws/credentials"
    script_is 'ls -R /data/.ssh /data/.aws; grep " /data " /proc/self/mountinfo'
    for word in rshared shared slave rslave; do
        bind "$WORK/volume" /data rbind "$word"
        inside=$(pf_run)
        configure '.mounts |= .[:-1]'
        outside=$(cat "$WORK/volume/.ssh/id_ed25519" "$WORK/volume/.aws/credentials" 2>&1 | xargs)
        mounted=$(grep -c "$WORK/volume" /proc/self/mountinfo)
        [ "$outside $mounted" = "key key 2" ] && [[ ! $inside =~ (master|shared): ]] || break
    done
    umount -R "$WORK/volume"
    is "$word: $outside $mounted" "rslave: key key 2"
    lacks "$inside" id_ed25519
    lacks "$inside" credentials
    contains "$inside" " /data "
}

@test "decoys: a key that nothing opens by habit is fake, opening it is denied and recorded" {
    configure '.process.env += ["HOME=/root"]'
    script_is 'cat /root/.ssh/id_ed25519'
    run pf_run
    ended 1
    has_record fs.decoy.opened '.file.path == "/root/.ssh/id_ed25519"'
    is "$(records '.status_detail == "fs.decoy.opened"' | jq -r '.actor.process.name' | head -n 1)" cat
}

@test "decoys: what the image has there is not read either" {
    mkdir "$ROOT/root/.ssh" && echo image-secret-0815 >"$ROOT/root/.ssh/id_ed25519"
    configure '.process.env += ["HOME=/root"]'
    script_is 'cat /root/.ssh/id_ed25519; cat /root/.ssh/*; exit 0'
    run pf_run
    lacks "$output" image-secret-0815
}

# -- processes ----------------------------------------------------------------------------------------------------

@test "capabilities: the engine's, cut to the short list; the cut is recorded" {
    configure '["CAP_CHOWN", "CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_PTRACE", "CAP_SETUID"] as $c
      | .process.capabilities = {bounding: $c, effective: $c, permitted: $c, inheritable: $c, ambient: $c}'
    command_is grep -E '^Cap(Bnd|Eff|Prm|Inh|Amb)' /proc/self/status
    run pf_run
    # CHOWN is bit 0, SETUID bit 7
    for value in $(cut -f2 <<<"$output"); do
        is "$((16#$value & ~16#81))" 0
    done
    contains "$output" "CapBnd:"$'\t'"0000000000000081"
    has_record capability.dropped '.resources | map(.name) | contains(["CAP_SYS_ADMIN"])'
}

@test "no_new_privs is on, whatever config.json says; in exec too" {
    configure '.process.noNewPrivileges = false'
    command_is grep NoNewPrivs /proc/self/status
    is "$(pf_run | cut -f2)" 1
    start_sleeper
    is "$(pf exec "$ID" grep NoNewPrivs /proc/self/status | cut -f2)" 1
}

@test "exec: the same capabilities and filter, --cap does not add" {
    start_sleeper
    run pf exec --cap CAP_SYS_ADMIN "$ID" grep -E '^(CapBnd|CapEff|Seccomp):' /proc/self/status
    lacks "$output" 0000000000200000
    is "$((16#$(sed -n 's/^CapBnd:[[:space:]]*//p' <<<"$output") & 16#200000))" 0
    contains "$output" "Seccomp:"$'\t'2
    run pf exec "$ID" mount -t tmpfs none /tmp
    [ "$status" != 0 ]
    has_record syscall.not_allowed
}

@test "system calls: mount is denied and recorded with the process" {
    script_is 'mount -t tmpfs none /tmp'
    run pf_run
    [ "$status" != 0 ]
    has_record syscall.not_allowed '.activity_name == "mount"'
    is "$(records '.activity_name == "mount"' | jq -r '"\(.class_uid) \(.activity_id) \(.actor.process.name)"' | head -n 1)" "1007 99 mount"
}

@test "system calls: new user namespaces, ptrace, setns, bpf, keyrings and io_uring" {
    script_is 'unshare -U true 2>/dev/null && echo userns; unshare -m true 2>/dev/null && echo mountns
      nsenter -t 1 -m true 2>/dev/null && echo setns; exit 0'
    run pf_run
    ended 0
    is "$output" ""
    has_record syscall.not_allowed
}

@test "a set-user-id program gives nothing" {
    command -v gcc >/dev/null || skip "no C compiler"
    # no busybox: it gives the owner's rights back by itself
    echo 'int printf(const char *, ...); int geteuid(void); int main(void) { return printf("euid %d\n", geteuid()) < 0; }' |
        gcc -static -x c -o "$ROOT/bin/suid" -
    chmod 4755 "$ROOT/bin/suid"
    configure '.process.user = {uid: 1000, gid: 1000} | .process.noNewPrivileges = false
        | .process.capabilities.bounding += ["CAP_SETUID"]'
    command_is suid
    POLICY=unconfined run pf_run
    is "$output" "euid 0"
    run pf_run
    ended 0
    is "$output" "euid 1000"
}

@test "devices beyond the standard ones are removed, with one record" {
    configure '.linux.devices = [{path: "/dev/kmsg2", type: "c", major: 1, minor: 11, fileMode: 438}]'
    command_is test -e /dev/kmsg2
    run pf_run
    ended 1
    has_record device.removed
}

@test "namespaces: absent ones are added and recorded, the host's are refused" {
    configure '.linux.namespaces |= map(select(.type != "ipc" and .type != "cgroup"))'
    command_is readlink /proc/self/ns/ipc
    run pf_run
    ended 0
    lacks "$output" "$(readlink /proc/self/ns/ipc)"
    has_record namespace.added
    configure '.linux.namespaces |= map(if .type == "pid" then .path = "/proc/1/ns/pid" else . end)'
    refused namespace.host.refused pid
}

@test "an absent network namespace is refused" {
    configure '.linux.namespaces |= map(select(.type != "network"))'
    refused namespace.host.refused network
}

@test "limits: pids 1024 when the engine asks for none" {
    grep -q ':pids:' /proc/self/cgroup || skip "this machine has no v1 pids controller"
    start_sleeper
    path=$(awk -F: '$2 == "pids" { print $3 }' "/proc/$(state_of .pid)/cgroup")
    is "$(cat "/sys/fs/cgroup/pids$path/pids.max")" 1024
}

@test "annotations of an image widen nothing" {
    configure '.annotations = {"dev.pinfold.policy": "unconfined", "dev.pinfold.network": "open", "dev.pinfold.capabilities": "all"}'
    script_is 'touch /x'
    run pf_run
    [ "$status" != 0 ]
}

@test "the policy of create holds for exec: its flag does not change it" {
    start_sleeper
    POLICY=unconfined run pf exec "$ID" sh -c 'mount -t tmpfs none /tmp; touch /x'
    [ "$status" != 0 ]
    contains "$output" "Read-only file system"
}

@test "explain prints what run then does, and runs nothing" {
    configure '.process.env += ["GITHUB_TOKEN=fake"] | .process.capabilities.bounding += ["CAP_SYS_ADMIN"]'
    run pf explain --bundle "$BUNDLE"
    ended 0 GITHUB_TOKEN
    contains "$output" CAP_SYS_ADMIN
    lacks "$output" "GITHUB_TOKEN=fake"
    [ ! -e "$LOG" ]
    is "$(ls -A "$STATE" 2>/dev/null)" ""
}
