#!/usr/bin/env bats
# config-linux.md "Control groups", on the layout that this machine has: v1 controllers, v2, or both.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

# A kernel may have hierarchies that this machine does not mount.
has_v1() { # CONTROLLER
    awk -v want="$1" '$3 == "cgroup" && "," $4 "," ~ "," want "," { found = 1 } END { exit !found }' /proc/mounts
}
# The container's cgroup directory of a v1 controller, or of v2.
directory_of() { # CONTROLLER
    local pid path
    pid=$(state_of .pid)
    path=$(awk -F: -v want="$1" '{ n = split($2, c, ","); for (i = 1; i <= n; i++) if (c[i] == want) print $3 }' "/proc/$pid/cgroup")
    if [ -n "$path" ] && has_v1 "$1"; then
        echo "$(awk -v want="$1" '$3 == "cgroup" && "," $4 "," ~ "," want "," { print $2; exit }' /proc/mounts)$path"
    elif grep -qw "$1" "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/cgroup.controllers" 2>/dev/null; then
        echo "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)$(sed -n 's/^0:://p' "/proc/$pid/cgroup")"
    fi
}
needs() { # CONTROLLER: skips where the machine lacks it
    has_v1 "$1" ||
        grep -qw "$1" "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/cgroup.controllers" 2>/dev/null ||
        skip "this machine has no $1 controller"
}
value_of() { # CONTROLLER V1-FILE V2-FILE
    local directory
    directory=$(directory_of "$1")
    if [ -e "$directory/$2" ]; then cat "$directory/$2"; else cat "$directory/$3"; fi
}

