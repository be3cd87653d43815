#!/usr/bin/env bats
# What engines read out of errors: podman turns words into exit codes 126 and 127, containerd and CRI-O match sentences.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

@test "a container that does not exist: state, kill, start, delete, exec" {
    for words in "state no" "kill no 9" "start no" "delete no"; do
        # shellcheck disable=SC2086
        run pf $words
        ended 1 "container does not exist"
    done
    run pf exec no true
    ended 255 "container does not exist"
}

@test "create with an id in use" {
    pf_create
    run pf create --bundle "$BUNDLE" "$ID"
    ended 1 "container with given ID already exists"
    is "$(state_of .status)" created
}

@test "crun #1646, #2074: ids: empty, with a slash, dots, a leading dot, blanks and other bytes are refused" {
    for id in "" "a/b" "." ".." ".hidden" "a b" $'a\nb' "a%b" "../$ID"; do
        run pf create --bundle "$BUNDLE" "$id"
        [ "$status" = 1 ]
        contains "$output" "invalid container ID format"
        # crun #2074: "delete .." emptied the directory above the state directory
        run pf delete --force "$id"
        [ "$status" = 1 ]
    done
    [ ! -e "$WORK/$ID" ]
    [ -e "$BUNDLE/config.json" ]
}

@test "ids: letters, digits, underscore, plus, minus and inner dots are fine" {
    ID=$ID-A_z+9.x
    pf_create
    is "$(state_of .id)" "$ID"
}

@test "an id longer than a file name may be is refused" {
    run pf create --bundle "$BUNDLE" "$(printf '%0300d' 1)"
    ended 1 "invalid container ID format"
}

@test "kill of a container that has ended: the sentence that CRI-O matches" {
    pf_run --detach >/dev/null 2>&1
    wait_status stopped
    run pf kill "$ID" TERM
    ended 1 "container not running"
    run pf kill --all "$ID" TERM
    ended 0
}

@test "start twice" {
    start_sleeper
    run pf start "$ID"
    ended 1 "cannot start an already running container"
}

@test "start of a container that has ended fails at once" {
    pf_run --detach >/dev/null 2>&1
    wait_status stopped
    LIMIT=5 run pf start "$ID"
    ended 1
}

@test "start of a container whose init was killed while created does not hang" {
    pf_create
    kill -9 "$(state_of .pid)"
    wait_status stopped
    LIMIT=5 run pf start "$ID"
    ended 1
}

@test "delete of a running container" {
    start_sleeper
    run pf delete "$ID"
    ended 1 "cannot delete container $ID that is not stopped: running"
}

@test "exec in a stopped container" {
    pf_run --detach >/dev/null 2>&1
    wait_status stopped
    run pf exec "$ID" true
    ended 255 "cannot exec in a stopped container"
}

@test "a command by path that is not there" {
    command_is /no/such
    run pf_run
    ended 1 'exec: "/no/such": stat /no/such: no such file or directory'
    lacks "$output" "ermission denied"
}

@test "a command by name that is nowhere in PATH" {
    command_is nosuch
    run pf_run
    ended 1 'exec: "nosuch": executable file not found in $PATH'
    contains "$output" "no such file or directory"
}

@test "an empty command name" {
    command_is ""
    run pf_run
    ended 1 'exec: "": executable file not found in $PATH'
}

@test "a command that is not executable, and one that is a directory" {
    command_is /etc/passwd
    run pf_run
    ended 1 'exec: "/etc/passwd": permission denied'
    command_is /etc
    run pf_run
    ended 1
    matches "$output" 'permission denied|is a directory'
}

@test "a file in an earlier PATH directory that is not executable does not hide one in a later" {
    mkdir "$ROOT/opt"
    echo text >"$ROOT/opt/tool"
    printf '#!/bin/sh\necho found\n' >"$ROOT/usr/bin/tool"
    chmod 755 "$ROOT/usr/bin/tool"
    configure '.process.env = ["PATH=/opt:/usr/bin:/bin"]'
    command_is tool
    run pf_run
    ended 0 found
}

