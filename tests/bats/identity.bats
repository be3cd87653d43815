#!/usr/bin/env bats
# Who a process of a container is, where it begins and what becomes of its command: the faults that other runtimes had with
# it, for the container's own process and for exec alike.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

document() { # JQ: config.json's process, changed
    jq ".process | $1" "$BUNDLE/config.json" >"$WORK/process.json"
}

@test "CVE-2022-29162, CVE-2022-27650: no inheritable capability but what is written; the template has none" {
    is "$(jq -c '.process.capabilities.inheritable // []' "$BUNDLE/config.json")" "[]"
    # what an inheritable one is good for: a file that has it too gives it to whoever executes it
    cp --remove-destination "$ROOT/bin/busybox" "$ROOT/bin/grep"
    python3 -c 'import os, struct, sys; os.setxattr(sys.argv[1], "security.capability", struct.pack("<5I", 0x02000001, 0, 1, 0, 0))' "$ROOT/bin/grep"
    command_is /bin/grep -E "^Cap(Inh|Eff)" /proc/self/status
    configure '.process.noNewPrivileges = false | .process.user = {uid: 1000, gid: 1000}
      | .process.capabilities = {bounding: ["CAP_CHOWN"], permitted: ["CAP_CHOWN"], inheritable: ["CAP_CHOWN"]}'
    is "$(pf_run | cut -f2 | xargs)" "0000000000000001 0000000000000001"
    configure 'del(.process.capabilities.inheritable)'
    is "$(pf_run | cut -f2 | xargs)" "0000000000000000 0000000000000000"
    start_sleeper
    contains "$(pf exec --cap CAP_CHOWN "$ID" grep CapInh /proc/self/status)" 0000000000000000
}

@test "CVE-2024-21626, youki GHSA-xr7r-f8xq-vfvv: no working directory leads out of the root, by number or by link, in exec too" {
    exec 7</etc
    for number in 3 5 7 9; do
        for cwd in "/proc/self/fd/$number" "/proc/self/fd/$number/../.." "/link$number/.."; do
            ln -sfn "/proc/self/fd/$number" "$ROOT/link$number"
            configure --arg cwd "$cwd" '.process.cwd = $cwd'
            script_is 'ls -a; pwd; test -e usr/lib/os-release && echo escaped; test -e passwd && cat passwd'
            run pf_run
            lacks "$output" escaped
            lacks "$output" root:x:0:0
            [ "$status" = 0 ] || lacks "$output" "o such file"
        done
    done
    exec 7<&-
    # a descriptor of the host's that the program is to have is open then, and leads there
    with_descriptor() {
        bash -c 'exec 3</etc; exec timeout -k 5 20 "$0" --root "$STATE" --policy unconfined "$@"' "$PINFOLD" "$@" </dev/null
    }
    export STATE
    configure '.process.cwd = "/"'
    script_is 'cd /proc/self/fd/3 && cat hostname'
    is "$(with_descriptor run --preserve-fds 1 --bundle "$BUNDLE" "$ID")" "$(cat /etc/hostname)"
    configure '.process.cwd = "/proc/self/fd/3"'
    run with_descriptor run --preserve-fds 1 --bundle "$BUNDLE" "$ID"
    ended 1 "/proc/self/fd/3 in the container's root: Too many levels of symbolic links" # no link of the kernel's is followed
    configure '.process.cwd = "/"'
    start_sleeper
    run with_descriptor exec --preserve-fds 1 --cwd /proc/self/fd/3 "$ID" cat hostname
    ended 255 "process.cwd is not inside the container's root (CVE-2024-21626)"
    for number in 3 5 7 9 11; do
        run pf exec --cwd "/proc/self/fd/$number" "$ID" cat etc/hostname ../etc/shadow
        [ "$status" = 255 ] || [ "$status" = 1 ]
        lacks "$output" root:
    done
}

@test "crun #282, #2082, youki #3439: exec has config.json's environment, not that of process 1 and not the caller's" {
    configure '.process.env = ["PATH=/bin:/usr/bin", "A=config", "HOME=/h"]'
    script_is 'export A=changed B=new; exec sleep 1000'
    pf_create && pf start "$ID"
    is "$(CALLER=1 pf exec "$ID" env | LC_ALL=C sort | xargs)" "A=config HOME=/h PATH=/bin:/usr/bin"
    is "$(pf exec --env C=1 --env A=2 "$ID" env | LC_ALL=C sort | xargs)" "A=2 C=1 HOME=/h PATH=/bin:/usr/bin"
}

