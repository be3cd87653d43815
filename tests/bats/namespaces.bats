#!/usr/bin/env bats
# User and time namespaces: mappings, offsets, and what the runtime writes to /proc for them.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

@test "crun #209: a mapping of all ids is written unsigned" {
    configure '.linux.namespaces += [{type: "user"}]
      | .linux.uidMappings = [{containerID: 0, hostID: 0, size: 4294967295}] | .linux.gidMappings = .linux.uidMappings'
    command_is cat /proc/self/uid_map /proc/self/gid_map
    run pf_run
    ended 0
    is "$(tr -s ' ' <<<"$output" | sed 's/^ //' | tr '\n' '|')" "0 0 4294967295|0 0 4294967295|"
}

@test "crun 3212b444: every line of a long mapping arrives, and one that is too long is an error" {
    user_namespace
    configure '.linux.uidMappings = ([range(0; 200)] | map({containerID: (. * 10), hostID: (100000 + . * 20), size: 10})) | .linux.gidMappings = .linux.uidMappings'
    command_is sh -c 'wc -l </proc/self/uid_map; tail -n 1 /proc/self/gid_map'
    run pf_run
    ended 0
    is "$(xargs <<<"$output")" "200 1990 103980 10"
    configure '.linux.gidMappings = ([range(0; 340)] | map({containerID: (. * 10), hostID: (100000 + . * 20), size: 10}))'
    run pf_run
    ended 1 "linux.gidMappings: expected mappings that take less than 4096 bytes"
}

@test "crun #2150: an identity mapping is not taken for the machine's user namespace" {
    # the runtime in a user namespace that maps every id to itself: it may make no device nodes, and must notice
    command_is stat -c '%t:%T' /dev/null
    mkfifo "$WORK/mapped"
    unshare --user --mount --pid --fork sh -c 'read -r _ <"$0/mapped"; mount -t proc proc /proc &&
      exec "$1" --root "$2" --policy unconfined --cgroup-manager disabled run --bundle "$3" "$4"' \
        "$WORK" "$PINFOLD" "$STATE" "$BUNDLE" "$ID" >"$WORK/out" 2>&1 3>&- &
    outer=$!
    wait_for bash -c "[ \"\$(readlink /proc/$outer/ns/user)\" != '$(readlink /proc/self/ns/user)' ]"
    echo "0 0 4294967295" >/proc/$outer/gid_map
    echo "0 0 4294967295" >/proc/$outer/uid_map
    echo go >"$WORK/mapped"
    wait $outer || :
    is "$(cat "$WORK/out")" 1:3
}

@test "crun #871, #1320: a bind source that the user namespace's root cannot reach is mounted all the same" {
    user_namespace
    mkdir -p "$WORK/locked/source" && echo content >"$WORK/locked/source/file"
    chmod 755 "$WORK/locked/source" && chmod 700 "$WORK/locked"
    mkdir "$ROOT/data"
    configure --arg source "$WORK/locked/source" '.mounts += [{destination: "/data", type: "bind", source: $source, options: ["rbind", "ro"]}]
      | .process.user.additionalGids = [29]'
    command_is cat /data/file
    is "$(pf_run)" content
}

@test "time namespace: offsets as written, and exec sees them too" {
    configure '.linux.namespaces += [{type: "time"}] | .linux.timeOffsets = {monotonic: {secs: 1000000, nanosecs: 500}, boottime: {secs: 2000000}}'
    command_is cat /proc/self/timens_offsets
    run pf_run
    ended 0
    is "$(tr -s ' ' <<<"$output")" "monotonic 1000000 500
boottime 2000000 0"
    start_sleeper
    run pf exec "$ID" cat /proc/uptime
    [ "${output%%.*}" -gt 2000000 ]
}

@test "time namespace: offsets in a user namespace" {
    user_namespace
    configure '.linux.namespaces += [{type: "time"}] | .linux.timeOffsets = {boottime: {secs: 86400}}'
    command_is cat /proc/self/timens_offsets
    run pf_run
    ended 0
    contains "$(tr -s ' ' <<<"$output")" "boottime 86400 0"
}

@test "time namespace: a new one without offsets, and a negative number of seconds" {
    configure '.linux.namespaces += [{type: "time"}]'
    script_is 'readlink /proc/self/ns/time; tail -n 1 /proc/self/timens_offsets'
    run pf_run
    ended 0
    lacks "$output" "$(readlink /proc/self/ns/time)"
    configure '.linux.timeOffsets = {monotonic: {secs: -1, nanosecs: 999999999}}'
    command_is cat /proc/self/timens_offsets
    run pf_run
    ended 0
    contains "$(tr -s ' ' <<<"$output")" "monotonic -1 999999999"
}