# Whether a cgroup has no more real-time budget than those in it, which may be other tests'; the kernel rounds.
budget_fits() { # DIRECTORY
    local directory sum=10
    [ -d "$1" ] || return 0
    for directory in "$1"/*/; do
        sum=$((sum + $(cat "$directory/cpu.rt_runtime_us" || echo 0) * 1000000 / $(cat "$directory/cpu.rt_period_us" || echo 1000000)))
    done 2>/dev/null
    [ "$(cat "$1/cpu.rt_runtime_us" || echo 0)" -le "$sum" ]
}

# bats test_tags=controllers
@test "cpu.realtimeRuntime and realtimePeriod: the runtime's own parent has room for all that are in it" {
    has_v1 cpu || skip "cgroup v2 has no real-time budgets"
    local top
    top=$(awk '$3 == "cgroup" && "," $4 "," ~ ",cpu," { print $2; exit }' /proc/mounts)
    [ "$(cat "$top/cpu.rt_runtime_us" 2>/dev/null || echo 0)" -gt 100000 ] || skip "no real-time budget here"
    needs_real_time_budget 300000
    configure '.linux.resources.cpu = {realtimeRuntime: 10000, realtimePeriod: 100000}'
    start_sleeper
    is "$(cat "$(directory_of cpu)/cpu.rt_runtime_us") $(cat "$(directory_of cpu)/cpu.rt_period_us")" "10000 100000"
    configure '.linux.resources.cpu = {realtimeRuntime: 70000}'
    pf create --bundle "$BUNDLE" "$ID-two" >"$WORK/stdout" 2>"$WORK/stderr" </dev/null
    is "$(cat "$(directory_of cpu | sed "s/$ID\$/$ID-two/")/cpu.rt_runtime_us")" 70000
    # what is not needed any more goes back: others of the machine may want it
    pf delete --force "$ID-two"
    pf delete --force "$ID"
    wait_for budget_fits "$top/pinfold"
    # more than the machine has is the kernel's word, with the field
    configure '.linux.resources.cpu = {realtimeRuntime: 960000}'
    run pf create --bundle "$BUNDLE" "$ID-three" </dev/null
    ended 1 "linux.resources.cpu.realtimeRuntime"
}

# bats test_tags=controllers
@test "pids.limit" {
    needs pids
    configure '.linux.resources.pids = {limit: 50}'
    start_sleeper
    is "$(value_of pids pids.max pids.max)" 50
}

# bats test_tags=controllers
@test "pids.limit is in force" {
    needs pids
    configure '.linux.resources.pids = {limit: 5}'
    script_is 'for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done 2>&1; wait'
    run pf_run
    contains "$output" "fork"
}

# bats test_tags=controllers
@test "memory.limit, and an allocation beyond it ends with 137" {
    needs memory
    configure '.linux.resources.memory = {limit: 33554432}'
    start_sleeper
    is "$(value_of memory memory.limit_in_bytes memory.max)" 33554432
    pf delete --force "$ID"
    command_is tail /dev/zero
    run pf_run
    ended 137
}

# bats test_tags=controllers
@test "cpu quota and shares" {
    needs cpu
    configure '.linux.resources.cpu = {quota: 50000, period: 100000, shares: 512}'
    start_sleeper
    directory=$(directory_of cpu)
    if [ -e "$directory/cpu.cfs_quota_us" ]; then
        is "$(cat "$directory/cpu.cfs_quota_us") $(cat "$directory/cpu.shares")" "50000 512"
    else
        is "$(cat "$directory/cpu.max")" "50000 100000"
    fi
}

# bats test_tags=controllers
@test "cpuset" {
    needs cpuset
    configure '.linux.resources.cpu = {cpus: "0", mems: "0"}'
    command_is grep Cpus_allowed_list /proc/self/status
    is "$(pf_run | cut -f2)" 0
}

@test "cpuset: a parent that others made and left empty is filled from its own" {
    local directory=/sys/fs/cgroup/cpuset
    [ -e "$directory/cpuset.cpus" ] && [ ! -e "$directory/cgroup.controllers" ] || skip "no cpuset hierarchy of v1"
    mkdir -p "$directory/$ID-outer/inner"
    configure --arg path "/$ID-outer/inner/leaf" '.linux.cgroupsPath = $path'
    command_is grep Cpus_allowed_list /proc/self/status
    run pf_run
    ended 0 Cpus_allowed_list
    is "$(cat "$directory/$ID-outer/inner/cpuset.cpus")" "$(cat "$directory/cpuset.cpus")"
    is "$(cat "$directory/$ID-outer/cpuset.mems")" "$(cat "$directory/cpuset.mems")"
    # a leaf that was there stays, as others made it
    mkdir "$directory/$ID-outer/inner/leaf"
    run pf_run
    ended 0 Cpus_allowed_list
    rmdir "$directory/$ID-outer/inner/leaf" "$directory/$ID-outer/inner" "$directory/$ID-outer"
}

# bats test_tags=controllers
@test "block I/O: throttles of a disk" {
    local controller=blkio disk
    has_v1 blkio || controller=io
    needs $controller
    disk=$(awk '$1 ~ /^[0-9]+$/ && ($4 !~ /[0-9]$/ || $4 ~ /^nvme[0-9]+n[0-9]+$/) { print $1 ":" $2; exit }' /proc/partitions)
    [ -n "$disk" ] || skip "no disk to limit"
    configure --argjson major "${disk%:*}" --argjson minor "${disk#*:}" '{major: $major, minor: $minor} as $disk |
        .linux.resources.blockIO = {throttleReadBpsDevice: [$disk + {rate: 1048576}], throttleWriteIOPSDevice: [$disk + {rate: 100}]}'
    start_sleeper
    if [ $controller = blkio ]; then
        is "$(cat "$(directory_of blkio)"/blkio.throttle.{read_bps,write_iops}_device)" "$disk 1048576
$disk 100"
    else
        is "$(cat "$(directory_of io)/io.max")" "$disk rbps=1048576 wbps=max riops=max wiops=100"
    fi
}

@test "devices: what is not allowed cannot be opened" {
    needs devices
    grep -q " tun$" /proc/misc || skip "the test's device is missing: c 10:200, tun" # opening it asks for no capability
    configure '.linux.resources.devices = [{allow: true, access: "rwm"}]
      | .linux.devices = [{path: "/dev/tun2", type: "c", major: 10, minor: 200, fileMode: 438}]'
    script_is 'echo x > /dev/null && echo null; : <>/dev/tun2 && echo tun'
    run pf_run
    is "$output" "null
tun"
    configure '.linux.resources.devices = [{allow: false, access: "rwm"}, {allow: true, type: "c", major: 1, minor: 3, access: "rwm"}]'
    run pf_run
    contains "$output" null
    contains "$output" "Operation not permitted"
}

@test "cgroupsPath: absolute, below the mount points" {
    configure --arg path "/pinfold-tests/$ID" '.linux.cgroupsPath = $path'
    start_sleeper
    contains "$(cat "/proc/$(state_of .pid)/cgroup")" "/pinfold-tests/$ID"
    pf delete --force "$ID"
    find /sys/fs/cgroup -maxdepth 2 -name pinfold-tests -type d -exec rmdir {} \; 2>/dev/null || :
}

in_private_cgroups() { # WORD...: "/" is a cgroup of this test
    "$BATS_TEST_DIRNAME/private-cgroups" "$ID-private" "$@"
}

@test "cgroupsPath: never a root: '/', '.', '..' and escapes are refused" {
    [[ $("$PINFOLD" --version) == pinfold* ]] || skip "another runtime: these paths are dangerous"
    is "$(in_private_cgroups sh -c 'cut -d: -f3 /proc/self/cgroup | sort -u')" /
    for path in / . .. ../.. /.. "/a/../.." "//" "/./"; do
        configure --arg path "$path" '.linux.cgroupsPath = $path'
        run in_private_cgroups timeout 20 "$PINFOLD" --root "$STATE" --policy unconfined create --bundle "$BUNDLE" "$ID" 3>&-
        ended 1 cgroupsPath
        run pf state "$ID"
        ended 1 "does not exist"
    done
}

@test "crun: cgroupsPath \"\" is unset, not the root whose processes delete then kills" {
    [[ $("$PINFOLD" --version) == pinfold* ]] || skip "another runtime: this path is dangerous"
    # in the root are other processes than the container's: this one
    in_private_cgroups sh -c 'grep -qx $$ /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/cgroup.procs 2>/dev/null'
    configure '.linux.cgroupsPath = "" | .linux.namespaces |= map(select(.type != "cgroup"))'
    command_is cat /proc/self/cgroup
    run in_private_cgroups timeout 20 "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID" 3>&-
    ended 0 "$ID"
}

@test "the container is in its cgroups before create ends" {
    needs pids
    configure '.linux.resources.pids = {limit: 50}'
    pf_create
    contains "$(cat "/proc/$(state_of .pid)/cgroup")" "$ID"
}

@test "delete removes the cgroups, with sub-groups that the container left" {
    needs pids
    start_sleeper
    directory=$(directory_of pids)
    mkdir "$directory/below"
    pf delete --force "$ID"
    [ ! -d "$directory" ]
}

@test "delete does not remove a cgroup that was there before" {
    needs pids
    mount=$(awk '$3 == "cgroup" && "," $4 "," ~ ",pids," { print $2; exit }' /proc/mounts)
    [ -n "$mount" ] || skip "no v1 pids hierarchy"
    own=$(awk -F: '$2 == "pids" { print $3 }' /proc/self/cgroup)
    mkdir "$mount$own/$ID-mine"
    configure --arg path "${own%/}/$ID-mine" '.linux.cgroupsPath = $path'
    start_sleeper
    pf delete --force "$ID"
    code=0
    [ -d "$mount$own/$ID-mine" ] || code=1
    rmdir "$mount$own/$ID-mine" || :
    is "$code" 0
}

@test "runc #4103: a page size with a path in it is refused" {
    # where the cgroup has a sub-cgroup of that name, the file's name leads elsewhere
    mkdir -p "$WORK/hugetlb/container/hugetlb..." && echo 1 >"$WORK/hugetlb/container/hugetlb.../../../outside.limit_in_bytes"
    is "$(cat "$WORK/hugetlb/outside.limit_in_bytes")" 1
    for size in ../../../tmp/x ../../outside 2MB/../x ""; do
        configure --arg size "$size" '.linux.resources.hugepageLimits = [{pageSize: $size, limit: 1}]'
        run pf_run
        ended 1 pageSize
    done
}

@test "unified: a controller that cgroup v2 does not have here, in the words of runc and crun" {
    ! grep -qw memory "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/cgroup.controllers" 2>/dev/null || skip "memory is a controller of v2"
    configure '.linux.resources.unified = {"memory.min": "131072"}'
    run pf_run
    ended 1 "invalid configuration: linux.resources.unified.memory.min needs"
}

@test "unified: a name with a path in it is refused" {
    mkdir -p "$WORK/unified/container" && echo 1 >"$WORK/unified/container/../x" # by path it leads elsewhere
    is "$(ls "$WORK/unified" | xargs)" "container x"
    for name in ../../x memory.max/../../x /x .. .; do
        configure --arg name "$name" '.linux.resources.unified = {($name): "1"}'
        run pf_run
        ended 1 unified
    done
}

@test "a limit whose controller is absent is an error that names it" {
    grep -q rdma <(cut -d: -f2 /proc/self/cgroup) && skip "this machine has the rdma controller"
    configure '.linux.resources.unified = {"rdma.max": "x hca_handle=1"}'
    run pf_run
    ended 1 rdma
}

@test "crun #1413: --cgroup-manager=disabled touches no cgroup" {
    configure '.linux.resources = {} | .linux.namespaces |= map(select(.type != "cgroup"))'
    command_is cat /proc/self/cgroup
    run pf --cgroup-manager=disabled run --bundle "$BUNDLE" "$ID"
    ended 0
    is "$output" "$(cat /proc/self/cgroup)"
    # and looks at none: there is nothing to look at
    mount -t tmpfs none /sys/fs/cgroup
    run pf --cgroup-manager=disabled run --bundle "$BUNDLE" "$ID"
    umount /sys/fs/cgroup
    ended 0
}

# bats test_tags=controllers
@test "update: limits through a file, through standard input and by flags" {
    needs pids
    start_sleeper
    echo '{"pids": {"limit": 61}}' >"$WORK/resources.json"
    pf update --resources "$WORK/resources.json" "$ID"
    is "$(value_of pids pids.max pids.max)" 61
    echo '{"pids": {"limit": 62}}' | pf update --resources - "$ID"
    is "$(value_of pids pids.max pids.max)" 62
    echo '{"pids": {"limit": 63}}' | pf update -r - "$ID"
    is "$(value_of pids pids.max pids.max)" 63
}

@test "runc #4949, youki #3634: pids.limit 0 is a limit, -1 is none" {
    needs pids
    configure '.linux.resources.pids = {limit: 0}'
    start_sleeper
    is "$(value_of pids pids.max pids.max)" 0
    pf delete --force "$ID"
    configure '.linux.resources.pids = {limit: -1}'
    start_sleeper
    is "$(value_of pids pids.max pids.max)" max
}

@test "crun #537, runc #4798: the state of a container whose cgroup has vanished is stopped" {
    start_sleeper
    pf kill "$ID" KILL
    wait_status stopped
    find /sys/fs/cgroup -maxdepth 6 -depth -type d -name "$ID" -exec rmdir {} +
    run pf state "$ID"
    ended 0
    is "$(jq -r .status <<<"$output")" stopped
    run pf pause "$ID"
    ended 1 "container not running"
    pf delete "$ID"
}

@test "CVE-2023-25809: without a cgroup namespace, only the container's own cgroups are to be seen" {
    script_is 'for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $d/escape-'"$ID"' && break; done 2>/dev/null; true'
    # the machine's own, mounted: a container makes cgroups there (a machine that has them read-only shows nothing)
    configure '.linux.namespaces |= map(select(.type != "cgroup"))
      | .mounts |= map(select(.destination | startswith("/sys") | not)) + [{destination: "/sys", type: "bind", source: "/sys", options: ["rbind"]}]'
    run pf_run
    found=$(find /sys/fs/cgroup -maxdepth 5 -name "escape-$ID")
    [ -z "$found" ] || rmdir "$found"
    [ -n "$found" ] || [ -z "$(find /sys/fs/cgroup -maxdepth 1 -type d -writable)" ]
    configure '.mounts |= map(select(.destination != "/sys"))
      | .mounts += [{destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: ["nosuid", "noexec", "nodev"]}]'
    script_is 'grep " - cgroup" /proc/self/mountinfo'
    run pf_run
    ended 0
    while read -r _ _ _ root _; do contains "$root" "$ID"; done <<<"$output"
    script_is 'for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $d/../escape-'"$ID"' 2>/dev/null; done; true'
    run pf_run
    is "$(find /sys/fs/cgroup -maxdepth 5 -name "escape-$ID")" ""
}

@test "kill --all: spares processes that joined a cgroupsPath that was there before" {
    mount=$(awk '$3 == "cgroup" && "," $4 "," ~ ",freezer," { print $2; exit }' /proc/mounts)
    [ -n "$mount" ] || skip "no v1 freezer hierarchy"
    own=$(awk -F: '$2 == "freezer" { print $3 }' /proc/self/cgroup)
    mkdir "$mount$own/$ID-mine"
    configure --arg path "${own%/}/$ID-mine" '.linux.cgroupsPath = $path'
    start_sleeper
    pf exec --detach "$ID" sleep 2000
    sleep 3000 3>&- &
    other=$!
    echo "$other" >"$mount$own/$ID-mine/cgroup.procs"
    pf kill --all "$ID" KILL
    wait_status stopped
    code=0
    kill -0 "$other" || code=1
    pf delete "$ID"
    kill -0 "$other" || code=2
    kill "$other"
    wait "$other" 2>/dev/null || :
    rmdir "$mount$own/$ID-mine"
    is "$code" 0
}

@test "kill --all: a process that has got the number of an init that is gone is spared, too" {
    mount=$(awk '$3 == "cgroup" && "," $4 "," ~ ",freezer," { print $2; exit }' /proc/mounts)
    [ -n "$mount" ] || skip "no v1 freezer hierarchy"
    own=$(awk -F: '$2 == "freezer" { print $3 }' /proc/self/cgroup)
    place=$mount${own%/}/$ID-mine
    mkdir "$place"
    configure --arg path "${own%/}/$ID-mine" '.linux.cgroupsPath = $path'
    start_sleeper
    kill -9 "$(state_of .pid)"
    wait_status stopped
    sleep 3000 3>&- &
    other=$!
    echo "$other" >"$place/cgroup.procs"
    # as if the kernel had given the number again
    jq --argjson pid "$other" '.init.pid = $pid' "$STATE/$ID/state.json" >"$WORK/state.json"
    cp "$WORK/state.json" "$STATE/$ID/state.json"
    pf kill --all "$ID" KILL || :
    code=0
    kill -0 "$other" || code=1
    pf delete --force "$ID"
    kill -0 "$other" || code=2
    kill "$other"
    wait "$other" 2>/dev/null || :
    rmdir "$place"
    is "$code" 0
}

@test "delete: what init has left in a process-id namespace that it joined ends, without a cgroup too" {
    configure '.linux.resources = {} | .linux.namespaces |= map(select(.type != "cgroup" and .type != "pid"))'
    script_is 'sleep 4321 & sleep 4321 & wait'
    pf --cgroup-manager=disabled create --bundle "$BUNDLE" "$ID" >/dev/null 2>&1 </dev/null
    pf start "$ID"
    pid=$(state_of .pid)
    wait_for sh -c "[ \$(cat /proc/$pid/task/$pid/children | wc -w) = 2 ]"
    children=$(cat "/proc/$pid/task/$pid/children")
    sleep 5432 3>&- & # not the container's
    other=$!
    kill -KILL "$pid"
    wait_status stopped
    for child in $children; do kill -0 "$child"; done
    pf delete "$ID"
    for child in $children; do process_ended "$child"; done
    kill -0 "$other"
    kill "$other"
}

@test "intelRdt: without resctrl it is one clear error, and nothing is left" {
    [ ! -e /sys/fs/resctrl/schemata ] || skip "this machine has resctrl"
    configure '.linux.intelRdt = {closID: "fast", l3CacheSchema: "L3:0=f"}'
    run pf_run
    ended 1 "linux.intelRdt needs the resctrl file system"
    run pf state "$ID"
    ended 1 "does not exist"
    configure '.linux.intelRdt = {closID: "../fast"}'
    run pf_run
    ended 1 "linux.intelRdt.closID"
    configure 'del(.linux.intelRdt)'
    start_sleeper
    run pf update --l3-cache-schema L3:0=f "$ID"
    ended 1 "linux.intelRdt"
}

@test "rdma, network: where the controllers are missing, one clear error names field and controller" {
    if ! grep -qw rdma "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/cgroup.controllers" 2>/dev/null; then
        configure '.linux.resources = {rdma: {mlx5_1: {hcaHandles: 3}}}'
        run pf_run
        ended 1 "linux.resources.rdma.mlx5_1 needs the rdma controller"
    fi
    if ! grep -q net_cls <(cut -d: -f2 /proc/self/cgroup); then
        configure '.linux.resources = {network: {classID: 1048577}}'
        run pf_run
        ended 1 "linux.resources.network.classID needs the net_cls controller"
    fi
}