@test "the last of several PATH entries counts" {
    printf '#!/bin/sh\necho found\n' >"$ROOT/usr/sbin/tool"
    chmod 755 "$ROOT/usr/sbin/tool"
    configure '.process.env = ["PATH=/nowhere", "PATH=/usr/sbin:/bin"]'
    command_is tool
    run pf_run
    ended 0 found
}

@test "errors that have nothing to do with the command avoid the words for 126 and 127" {
    configure '.mounts += [{destination: "/x", type: "bind", source: "/no/such/source", options: ["rbind"]}]'
    run pf_run
    ended 1 /no/such/source
    lacks "$output" "no such file or directory"
    lacks "$output" "No such file or directory"
    lacks "$output" "ermission denied"
    lacks "$output" "peration not permitted"
}

@test "exec: the same sentences, with 255" {
    start_sleeper
    run pf exec "$ID" /no/such
    ended 255 'exec: "/no/such": stat /no/such: no such file or directory'
    run pf exec "$ID" nosuch
    ended 255 'exec: "nosuch": executable file not found in $PATH'
    run pf exec "$ID" /etc/passwd
    ended 255 'exec: "/etc/passwd": permission denied'
}

@test "a bundle that is not there, and one without config.json" {
    run pf create --bundle "$WORK/none" "$ID"
    ended 1 "$WORK/none"
    rm "$BUNDLE/config.json"
    run pf create --bundle "$BUNDLE" "$ID"
    ended 1 config.json
}

@test "config.json: broken JSON and a value of the wrong type name their place" {
    echo '{"ociVersion": ' >"$BUNDLE/config.json"
    run pf_run
    ended 1 config.json
    (cd "$BUNDLE" && rm config.json && "$PINFOLD" spec)
    configure '.process.terminal = false | .linux.resources.pids = {limit: "many"}'
    run pf_run
    ended 1 linux.resources.pids.limit
}

@test "config.json: unknown members are ignored, whatever they hold" {
    configure '.process.args = ["true"] | .somethingNew = {"deep": [1, {"x": null}]} | .linux.alsoNew = true | .process.user.more = []'
    run pf_run
    ended 0
}

@test "crun 1.14.2: config.json: a newer ociVersion of 1.x is accepted" {
    configure '.ociVersion = "1.99.0"'
    run pf_run
    ended 0
}

@test "config.json: an unknown capability, a repeated rlimit, a repeated namespace, a relative cwd are errors that name it" {
    base=$(cat "$BUNDLE/config.json")
    for case in '.process.capabilities.bounding += ["CAP_NOSUCH"] #CAP_NOSUCH' \
        '.process.rlimits = [{type: "RLIMIT_CORE", soft: 0, hard: 0}, {type: "RLIMIT_CORE", soft: 0, hard: 0}] #RLIMIT_CORE' \
        '.linux.namespaces += [{type: "mount"}] #mount' \
        '.process.cwd = "relative" #cwd' \
        '.process.env = ["NOEQUALS"] #env'; do
        echo "$base" >"$BUNDLE/config.json"
        configure "${case% #*}"
        run pf_run
        ended 1 "${case##*#}"
    done
}

@test "runc #3879: an error never shows the value of a variable" {
    configure '.process.env = ["GOOD=1", "hunter2-without-equals-sign-secret"]'
    run pf_run
    ended 1
    lacks "$output" hunter2
}

@test "--log with json: one object, RFC 3339, and the same words on standard error" {
    run pf --log "$WORK/log.json" --log-format json state nope
    ended 1 "container does not exist"
    is "$(jq -s length "$WORK/log.json")" 1
    is "$(jq -r .level "$WORK/log.json")" error
    contains "$(jq -r .msg "$WORK/log.json")" "container does not exist"
    matches "$(jq -r .time "$WORK/log.json")" '^20[0-9-]+T[0-9:]+(\.[0-9]+)?(Z|[+-][0-9:]+)$'
    # podman reads the whole file as one object, also after a second failure
    run pf --log "$WORK/log.json" --log-format json state nope
    is "$(jq -s length "$WORK/log.json")" 1
}

