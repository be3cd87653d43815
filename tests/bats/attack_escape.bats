#!/usr/bin/env bats
# Ways out of a sandbox that were open once.
load helpers

setup() {
    setup_container
    POLICY=agent
}
teardown() {
    chmod 666 /dev/null && chown 0:0 /dev/null # the machine's own: put right should a test here fail
    teardown_container
}

# A sleeper whose processes may look into each other, where the build can do without: Landlock alone would keep them
# from that, and it is not what these tests are about.
without_landlock() {
    command_is sleep 1000
    local PINFOLD=$PINFOLD
    [ ! -x "${PINFOLD_FAULTS-}" ] || PINFOLD=$PINFOLD_FAULTS
    PINFOLD_WITHOUT=landlock pf_create && pf start "$ID"
}

@test "a container that shares the process namespace sees nothing of an init that waits for start" {
    without_landlock
    # what it may see: all of a process that is as itself
    look="sleep 999 & until [ \"\$(tr -d '\\0' </proc/\$!/cmdline)\" = sleep999 ]; do :; done; tr '\\0' '\\n' </proc/\$!/environ; ls /proc/\$!/root/; kill \$!"
    contains "$(pf exec --env CANARY=readable-value "$ID" sh -c "$look")" readable-value
    contains "$(pf exec "$ID" sh -c "$look")" etc
    new_bundle "$WORK/second"
    command_is sleep 1000
    configure --arg path "/proc/$(state_of .pid)/ns/pid" '(.linux.namespaces[] | select(.type == "pid")).path = $path'
    AGENT_CANARY=canary-value pf create --bundle "$BUNDLE" "$ID-second" >"$WORK/out" 2>&1 </dev/null
    local init descriptor
    init=$(state_of .pid "$ID-second")
    # the number that the first container knows it by
    init=$(awk '/^NSpid:/ { print $3 }' "/proc/$init/status")
    [ "$init" -gt 1 ]
    run pf exec "$ID" sh -c "tr '\\0' '\\n' </proc/$init/environ"
    lacks "$output" canary-value
    run pf exec "$ID" sh -c "for fd in /proc/$init/fd/*; do ls \$fd/../../.. 2>/dev/null; done; ls /proc/$init/root/ /proc/$init/cwd/"
    lacks "$output" rootfs
    contains "$output" "Permission denied"
    lacks "$(tr '\0' '\n' <"/proc/$(state_of .pid "$ID-second")/environ")" canary-value
    # and by itself it holds streams, its channel and the socket for start alone
    for descriptor in "/proc/$(state_of .pid "$ID-second")/fd"/*; do
        case $(readlink "$descriptor") in
        /sys/* | "$ROOT" | "$WORK/second"*) echo "left open: $(readlink "$descriptor")" >&2; return 1 ;;
        esac
    done
    pf start "$ID-second"
    pf exec "$ID-second" true
    pf delete --force "$ID-second"
}

@test "a command before start sees nothing of the init that waits" {
    command_is sleep 1000
    look='tr "\0" "\n" </proc/1/environ; ls -l /proc/1/fd/'
    # a build that can do without shows that nothing else keeps it out
    if [ -x "${PINFOLD_FAULTS-}" ]; then
        PINFOLD=$PINFOLD_FAULTS PINFOLD_WITHOUT=secrecy,landlock pf_create
        contains "$(pf exec "$ID" sh -c "$look")" " -> socket:"
        pf delete --force "$ID"
    fi
    AGENT_CANARY=canary-value pf_create
    # a second layer, seen from outside: it no longer has the environment
    lacks "$(tr '\0' '\n' <"/proc/$(state_of .pid)/environ")" canary-value
    run pf exec "$ID" sh -c "$look"
    lacks "$output" canary-value
    lacks "$output" "$ROOT"
    lacks "$output" socket
    contains "$output" "Permission denied"
}

# Between joining the container and its execve a process of exec has the caller's environment and descriptors.
@test "CVE-2016-9962: a command inside sees nothing of a process of exec that is about to become another command" {
    [ -x "${PINFOLD_FAULTS-}" ] || skip "no build with fault points (make pinfold-faults)"
    without_landlock
    for protection in secrecy none; do
        AGENT_CANARY=canary-value PINFOLD_PAUSE=exec-ready PINFOLD_WITHOUT=$protection timeout 60 \
            "$PINFOLD_FAULTS" --root "$STATE" exec "$ID" true </dev/null >"$WORK/out" 2>&1 3>&- &
        caller=$!
        stopped() { stopped=$(grep -l '^State:.T' /proc/[0-9]*/status) && [ -n "$stopped" ]; }
        wait_for stopped
        pid=$(awk '/^NSpid:/ { print $3 }' $stopped)
        run pf exec "$ID" sh -c "tr '\\0' '\\n' </proc/$pid/environ; ls -l /proc/$pid/fd/"
        kill -CONT "$(awk '/^Pid:/ { print $2 }' $stopped)"
        wait "$caller"
        case $protection in
        secrecy) contains "$output" AGENT_CANARY=canary-value && contains "$output" " -> socket:" ;;
        none)
            contains "$output" "Permission denied"
            lacks "$output" canary-value
            lacks "$output" socket
            ;;
        esac
    done
}