@test "crun #1642: a process of exec is in no group or session of the caller's" {
    start_sleeper
    pf exec --detach --pid-file "$WORK/pid" "$ID" sleep 998
    read -r _ _ _ _ group session _ <"/proc/$(cat "$WORK/pid")/stat"
    is "$group $session" "$(cat "$WORK/pid") $(cat "$WORK/pid")"
}

# That only the user may enter one, and not even root (a FUSE mount, NFS), needs a file system that these machines lack.
@test "crun #793: a working directory that only root, or only the user, may enter; exec too" {
    mkdir -m 700 "$ROOT/roots" "$ROOT/users"
    chown 1000:1000 "$ROOT/users"
    for privileges in true false; do
        for directory in /roots /users; do
            configure --arg cwd "$directory" --argjson nnp "$privileges" '.process.cwd = $cwd | .process.noNewPrivileges = $nnp
              | .process.user = {uid: 1000, gid: 1000} | .process.capabilities = {}'
            script_is 'echo "$PWD $(id -u)"'
            is "$(pf_run)" "$directory 1000"
            start_sleeper
            is "$(pf exec "$ID" sh -c 'echo "$PWD $(id -u)"')" "$directory 1000"
            pf delete --force "$ID"
        done
    done
}

@test "crun #2121, youki #3294, #3554: an unknown capability is an error; each set is exactly what is written, in exec too" {
    start_sleeper
    document '.args = ["true"] | .capabilities.effective += ["CAP_NOSUCH"]'
    run pf exec --process "$WORK/process.json" "$ID"
    ended 255 CAP_NOSUCH
    run pf exec --cap CAP_NOSUCH "$ID" true
    ended 255 CAP_NOSUCH
    # ambient, for a user that is not root
    document '.args = ["grep", "-E", "^Cap", "/proc/self/status"] | .user = {uid: 1000, gid: 1000}
      | ["CAP_CHOWN", "CAP_KILL"] as $c | .capabilities = {bounding: $c, permitted: $c, inheritable: $c, effective: $c, ambient: $c}'
    is "$(pf exec --process "$WORK/process.json" "$ID" | cut -f2 | sort -u)" 0000000000000021
    # ambient without inheritable: not possible, and no error
    document '.args = ["grep", "CapAmb", "/proc/self/status"] | .user = {uid: 1000, gid: 1000}
      | .capabilities = {bounding: ["CAP_CHOWN"], permitted: ["CAP_CHOWN"], ambient: ["CAP_CHOWN"]}'
    is "$(pf exec --process "$WORK/process.json" "$ID" | cut -f2)" 0000000000000000
    # sets that are left out are empty
    document '.args = ["grep", "CapBnd", "/proc/self/status"] | .capabilities = {effective: []}'
    is "$(pf exec --process "$WORK/process.json" "$ID" | cut -f2)" 0000000000000000
}

@test "crun #1912: descriptors of the runtime are not mixed up with those that the program gets" {
    script_is 'cat <&3; cat <&4; ls /proc/self/fd | xargs'
    printf three >"$WORK/three"
    printf four >"$WORK/four"
    run bash -c 'exec 3<"$3/three" 4<"$3/four"; timeout 20 "$0" --root "$1" --policy unconfined run --preserve-fds 2 --bundle "$2" "$4" </dev/null' \
        "$PINFOLD" "$STATE" "$BUNDLE" "$WORK" "$ID"
    is "$output" "threefour0 1 2 3 4 5"
}

# A command under a filter that answers keyctl with an error.
without_keyctl() { # ERRNO COMMAND...
    python3 -c '
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 250), (0x06, 0, 0, 0x00050000 | int(sys.argv[1])), (0x06, 0, 0, 0x7fff0000)]
buffer = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
fprog = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer))
assert ctypes.CDLL(None).prctl(22, 2, ctypes.c_char_p(fprog), 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])' "$@"
}

