# What every bats file loads: a busybox root, a bundle, a state directory, an id of its own, and a teardown that fails the
# test when the container left anything behind (a process, a mount, a cgroup, a state directory).
#
# Run through tests/run (make check, make check-bats FILES=...): it makes the mount and process-id namespaces in which
# "a process with another mount namespace" means "a process of a container under test".

PINFOLD=${PINFOLD:?PINFOLD must name the runtime: use make check, or tests/run --bats FILE}
LOGS=/var/log/pinfold
# shellcheck source=../assertions.bash
. "${BASH_SOURCE[0]%/*}/../assertions.bash"

# -- set-up and teardown ------------------------------------------------------------------------------------------

# A busybox root file system in DIR. Hard links: a symbolic link would hide what masking and mounting a file does.
make_root() { # DIR
    local template=$BATS_RUN_TMPDIR/root-template
    if [ ! -d "$template" ]; then
        mkdir -p "$template".new/{bin,sbin,dev,etc,proc,sys,tmp,var/tmp,root,home,run,lib,usr/bin,usr/sbin,work}
        cp "$(command -v busybox)" "$template".new/bin/busybox
        chroot "$template".new /bin/busybox --install # one process, not one a name
        printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$template".new/etc/passwd
        printf 'root:x:0:\naudio:x:29:user\nuser:x:1000:\nnogroup:x:65534:\n' >"$template".new/etc/group
        mkdir -p "$template".new/home/user
        chown 1000:1000 "$template".new/home/user
        chmod 1777 "$template".new/tmp "$template".new/var/tmp
        mv "$template".new "$template"
    fi
    mkdir -p "$1"
    cp -al "$template/." "$1/"
    # what tests write to must not be shared with the template
    rm -rf "$1/etc" && cp -a "$template/etc" "$1/etc"
}

# Called by setup(): $WORK, $STATE, $BUNDLE with a config.json that runs `true`, $ROOT, $ID and $LOG.
setup_container() {
    [ "$(id -u)" = 0 ] || skip "needs root"
    [ -n "${PINFOLD_TEST_PRIVATE-}" ] || skip "needs namespaces of its own: run it through tests/run"
    WORK=$(mktemp -d "$BATS_RUN_TMPDIR/t.XXXXXX")
    STATE=$WORK/state
    ID=t$$-$BATS_TEST_NUMBER-$RANDOM
    LOG=$LOGS/$ID.jsonl
    PREFIX=$ID
    new_bundle "$WORK/bundle"
    POLICY=unconfined
}

# A bundle in DIR; it becomes $BUNDLE and its root file system $ROOT.
new_bundle() { # DIR
    BUNDLE=$1
    ROOT=$BUNDLE/rootfs
    mkdir -p "$BUNDLE"
    make_root "$ROOT"
    local template=$BATS_RUN_TMPDIR/config-template.json
    if [ ! -e "$template" ]; then
        (cd "$BUNDLE" && "$PINFOLD" spec)
        # the same on every layout of cgroups
        configure '.process.terminal = false | .process.args = ["true"] | .root.readonly = false
          | .linux.namespaces |= map(select(.type != "cgroup")) + [{type: "cgroup"}]'
        cp "$BUNDLE/config.json" "$template"
    fi
    cp "$template" "$BUNDLE/config.json"
}

# Edits config.json with a jq program; --arg and the like go before it.
configure() { # [JQ-OPTION...] PROGRAM
    jq "$@" "$BUNDLE/config.json" >"$BUNDLE/config.json.new" && mv "$BUNDLE/config.json.new" "$BUNDLE/config.json"
}
# A user namespace whose root is uid 100000 of the machine, and a root file system that it may enter.
user_namespace() {
    chmod 755 "$WORK" "$BATS_RUN_TMPDIR" "$BUNDLE"
    configure '.linux.namespaces += [{type: "user"}]
      | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] | .linux.gidMappings = .linux.uidMappings'
}
# The command of the container.
command_is() { # WORD...
    local words
    words=$(jq -cn '$ARGS.positional' --args -- "$@")
    configure --argjson words "$words" '.process.args = $words'
}
# The command as a shell script.
script_is() { # TEXT
    command_is sh -c "$1"
}

teardown_container() {
    [ -n "${WORK-}" ] || return 0
    local id status=0 POLICY='' LIMIT=30
    for id in $(ls "$STATE" 2>/dev/null); do
        pf delete --force "$id" >/dev/null 2>&1 || :
    done
    leftovers || status=1
    keep_logs
    rm -f "$LOGS/$PREFIX"*.jsonl*
    rm -rf "$WORK" 2>/dev/null || :
    return $status
}

# tests/run validates the records of every test, a file's together: the validator takes as long to begin as a container.
# A test that damages its log on purpose sets LOGS_ARE_DAMAGED.
keep_logs() {
    [ -d "${PINFOLD_KEPT_LOGS-}" ] && [ -z "${LOGS_ARE_DAMAGED-}" ] || return 0
    local log
    for log in "$LOGS/$PREFIX"*.jsonl; do
        [ ! -s "$log" ] || [ -L "$log" ] || cp "$log" "$PINFOLD_KEPT_LOGS/$BATS_TEST_NUMBER-${log##*/}"
    done
}

