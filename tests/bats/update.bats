#!/usr/bin/env bats
# `pinfold update`, and pause and resume.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

# A kernel may have hierarchies that this machine does not mount.
has_v1() { # CONTROLLER
    awk -v want="$1" '$3 == "cgroup" && "," $4 "," ~ "," want "," { found = 1 } END { exit !found }' /proc/mounts
}
# The container's directory of a v1 controller, or of v2 where it has the controller.
directory_of() { # CONTROLLER
    local pid path v2
    pid=$(state_of .pid)
    path=$(awk -F: -v want="$1" '{ n = split($2, c, ","); for (i = 1; i <= n; i++) if (c[i] == want) print $3 }' "/proc/$pid/cgroup")
    if [ -n "$path" ] && has_v1 "$1"; then
        echo "$(awk -v want="$1" '$3 == "cgroup" && "," $4 "," ~ "," want "," { print $2; exit }' /proc/mounts)$path"
        return
    fi
    v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)$(sed -n 's/^0:://p' "/proc/$pid/cgroup")
    grep -qw "$1" "$v2/cgroup.controllers" 2>/dev/null || skip "this machine has no $1 controller"
    echo "$v2"
}
value_of() { # CONTROLLER V1-FILE V2-FILE
    local directory
    directory=$(directory_of "$1")
    if [ -e "$directory/$2" ]; then cat "$directory/$2"; else cat "$directory/$3"; fi
}
stored() { # JQ-FILTER of linux.resources
    jq -r ".linux.resources | $1" "$STATE/$ID/config.json"
}
needs_v1() { # CONTROLLER
    has_v1 "$1" || skip "this machine has no v1 $1 controller"
}

@test "update: the flags for memory" {
    needs_v1 memory
    start_sleeper
    pf update --memory 64m --memory-swap 128M --memory-reservation=33554432 "$ID"
    is "$(value_of memory memory.limit_in_bytes memory.max)" 67108864
    is "$(value_of memory memory.memsw.limit_in_bytes -)" 134217728
    is "$(value_of memory memory.soft_limit_in_bytes memory.low)" 33554432
    is "$(stored '.memory.limit, .memory.swap' | paste -sd,)" 67108864,134217728
    # below what swap is, with the limit that was stored
    pf update --memory-swap 96m "$ID"
    is "$(value_of memory memory.memsw.limit_in_bytes -)" 100663296
    is "$(value_of memory memory.limit_in_bytes memory.max)" 67108864
    # both up, past the old one of both; both down again; unlimited
    pf update --memory 1g --memory-swap 1g "$ID"
    pf update --memory 16m --memory-swap 16m "$ID"
    is "$(value_of memory memory.limit_in_bytes memory.max)" 16777216
    pf update --memory -1 "$ID" # lifts both
    is "$(stored .memory.swap)" -1
    [ "$(value_of memory memory.memsw.limit_in_bytes -)" -gt 1000000000000 ]
    is "$(stored .memory.limit)" -1
    [ "$(value_of memory memory.limit_in_bytes memory.max)" -gt 1000000000000 ]
}

@test "update: the flags for cpu, cpuset, pids" {
    needs_v1 cpu
    start_sleeper
    pf update --cpu-share 512 --cpu-quota 50000 --cpu-period 100000 --cpu-burst 1000 --cpuset-cpus 0 --cpuset-mems 0 --pids-limit 77 "$ID"
    is "$(value_of cpu cpu.shares -) $(value_of cpu cpu.cfs_quota_us -) $(value_of cpu cpu.cfs_period_us -) $(value_of cpu cpu.cfs_burst_us -)" "512 50000 100000 1000"
    is "$(value_of cpuset cpuset.cpus cpuset.cpus)" 0
    is "$(value_of pids pids.max pids.max)" 77
    # another process of the container finds the new limits; the stored configuration names them
    is "$(pf exec "$ID" grep Cpus_allowed_list /proc/self/status | cut -f2)" 0
    is "$(stored '.cpu.shares, .cpu.quota, .pids.limit, .cpu.cpus' | paste -sd,)" 512,50000,77,0
    pf update --cpu-quota -1 --pids-limit -1 "$ID"
    is "$(value_of cpu cpu.cfs_quota_us -) $(value_of pids pids.max pids.max)" "-1 max"
    is "$(stored '.cpu.quota, .cpu.shares' | paste -sd,)" -1,512
}