@test "crun #687: an SELinux label is the session keyring's, and no longer that of keys which the program makes" {
    # what is written, and in which order, is a unit test of every machine: test_lsm.c
    [ -e /sys/fs/selinux/enforce ] || skip "no SELinux here"
    configure '.process.selinuxLabel = "system_u:system_r:container_t:s0"'
    script_is 'cat /proc/self/attr/keycreate; echo .'
    run pf_run
    ended 0
    is "$output" .
}

@test "crun #594, runc #4676: no keys in the kernel (ENOSYS), and the user's keys used up (EDQUOT), do not stop a container" {
    [ "$(uname -m)" = x86_64 ] || skip "the filter is for x86_64"
    command_is echo fine
    for number in 38 122 1; do
        run without_keyctl "$number" "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID"
        ended 0 fine
    done
    start_sleeper
    for number in 38 122 1; do
        run without_keyctl "$number" "$(command -v timeout)" 20 "$PINFOLD" --root "$STATE" exec "$ID" echo fine
        ended 0 fine
    done
    run without_keyctl 12 "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID-2"
    ended 1 "keyring"
}

@test "HOME: from the image's passwd for the container and for exec as another user; an empty one counts as none; else /" {
    configure '.process.env = ["PATH=/bin", "HOME="] | .process.user = {uid: 1000, gid: 1000}'
    script_is 'echo $HOME'
    is "$(pf_run)" /home/user
    start_sleeper
    is "$(pf exec "$ID" sh -c 'echo $HOME')" /home/user
    is "$(pf exec --user 0 "$ID" sh -c 'echo $HOME')" /root
    is "$(pf exec --user 4711 "$ID" sh -c 'echo $HOME')" /
    is "$(pf exec --env HOME=/x "$ID" sh -c 'echo $HOME')" /x
}

@test "HOME: a passwd that is a fifo, a device, a directory or a link to the host's neither blocks nor leaks" {
    configure '.process.env = ["PATH=/bin"]'
    start_sleeper
    for kind in fifo zero directory link; do
        rm -rf "$ROOT/etc/passwd"
        case $kind in
        fifo)
            mkfifo "$ROOT/etc/passwd"
            is "$(timeout 0.5 cat "$ROOT/etc/passwd" || echo $?)" 124 # whoever opens it waits
            ;;
        zero) mknod "$ROOT/etc/passwd" c 1 5 ;;
        directory) mkdir "$ROOT/etc/passwd" ;;
        link) ln -s /proc/1/root/etc/passwd "$ROOT/etc/passwd" ;;
        esac
        LIMIT=10 run pf exec --user 1234 "$ID" sh -c 'echo $HOME'
        ended 0 /
    done
}

@test "umask, additional groups and rlimits are for exec what its document says, else the container's" {
    configure '.process.user = {uid: 0, gid: 0, umask: 63, additionalGids: [29]} | .process.rlimits = [{type: "RLIMIT_NOFILE", soft: 77, hard: 99}]'
    start_sleeper
    is "$(umask 0; pf exec "$ID" sh -c 'umask; ulimit -n; id -G')" $'0077\n77\n0 29'
    document '.args = ["sh", "-c", "umask; ulimit -n; id -G"] | .user = {uid: 0, gid: 0} | del(.rlimits)'
    is "$(umask 0; pf exec --process "$WORK/process.json" "$ID")" $'0022\n77\n0'
    document '.args = ["sh", "-c", "ulimit -n"] | .rlimits = [{type: "RLIMIT_NOFILE", soft: 50, hard: 50}]'
    is "$(pf exec --process "$WORK/process.json" "$ID")" 50
    document '.args = ["true"] | .rlimits = [{type: "RLIMIT_NOFILE", soft: 5, hard: 5}, {type: "RLIMIT_NOFILE", soft: 5, hard: 5}]'
    run pf exec --process "$WORK/process.json" "$ID"
    ended 255 RLIMIT_NOFILE
}

@test "rlimits: a soft limit above the hard one, an unknown one, and one beyond the machine's are one error with its name" {
    for case in '{type: "RLIMIT_NOFILE", soft: 9, hard: 8} #rlimits[0].soft' '{type: "RLIMIT_X", soft: 1, hard: 1} #rlimits[0].type' \
        '{type: "RLIMIT_NOFILE", soft: 1, hard: 9999999999} #RLIMIT_NOFILE'; do
        configure ".process.rlimits = [${case% #*}]"
        run pf_run
        ended 1 "${case##*#}"
        is "${#lines[@]}" 1
    done
}