# Prints what is left of this test's containers and fails if there is any. Ends of processes are asynchronous: it looks
# again for four seconds.
leftovers() {
    local found='' until=$((SECONDS + 4))
    while :; do
        found=$(list_leftovers)
        [ -n "$found" ] || return 0
        [ "$SECONDS" -lt "$until" ] || break
        sleep 0.1
    done
    printf 'left behind: %s\n' "$found"
    # so that the next test starts clean: safe, because only this run's processes are in this process-id namespace
    if [ "${PINFOLD_TEST_PRIVATE-}" = 1 ] && [ "$(readlink /proc/1/exe)" != /sbin/init ]; then
        sed -n 's/^process \([0-9]*\).*/\1/p' <<<"$found" | sort -u | xargs -r kill -9 2>/dev/null
        sed -n 's/^mount //p' <<<"$found" | sort -r | xargs -r -d '\n' umount -l 2>/dev/null
        sed -n 's/^cgroup //p' <<<"$found" | sort -r | xargs -r rmdir 2>/dev/null
    fi
    return 1
}
# Whether a process is one of the runtime's. Where it executes a copy of itself (src/process/binary.c: every build with
# AddressSanitizer), exe is no path that leads to the runtime, and often not its file; what stays beside a container names itself.
is_own() { # /proc/PID
    local name=''
    { read -r name <"$1/comm"; } 2>/dev/null
    [[ $name == pinfold-* ]] || [ "$1/exe" -ef "$PINFOLD" ] || [ "$1/exe" -ef "${PINFOLD_FAULTS:-$PINFOLD}" ]
}
# The ids of the runtime's processes that stay beside containers.
own_processes() {
    local process
    for process in /proc/[0-9]*; do
        ! is_own "$process" || echo "${process#/proc/}"
    done
}
# Builtins where a loop would start programs: this runs after every test.
list_leftovers() {
    local process pid words
    for process in /proc/[0-9]*; do
        pid=${process#/proc/}
        { mapfile -d '' -t words <"$process/cmdline"; } 2>/dev/null || continue
        # an unreadable namespace is that of a process that has just ended
        [ ! -e "$process/ns/mnt" ] || [ "$process/ns/mnt" -ef /proc/self/ns/mnt ] ||
            echo "process $pid in another mount namespace: ${words[*]}"
        # this shell and its children hold the names too, but they are no pinfold
        ! is_own "$process" || echo "process $pid: ${words[*]}"
    done
    grep -E " [^ ]*($PREFIX|$STATE)" /proc/self/mountinfo | awk '{ print "mount " $5 }'
    # the directory for sandboxes' bundles stays, as the state directory itself does; what is in it must not
    find /sys/fs/cgroup -maxdepth 6 -type d -name "*$PREFIX*" -printf 'cgroup %p\n' 2>/dev/null
    [ ! -d "$STATE" ] || find "$STATE" -mindepth 1 -maxdepth 2 ! -path "$STATE/.sandboxes" -printf 'state %p\n'
    [ ! -d /run/netns ] || find /run/netns -name "*$PREFIX*" -printf 'network namespace %p\n'
}

# -- the runtime --------------------------------------------------------------------------------------------------

# The runtime with this test's state directory and policy. bats' descriptor 3 must not reach a container, or bats waits for it.
pf() {
    timeout -k 5 "${LIMIT:-30}" "$PINFOLD" --root "$STATE" ${POLICY:+--policy "$POLICY"} "$@" 3>&-
}
# create, whose container keeps the standard streams: they are files here, so that `run` does not wait for the container.
pf_create() { # [OPTION...]
    pf create --bundle "$BUNDLE" "$@" "$ID" >"$WORK/stdout" 2>"$WORK/stderr" </dev/null
}
pf_run() { # [OPTION...]: runs the container to its end
    pf run --bundle "$BUNDLE" "$@" "$ID" </dev/null
}
# A container that runs until it is killed.
start_sleeper() {
    command_is sleep 1000
    pf_create && pf start "$ID"
}
state_of() { # JQ-PATH [ID]
    pf state "${2:-$ID}" | jq -r "$1"
}
# Waits until the state is STATUS; 5 seconds at most.
wait_status() { # STATUS
    local try
    for try in $(seq 50); do
        [ "$(state_of .status)" != "$1" ] || return 0
        sleep 0.1
    done
    echo "still $(state_of .status), not $1" >&2
    return 1
}

# Skips where a cgroup v1 of the machine has less real-time budget left than MICROSECONDS of a second: one that is not given to
# another, which may be a stranger's.
needs_real_time_budget() { # MICROSECONDS
    local top directory left
    top=$(awk '$3 == "cgroup" && "," $4 "," ~ ",cpu," { print $2; exit }' /proc/mounts)
    left=$(cat "$top/cpu.rt_runtime_us" 2>/dev/null) || return 0
    for directory in "$top"/*/; do
        [ "${directory%/}" = "$top/pinfold" ] || left=$((left - $(cat "$directory/cpu.rt_runtime_us" || echo 0)))
    done 2>/dev/null
    [ "$left" -ge "$1" ] || skip "the machine's real-time budget is given away"
}

# -- records ------------------------------------------------------------------------------------------------------

# Records of this container that match a jq filter, one JSON object a line.
records() { # [JQ-FILTER]
    [ -f "$LOG" ] || return 0
    jq -c "select(${1:-true})" "$LOG"
}
# How many records carry this reason code; repeats count as often as they happened.
denials() { # REASON
    records ".status_detail == \"$1\"" | jq -s 'map(.count // 1) | add // 0'
}
# Waits for a record with this reason code (and, given a filter, matching it).
has_record() { # REASON [JQ-FILTER]
    local try
    for try in $(seq 30); do
        [ -z "$(records ".status_detail == \"$1\" and (${2:-true})")" ] || return 0
        sleep 0.1
    done
    echo "no record with reason $1 ${2:+and $2} in:" >&2
    records | jq -c '{status_detail, message}' >&2
    return 1
}