@test "time namespace: negative nanoseconds, offsets out of range, offsets without a namespace are errors that name the field" {
    configure '.linux.namespaces += [{type: "time"}] | .linux.timeOffsets = {monotonic: {secs: 1, nanosecs: -1}}'
    run pf_run
    ended 1 "linux.timeOffsets.monotonic.nanosecs: expected an integer between 0"
    configure '.linux.timeOffsets = {boottime: {secs: 1, nanosecs: 1000000000}}'
    run pf_run
    ended 1 "linux.timeOffsets.boottime.nanosecs"
    configure '.linux.timeOffsets = {boottime: {secs: -100000000000}}'
    run pf_run
    ended 1 "linux.timeOffsets"
    configure '.linux.namespaces |= map(select(.type != "time")) | .linux.timeOffsets = {boottime: {secs: 1}}'
    run pf_run
    ended 1 "linux.timeOffsets: needs an entry of type"
}

@test "runc #4635: offsets are left alone in a time namespace that is joined" {
    unshare --time --boottime 5000 --fork sleep 60 3>&- &
    outer=$!
    wait_for test -n "$(pgrep -P $outer)"
    holder=$(pgrep -P $outer)
    configure --arg path "/proc/$holder/ns/time" '.linux.namespaces += [{type: "time", path: $path}] | .linux.timeOffsets = {boottime: {secs: 7}}'
    command_is cat /proc/self/timens_offsets
    run pf_run
    kill "$holder"
    ended 0
    contains "$(tr -s ' ' <<<"$output")" "boottime 5000 0"
}

@test "a time namespace under the agent policy" {
    POLICY=agent
    configure '.linux.namespaces += [{type: "time"}] | .linux.timeOffsets = {boottime: {secs: 1000000}}'
    command_is sh -c 'tail -n 1 /proc/self/timens_offsets; unshare --time true 2>&1 || echo denied'
    run pf_run
    contains "$(tr -s ' ' <<<"$output")" "boottime 1000000 0"
}

@test "CVE-2025-52881: sysctls reach the kernel, whatever lies on /proc" {
    # a tmpfs with files of the same names, and a procfs with a tmpfs over a part of it
    configure '.linux.sysctl = {"kernel.shmmni": "77", "kernel.domainname": "written"} | .linux.maskedPaths = [] | .linux.readonlyPaths = ["/proc/sys"]
      | .mounts += [{destination: "/proc/sys/kernel", type: "tmpfs", source: "tmpfs"}, {destination: "/real", type: "proc", source: "proc"}]'
    command_is cat /real/sys/kernel/shmmni /real/sys/kernel/domainname
    run pf_run
    ended 0
    is "$(xargs <<<"$output")" "77 written"
    mkdir -p "$BUNDLE/fake/sys/kernel" && : >"$BUNDLE/fake/sys/kernel/shmmni"
    # who writes by path writes there
    unshare -m sh -c 'mount --bind "$1/fake" "$1/rootfs/proc" && exec chroot "$1/rootfs" sh -c "echo 77 >/proc/sys/kernel/shmmni"' - "$BUNDLE"
    is "$(cat "$BUNDLE/fake/sys/kernel/shmmni")" 77
    echo untouched >"$BUNDLE/fake/sys/kernel/shmmni" && echo untouched >"$BUNDLE/fake/sys/kernel/domainname"
    configure --arg source "$BUNDLE/fake" '.mounts |= map(select(.destination | startswith("/proc") | not))
      | .mounts += [{destination: "/proc", type: "bind", source: $source, options: ["rbind"]}]'
    run pf_run
    ended 0
    is "$(xargs <<<"$output")" "77 written"
    is "$(cat "$BUNDLE/fake/sys/kernel/shmmni")" untouched
}

@test "CVE-2019-16884: the same with /proc as a symbolic link of the image" {
    rmdir "$ROOT/proc" && mkdir -p "$ROOT/fake/sys/kernel" && : >"$ROOT/fake/sys/kernel/shmmni" && ln -s fake "$ROOT/proc"
    chroot "$ROOT" sh -c 'echo 78 >/proc/sys/kernel/shmmni' # who writes by path writes there
    is "$(cat "$ROOT/fake/sys/kernel/shmmni")" 78
    echo untouched >"$ROOT/fake/sys/kernel/shmmni"
    configure '.mounts |= map(select(.destination != "/proc")) | .mounts += [{destination: "/real", type: "proc", source: "proc"}]
      | .linux.sysctl = {"kernel.shmmni": "78"} | .linux.maskedPaths = [] | .linux.readonlyPaths = []'
    command_is cat /real/sys/kernel/shmmni
    is "$(pf_run)" 78
    is "$(cat "$ROOT/fake/sys/kernel/shmmni")" untouched
}

@test "sysctls in a user namespace, where /proc/sys is read-only and parts of /proc are masked" {
    user_namespace
    configure '.linux.sysctl = {"kernel.shmmni": "79", "net.ipv4.ip_unprivileged_port_start": "80"}'
    command_is cat /proc/sys/kernel/shmmni /proc/sys/net/ipv4/ip_unprivileged_port_start
    run pf_run
    ended 0
    is "$(xargs <<<"$output")" "79 80"
}

@test "crun #1648: a value that the kernel does not take is an error that names the key" {
    configure '.linux.sysctl = {"net.ipv4.ping_group_range": "0 4294967295"}'
    run pf_run
    ended 1 "net.ipv4.ping_group_range"
}