@test "--log: the file is there even when nothing was logged" {
    pf --log "$WORK/log.json" --log-format json list >/dev/null
    [ -f "$WORK/log.json" ]
}

@test "--log: a file that cannot be opened is an error, except where a container is ended and removed" {
    for words in "list" "state $ID" "run --bundle $BUNDLE $ID"; do
        # shellcheck disable=SC2086
        run pf --log "$WORK/none/log" $words
        ended 1 "open $WORK/none/log (--log)"
    done
    start_sleeper
    run pf --log "$WORK/none/log" kill "$ID" KILL
    ended 0 "warning: open $WORK/none/log (--log)"
    run pf --log "$WORK/none/log" delete --force "$ID"
    ended 0
    run pf state "$ID"
    ended 1 "does not exist"
}

@test "--log: bytes that are not UTF-8 and control characters come out as valid JSON" {
    command_is $'/no/\x01\x7f"\\such'
    run pf --log "$WORK/log.json" --log-format json run --bundle "$BUNDLE" "$ID"
    [ "$status" = 1 ]
    is "$(jq -s length "$WORK/log.json")" 1
}

@test "a wrong command line ends with 1 and says what is wrong" {
    run pf bogus
    ended 1 bogus
    run pf create
    ended 1
    [ -n "$output" ]
    run "$PINFOLD" --bogusflag
    ended 1 bogusflag
}

@test "checkpoint --help ends with 0; restore --lsm-mount-context asks for an argument (podman probes both)" {
    run pf checkpoint --help
    ended 0
    run pf restore --lsm-mount-context
    [ "$status" != 0 ]
    matches "$output" 'requires an argument|flag needs an argument'
}

@test "global flags in every form that callers use" {
    for words in "--log=$WORK/l" "--log $WORK/l" "--log-level=debug" "--debug" "--rootless=false" "--rootless auto" \
        "--cgroup-manager=cgroupfs" "--cgroup-manager cgroupfs" "--criu criu" "--root=$STATE --root=$STATE"; do
        # shellcheck disable=SC2086
        run timeout 10 "$PINFOLD" --root "$STATE" $words list --quiet
        ended 0
    done
}

@test "options stop at the command of exec" {
    start_sleeper
    run pf exec "$ID" echo --detach -t --bogus
    ended 0
    is "$output" "--detach -t --bogus"
}

@test "an unknown policy is refused and the known ones are named" {
    POLICY=nosuch
    run pf_run
    ended 1 nosuch
    contains "$output" agent
}

@test "a label of AppArmor or SELinux where the machine has them off is an error, not a container without it" {
    # Invariant 1: what an engine has written is put in place, or create fails. ("unconfined" asks for nothing.)
    for change in '.process.apparmorProfile = "docker-default" #AppArmor is not enabled' \
        '.process.selinuxLabel = "system_u:system_r:x_t:s0" #SELinux is not enabled' \
        '.linux.mountLabel = "system_u:object_r:x_t:s0" #SELinux is not enabled'; do
        case $change in
        *AppArmor*) ! grep -q Y /sys/module/apparmor/parameters/enabled 2>/dev/null || continue ;;
        *) [ ! -e /sys/fs/selinux/enforce ] || continue ;;
        esac
        cp "$BUNDLE/config.json" "$WORK/kept.json"
        configure "${change% #*}"
        run pf create --bundle "$BUNDLE" "$ID"
        ended 1 "${change##*#}"
        run pf state "$ID"
        ended 1 "does not exist"
        mv "$WORK/kept.json" "$BUNDLE/config.json"
    done
    configure '.process.apparmorProfile = "unconfined"'
    run pf_run
    ended 0
}