@test "update: a smaller period and quota in one, which the kernel takes in one order only" {
    needs_v1 cpu
    configure '.linux.resources.cpu = {quota: 900000, period: 1000000}'
    start_sleeper
    pf update --cpu-quota 9000 --cpu-period 10000 "$ID"
    is "$(value_of cpu cpu.cfs_quota_us -) $(value_of cpu cpu.cfs_period_us -)" "9000 10000"
    pf update --cpu-quota 900000 --cpu-period 1000000 "$ID"
    is "$(value_of cpu cpu.cfs_quota_us -) $(value_of cpu cpu.cfs_period_us -)" "900000 1000000"
}

@test "update: flags go over the document, zeros change nothing" {
    needs_v1 pids
    configure '.linux.resources = {pids: {limit: 50}, memory: {limit: 67108864}}'
    start_sleeper
    echo '{"pids": {"limit": 61}, "memory": {"limit": 0, "swap": 0}, "cpu": {"shares": 0, "cpus": ""}}' >"$WORK/resources.json"
    pf update -r "$WORK/resources.json" --pids-limit 62 "$ID"
    is "$(value_of pids pids.max pids.max)" 62
    is "$(value_of memory memory.limit_in_bytes memory.max)" 67108864
    is "$(stored '.pids.limit, .memory.limit' | paste -sd,)" 62,67108864
}

@test "update: block I/O, huge pages" {
    needs_v1 blkio
    start_sleeper
    device=$(awk '$1 ~ /^[0-9]+$/ && $4 !~ /[0-9]$/ { print $1 " " $2; exit }' /proc/partitions)
    [ -n "$device" ] || skip "no block device"
    read -r major minor <<<"$device"
    for rate in 1048576 2097152; do
        echo "{\"blockIO\": {\"throttleReadBpsDevice\": [{\"major\": $major, \"minor\": $minor, \"rate\": $rate}]}}" | pf update --resources - "$ID"
        is "$(value_of blkio blkio.throttle.read_bps_device -)" "$major:$minor $rate"
        is "$(stored '.blockIO.throttleReadBpsDevice | length')" 1
    done
    if grep -qw hugetlb "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/cgroup.controllers" 2>/dev/null; then
        echo '{"hugepageLimits": [{"pageSize": "2MB", "limit": 4194304}]}' | pf update --resources - "$ID"
        directory=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)$(sed -n 's/^0:://p' "/proc/$(state_of .pid)/cgroup")
        is "$(cat "$directory/hugetlb.2MB.max" "$directory/hugetlb.2MB.rsvd.max" | paste -sd,)" 4194304,4194304
        run pf update --resources <(echo '{"hugepageLimits": [{"pageSize": "3MB", "limit": 1}]}') "$ID"
        ended 1 "hugetlb.3MB.max"
    fi
}

@test "update: one that fails leaves the limits and the stored configuration as they were" {
    needs_v1 cpuset
    configure '.linux.resources.pids = {limit: 50} | .linux.resources.cpu = {shares: 300}'
    start_sleeper
    before=$(cat "$STATE/$ID/config.json")
    run pf update --pids-limit 60 --cpu-share 400 --cpuset-cpus 4000 "$ID"
    ended 1 "linux.resources.cpu.cpus"
    is "$(value_of cpu cpu.shares -) $(value_of pids pids.max pids.max)" "300 50"
    is "$(cat "$STATE/$ID/config.json")" "$before"
    is "$(state_of .status)" running
}

@test "update: bad input is one clear error" {
    start_sleeper
    run pf update --memory lots "$ID"
    ended 1 '--memory: expected -1 or a number of bytes such as 512m, found "lots"'
    run pf update --cpu-period -5 "$ID"
    ended 1 '--cpu-period: expected a number, found "-5"'
    run pf update --resources <(echo '{"pids": {"limit": "x"}}') "$ID"
    ended 1 "pids.limit: expected an integer, found a string"
    run pf update --resources <(echo '{"unified": {"../x": "1"}}') "$ID"
    ended 1 "unified: expected names of cgroup files as keys"
    run pf update --memory 10m --memory-swap 5m "$ID"
    ended 1 "linux.resources.memory.swap"
    run pf update --resources "$WORK/none" "$ID"
    ended 1 "$WORK/none"
    run pf update --blkio-weight 5 "$ID"
    ended 1 "blockIO.weight: expected an integer between 10 and 1000, found 5"
    run pf update --pids-limit 5 missing
    ended 1 "does not exist"
    is "$(state_of .status)" running
}