@test "oomScoreAdj: for exec too; out of range is an error" {
    configure '.process.oomScoreAdj = 123'
    start_sleeper
    is "$(pf exec "$ID" cat /proc/self/oom_score_adj)" 123
    document '.args = ["cat", "/proc/self/oom_score_adj"] | .oomScoreAdj = 456'
    is "$(pf exec --process "$WORK/process.json" "$ID")" 456
    for score in 1001 -1001; do
        document ".args = [\"true\"] | .oomScoreAdj = $score"
        run pf exec --process "$WORK/process.json" "$ID"
        ended 255 oomScoreAdj
    done
}

@test "a command whose name begins with a dot (crun #1664), in PATH, by a relative path and in the working directory" {
    printf '#!/bin/sh\necho dotted\n' >"$ROOT/bin/.tool"
    chmod 755 "$ROOT/bin/.tool"
    command_is .tool
    is "$(pf_run)" dotted
    configure '.process.cwd = "/bin"'
    for name in ./.tool ../bin/.tool; do
        command_is "$name"
        is "$(pf_run)" dotted
    done
    start_sleeper
    is "$(pf exec "$ID" .tool)" dotted
    is "$(pf exec --cwd /bin "$ID" ./.tool)" dotted
}

@test "a directory as a command: both words that engines look for; exec too" {
    for name in /etc ./etc; do
        command_is "$name"
        run pf_run
        ended 1 "exec: \"$name\": is a directory: permission denied"
    done
    start_sleeper
    run pf exec "$ID" /etc
    ended 255 'exec: "/etc": is a directory: permission denied'
}

@test "a script without a first line, a program of another machine: exec format error; exec too" {
    printf 'echo no first line\n' >"$ROOT/bin/script"
    printf '\177ELF\2\1\1garbage' >"$ROOT/bin/garbage"
    chmod 755 "$ROOT/bin/script" "$ROOT/bin/garbage"
    for name in script garbage; do
        command_is "$name"
        run pf_run
        ended 1 "exec: \"/bin/$name\": exec format error"
    done
    start_sleeper
    run pf exec "$ID" script
    ended 255 'exec: "/bin/script": exec format error'
}

@test "a script whose interpreter is missing: 127's words, and what is missing" {
    printf '#!/no/such\n' >"$ROOT/bin/script"
    chmod 755 "$ROOT/bin/script"
    command_is script
    run pf_run
    ended 1 'exec: "/bin/script": no such file or directory: the interpreter'
}

@test "arguments and environment too long: E2BIG says how much there was and what is allowed, and no value" {
    python3 -c '
import json, sys
path = sys.argv[1]
config = json.load(open(path))
config["process"]["env"] += ["V%d=%s" % (i, "hunter2" * 10000) for i in range(60)]
json.dump(config, open(path, "w"))' "$BUNDLE/config.json"
    run pf_run
    ended 1 "E2BIG"
    contains "$output" "process.env"
    lacks "$output" hunter2
    is "${#lines[@]}" 1
}

@test "thirty thousand short variables arrive" {
    local count=30000
    # each is looked for among those before it: under AddressSanitizer that takes minutes
    [ -z "${PINFOLD_SANITIZED-}" ] || count=3000
    configure --argjson count $count '.process.env = ["PATH=/bin"] + [range($count) | "V\(.)=\(.)"]'
    command_is /usr/bin/env
    is "$(pf_run | wc -l)" $((count + 2))
}

@test "runc #3879: no message shows the value of a variable, whatever is wrong; exec too" {
    start_sleeper
    for env in '["hunter2secret"]' '["=hunter2secret"]' '["A=hunter2secret", "hunter2secret"]'; do
        document ".env = $env"
        run pf exec --process "$WORK/process.json" "$ID"
        ended 255 "env["
        lacks "$output" hunter2
    done
    run pf exec --env hunter2secret "$ID" true
    ended 255 "env["
    lacks "$output" hunter2
    document '.env = ["A=hunter2secret"] | .args = ["nosuch"]'
    run pf exec --process "$WORK/process.json" "$ID"
    ended 255
    lacks "$output" hunter2
}