@test "what ended init before its first word from create is told, and no broken pipe" {
    [ -x "${PINFOLD_FAULTS-}" ] || skip "no build with fault points (make pinfold-faults)"
    PINFOLD_FAIL=guard PINFOLD_PAUSE=go timeout 60 "$PINFOLD_FAULTS" --root "$STATE" --policy unconfined create --bundle "$BUNDLE" "$ID" \
        </dev/null >"$WORK/out" 2>&1 3>&- &
    caller=$!
    # create waits, and its init has ended
    ended_early() {
        create=$(pgrep -P "$caller") && grep -q '^State:.T' "/proc/$create/status" &&
            grep -q '^State:.Z' "/proc/$(pgrep -P "$create")/status"
    }
    wait_for ended_early
    kill -CONT "$create"
    wait "$caller" || status=$?
    is "$status" 1
    is "$(cat "$WORK/out")" "pinfold: create failed: PINFOLD_FAIL=guard"
}

@test "crun #307: a path that goes through a file names the file" {
    configure '.mounts += [{destination: "/etc/passwd/a/b", type: "tmpfs", source: "tmpfs"}]'
    run pf_run
    ended 1 "mounts["
    contains "$output" "/etc/passwd: Not a directory (ENOTDIR)"
}

@test "crun #2172: the kernel's own reason is in the message, which is one line" {
    configure '.mounts += [{destination: "/x", type: "tmpfs", source: "tmpfs", options: ["size=zz"]}]'
    run pf_run
    ended 1 "Bad value for 'size'"
    is "${#lines[@]}" 1
    configure '.mounts[-1] = {destination: "/x", type: "nosuchfs", source: "none"}'
    run pf_run
    ended 1 "nosuchfs: No such device (ENODEV)"
}

# The number means "leave it as it is" to the kernel: the process would have stayed root.
@test "user and group 4294967295 are refused, in config.json and for exec" {
    configure '.process.user.uid = 4294967295'
    run pf_run
    ended 1 "process.user.uid: expected a number less than 4294967295"
    configure '.process.user = {uid: 1, gid: 4294967295}'
    run pf_run
    ended 1 "process.user.gid: expected a number less than 4294967295"
    configure '.process.user = {uid: 0, gid: 0}'
    start_sleeper
    run pf exec --user 4294967295 "$ID" true
    ended 255 "--user"
    jq '.process | .user.uid = 4294967295' "$BUNDLE/config.json" >"$WORK/p.json"
    run pf exec --process "$WORK/p.json" "$ID"
    ended 255 "user.uid"
}

@test "crun 1.15, runc #4417: a create that fails after its mounts leaves none of them to the machine, and no directory" {
    before=$(cut -d' ' -f5- /proc/self/mountinfo | sort)
    configure '.mounts += [{destination: "/a", type: "tmpfs", source: "tmpfs"}, {destination: "/b", type: "bind", source: "/tmp", options: ["rbind", "rshared"]}] |
        .process.cwd = "/etc/passwd"'
    for try in 1 2 3; do
        run pf_run
        ended 1 "process.cwd /etc/passwd"
    done
    is "$(cut -d' ' -f5- /proc/self/mountinfo | sort)" "$before"
    is "$(ls "$STATE")" ""
}

@test "crun #504: a pid file and a state directory that cannot be written are one error each, and nothing runs on" {
    command_is sleep 994
    run pf create --bundle "$BUNDLE" --pid-file "$WORK/no/pid" "$ID"
    ended 1 "--pid-file: create $WORK/no/pid"
    is "$(ls "$STATE")" ""
    run "$PINFOLD" --root "$BUNDLE/config.json/x" --policy unconfined run --bundle "$BUNDLE" "$ID"
    ended 1 "Not a directory (ENOTDIR)"
    start_sleeper
    run pf exec --detach --pid-file "$WORK/no/pid" "$ID" sleep 994
    ended 255 "--pid-file: create $WORK/no/pid"
    [ -z "$(ps -eo args | grep '^sleep 994')" ]
}