@test "a device node of the image opens nothing, without any rule of the device cgroup" {
    mknod "$ROOT/zero" c 1 5
    configure 'del(.linux.resources)'
    script_is 'head -c 1 /zero && echo opened; head -c 4 /dev/zero | od -An -tx1; echo x >/dev/null && echo written'
    POLICY=unconfined run pf_run
    contains "$output" opened
    run pf_run
    lacks "$output" opened
    contains "$output" "00 00 00 00"
    contains "$output" written
}

@test "where /dev is a part of the root its devices are the machine's own, whatever the image has there" {
    configure '.mounts |= map(select(.destination | startswith("/dev") | not)) | .root.readonly = false'
    mkfifo "$ROOT/dev/tty"
    # without the policy the image's is there; what chmod does to a device that is bound shows the next test
    command_is test -p /dev/tty
    POLICY=unconfined run pf_run
    ended 0
    script_is '[ -c /dev/tty ] && echo x >/dev/null && head -c 4 /dev/zero | od -An -tx1; chmod 600 /dev/null'
    run pf_run
    contains "$output" "00 00 00 00"
    is "$(stat -c %a /dev/null)" 666
}

@test "the machine's null device cannot be changed through a masked path" {
    # a device that is bound over a file is changed through that file
    mknod "$WORK/null" c 1 3 && touch "$WORK/masked"
    unshare -m sh -c 'mount --bind "$1/null" "$1/masked" && chmod 600 "$1/masked"' - "$WORK"
    is "$(stat -c %a "$WORK/null")" 600
    script_is 'chmod 600 /proc/keys; chown 1 /proc/timer_list; touch -d 2000-01-01 /proc/keys; true'
    run pf_run
    is "$(stat -c %a:%u /dev/null)" 666:0
    contains "$output" "Read-only file system"
}

@test "a recursive bind of /sys is read-only as a whole" {
    configure '(.mounts[] | select(.destination == "/sys")) |= {destination: "/sys", type: "none", source: "/sys", options: ["rbind", "nosuid", "noexec", "nodev", "ro"]}
               | .mounts |= map(select(.destination != "/sys/fs/cgroup"))'
    script_is 'awk "\$5 ~ /^\/sys/ && \$6 !~ /(^|,)ro(,|\$)/" /proc/self/mountinfo'
    # what the engine asked for leaves the mounts below as they are
    if awk '$5 ~ "^/sys/" && $6 !~ /(^|,)ro(,|$)/ { found = 1 } END { exit !found }' /proc/self/mountinfo; then
        POLICY=unconfined run pf_run
        contains "$output" " /sys/"
    fi
    run pf_run
    ended 0
    is "$output" ""
}