@test "update: checkBeforeUpdate refuses a limit below what is in use" {
    needs_v1 memory
    start_sleeper
    run pf update --resources <(echo '{"memory": {"limit": 4096, "checkBeforeUpdate": true}}') "$ID"
    ended 1 "checkBeforeUpdate"
    is "$(state_of .status)" running
}

@test "update: of a container that has ended is refused" {
    command_is true
    pf_create
    pf start "$ID"
    wait_status stopped
    run pf update --pids-limit 5 "$ID"
    ended 1 "container not running"
}

@test "update: the policy's limit of processes holds, and so do its devices" {
    needs_v1 pids
    command_is sleep 1000
    POLICY='' pf_create
    pf start "$ID"
    is "$(value_of pids pids.max pids.max)" 1024
    pf update --pids-limit -1 "$ID"
    is "$(value_of pids pids.max pids.max)" 1024
    pf update --pids-limit 70 "$ID"
    is "$(value_of pids pids.max pids.max)" 70
    pf update --cpu-share 512 "$ID"
    is "$(value_of pids pids.max pids.max)" 70
    list=$(value_of devices devices.list -)
    echo '{"devices": [{"allow": true, "access": "rwm"}]}' | pf update --resources - "$ID"
    lacks "$(value_of devices devices.list -)" "a *:* rwm"
    has_record device.removed
}

@test "unified: pids.max does not undo the policy's limit of processes" {
    configure '.linux.resources = {unified: {"pids.max": "max"}}'
    run env -u POLICY "$PINFOLD" explain --bundle "$BUNDLE"
    contains "$output" "pids.max"
}

@test "pause and resume: the processes stand still and go on" {
    script_is 'while :; do echo x >>work/count; sleep 0.02; done'
    pf_create
    pf start "$ID"
    wait_for test -s "$ROOT/work/count"
    pf pause "$ID"
    is "$(state_of .status)" paused
    before=$(wc -l <"$ROOT/work/count")
    sleep 0.3
    is "$(wc -l <"$ROOT/work/count")" "$before"
    run pf pause "$ID"
    ended 1 "cannot pause a container that is paused: expected running"
    run pf start "$ID"
    ended 1 "cannot start an already running container"
    run pf exec "$ID" true
    ended 255 "paused"
    run pf delete "$ID"
    ended 1 "not stopped: paused"
    pf resume "$ID"
    is "$(state_of .status)" running
    sleep 0.3
    [ "$(wc -l <"$ROOT/work/count")" -gt "$before" ]
    run pf resume "$ID"
    ended 1 "cannot resume a container that is running: expected paused"
    pf kill "$ID" KILL
    wait_status stopped
    run pf pause "$ID"
    ended 1 "container not running"
}

@test "exec --ignore-paused: it runs when the container is resumed" {
    start_sleeper
    pf pause "$ID"
    pf exec --ignore-paused "$ID" sh -c 'echo done >work/done' 3>&- &
    exec_pid=$!
    sleep 0.3
    [ ! -e "$ROOT/work/done" ]
    pf resume "$ID"
    wait "$exec_pid"
    is "$(cat "$ROOT/work/done")" "done"
}

@test "kill: a paused container ends, by KILL to it or to all of it" {
    start_sleeper
    pf pause "$ID"
    pf kill "$ID" KILL
    wait_status stopped
    pf delete "$ID"
    start_sleeper
    pf exec --detach "$ID" sleep 1000
    pf pause "$ID"
    pf kill --all "$ID" KILL
    wait_status stopped
}

@test "crun NEWS 1.29.1: a kill that fails leaves nothing frozen" {
    start_sleeper
    run pf kill --all "$ID" 99
    ended 1 "unknown signal"
    is "$(state_of .status)" running
    pf kill --all "$ID" CONT
    is "$(state_of .status)" running
    pf pause "$ID"
    pf kill --all "$ID" TERM # it is for when it is resumed
    is "$(state_of .status)" paused
    pf resume "$ID"
    is "$(state_of .status)" running
}

@test "delete --force: a paused container is gone" {
    start_sleeper
    pf pause "$ID"
    pf delete --force "$ID"
    run pf state "$ID"
    ended 1 "does not exist"
}
