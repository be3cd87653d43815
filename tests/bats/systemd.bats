#!/usr/bin/env bats
# The systemd cgroup driver. Most of it needs a machine that systemd runs, with cgroup v2: tests/vm has one.
load helpers

# These tests have a process-id namespace of their own, and systemd's private socket serves nobody whom it cannot see.
export SYSTEMCTL_FORCE_BUS=1

setup() {
    setup_container
    UNIT=pf-$ID.scope
    SLICE=pftest$BATS_TEST_NUMBER.slice
    configure --arg path "$SLICE:pf:$ID" '.linux.cgroupsPath = $path'
}
teardown() {
    local status=0
    teardown_container || status=$?
    [ ! -d /run/systemd/system ] || no_unit_left || status=1
    [ -z "${VICTIM-}" ] || { systemctl stop "$VICTIM"; rm -f "/run/systemd/system/$VICTIM"; } 2>/dev/null || :
    return $status
}

needs_systemd() {
    [ -d /run/systemd/system ] || skip "systemd does not run this machine"
    [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || skip "cgroup v2 is not alone on this machine"
}
needs() { # CONTROLLER
    grep -qw "$1" /sys/fs/cgroup/cgroup.controllers || skip "this machine's cgroup v2 has no $1 controller"
}
pf_systemd() { pf --systemd-cgroup "$@"; }
systemd_create() {
    pf_systemd create --bundle "$BUNDLE" "$ID" >"$WORK/stdout" 2>"$WORK/stderr" </dev/null
}
systemd_sleeper() {
    command_is sleep 1000
    systemd_create && pf start "$ID"
}
property() { # NAME [UNIT]
    systemctl show -P "$1" "${2:-$UNIT}"
}
cgroup_file() { cat "/sys/fs/cgroup/$SLICE/$UNIT/$1"; }
no_unit_left() {
    local found
    found=$(systemctl list-units --all --plain --no-legend "*$ID*")
    [ -z "$found" ] || { echo "left behind: $found"; return 1; }
}

@test "init and what is executed later are in the scope that cgroupsPath names" {
    needs_systemd
    systemd_sleeper
    is "$(sed -n 's/^0:://p' "/proc/$(state_of .pid)/cgroup")" "/$SLICE/$UNIT"
    is "$(property ActiveState)" active
    is "$(property Slice)" "$SLICE"
    is "$(property Delegate)" yes
    is "$(property CollectMode)" inactive-or-failed
    is "$(property Description)" "pinfold container $ID"
    pf exec --detach --pid-file "$WORK/pid" "$ID" sleep 1000
    is "$(sed -n 's/^0:://p' "/proc/$(cat "$WORK/pid")/cgroup")" "/$SLICE/$UNIT"
    is "$(cgroup_file cgroup.procs | wc -l)" 2
    pf delete --force "$ID"
    is "$(property LoadState)" not-found
    [ ! -e "/sys/fs/cgroup/$SLICE/$UNIT" ]
}

@test "without a cgroupsPath: pinfold-ID.scope in system.slice" {
    needs_systemd
    configure 'del(.linux.cgroupsPath)'
    systemd_sleeper
    is "$(sed -n 's/^0:://p' "/proc/$(state_of .pid)/cgroup")" "/system.slice/pinfold-$ID.scope"
}

@test "the container sees its own cgroup and none above it" {
    needs_systemd
    configure '.linux.namespaces += [{type: "cgroup"}] | .linux.namespaces |= unique_by(.type) |
        .mounts |= map(select(.destination != "/sys/fs/cgroup")) + [{destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: ["ro", "nosuid", "noexec", "nodev"]}]'
    script_is 'cat /proc/self/cgroup; cat /sys/fs/cgroup/cgroup.procs'
    run pf_systemd run --bundle "$BUNDLE" "$ID"
    ended 0 "0::/"
    matches "$output" $'\n1(\n|$)'
    lacks "$output" "$UNIT"
}

@test "pause, resume, kill --all, ps, update and a second run under the same name" {
    needs_systemd
    systemd_sleeper
    pf pause "$ID"
    is "$(state_of .status)" paused
    pf resume "$ID"
    is "$(state_of .status)" running
    is "$(pf ps --format json "$ID" | jq -c .)" "[$(state_of .pid)]"
    pf kill --all "$ID" KILL
    wait_status stopped
    pf delete "$ID"
    systemd_sleeper
    is "$(state_of .status)" running
}

@test "runc #3780, #3806: a unit of the same name that is another's is an error, and stays as it is" {
    needs_systemd
    local other first=$ID-first
    command_is sleep 1000
    pf_systemd create --bundle "$BUNDLE" "$first" >"$WORK/stdout" 2>"$WORK/stderr" </dev/null
    other=$(cgroup_file cgroup.procs)
    run systemd_create
    ended 1
    contains "$(cat "$WORK/stderr")" "systemd scope $UNIT (linux.cgroupsPath):"
    run pf state "$ID"
    ended 1 "does not exist"
    is "$(cgroup_file cgroup.procs)" "$other"
    is "$(property ActiveState)" active
    is "$(state_of .status "$first")" created
}

@test "crun #1138, runc #3932: a unit that was left failed is no obstacle, and a container that systemd ended leaves none" {
    needs_systemd
    # one that systemd ends, and keeps
    configure '.annotations = {"org.systemd.property.RuntimeMaxUSec": "uint64 200000", "org.systemd.property.KillSignal": "9", "org.systemd.property.CollectMode": "\u0027inactive\u0027"}'
    command_is sleep 1000
    pf_systemd create --bundle "$BUNDLE" "$ID-first" >"$WORK/stdout" 2>"$WORK/stderr" </dev/null
    wait_for systemctl is-failed --quiet "$UNIT"
    configure '.annotations = {"org.systemd.property.RuntimeMaxUSec": "uint64 1000000", "org.systemd.property.KillSignal": "9"}'
    systemd_sleeper
    is "$(property ActiveState)" active
    wait_status stopped
    wait_for no_unit_left
    pf delete "$ID"
    systemd_sleeper
}

@test "cri-o #9536: accounting of CPU, memory, tasks and I/O is on without a limit" {
    needs_systemd
    configure 'del(.linux.resources)'
    systemd_sleeper
    local name
    for name in CPUAccounting MemoryAccounting TasksAccounting IOAccounting; do
        is "$(property $name)" yes
    done
}

# bats test_tags=controllers
@test "runc #4949: pids.limit 0 is a limit, 1 under systemd" {
    needs_systemd
    needs pids
    configure '.linux.resources.pids = {limit: 0}'
    systemd_sleeper
    is "$(property TasksMax)" 1
    is "$(cgroup_file pids.max)" 1
}

# bats test_tags=controllers
@test "crun #1721, runc #4772: the usual 1024 shares are the usual weight of 100, the ends are the ends" {
    needs_systemd
    needs cpu
    local pair
    for pair in "1024 100" "2 1" "262144 10000"; do
        configure --argjson shares "${pair% *}" '.linux.resources.cpu = {shares: $shares}'
        systemd_sleeper
        is "$(property CPUWeight)" "${pair#* }"
        is "$(cgroup_file cpu.weight)" "${pair#* }"
        pf delete --force "$ID"
    done
}

# bats test_tags=controllers
@test "runc #3808: AllowedCPUs names the CPUs that cpuset.cpus has" {
    needs_systemd
    needs cpuset
    local last=$(($(nproc) - 1))
    configure --arg last "$last" '.linux.resources.cpu = {cpus: $last, mems: "0"}'
    systemd_sleeper
    is "$(property AllowedCPUs)" "$last"
    is "$(property AllowedMemoryNodes)" 0
    is "$(cgroup_file cpuset.cpus)" "$last"
    systemctl daemon-reload
    is "$(cgroup_file cpuset.cpus)" "$last"
}

@test "runc #4853: many containers that start at once all get their scope" {
    needs_systemd
    local i pids=() status=0
    command_is sleep 1000
    configure 'del(.linux.cgroupsPath)'
    for i in $(seq 30); do
        LIMIT=120 pf_systemd create --bundle "$BUNDLE" "$ID-$i" >"$WORK/stdout.$i" 2>"$WORK/stderr.$i" </dev/null &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || status=1
    done
    cat "$WORK"/stderr.*
    is "$status" 0
    is "$(systemctl list-units --plain --no-legend "pinfold-$ID-*.scope" | wc -l)" 30
    for i in $(seq 30); do
        pf delete --force "$ID-$i"
    done
}

@test "podman's annotations KillSignal and TimeoutStopUSec are set, with the agent policy too" {
    needs_systemd
    configure '.annotations = {"org.systemd.property.KillSignal": "10", "org.systemd.property.TimeoutStopUSec": "uint64 7000000"}'
    for POLICY in unconfined agent; do
        systemd_sleeper
        is "$(property KillSignal)" 10
        is "$(property TimeoutStopUSec)" 7s
        pf delete --force "$ID"
    done
}

@test "runc #5133: a bad property is one clear error, and nothing is left" {
    needs_systemd
    local value
    for value in "uint64" "[" "'" "(1,2)" "uint64 -1"; do
        configure --arg value "$value" '.annotations["org.systemd.property.TimeoutStopUSec"] = $value'
        run systemd_create
        ended 1
        contains "$(cat "$WORK/stderr")" "annotations.org.systemd.property.TimeoutStopUSec: "
        is "$(wc -l <"$WORK/stderr")" 1
        no_unit_left
    done
    configure '.annotations = {"org.systemd.property.NoSuchProperty": "1"}'
    run systemd_create
    ended 1
    contains "$(cat "$WORK/stderr")" "NoSuchProperty"
    configure '.annotations = {"org.systemd.property.PIDs": "[uint32 1]"}'
    run systemd_create
    ended 1
    contains "$(cat "$WORK/stderr")" "the runtime's own to set"
}

@test "an image's annotation cannot stop a service of the machine" {
    needs_systemd
    VICTIM=pf-victim-$$.service
    printf '[Service]\nExecStart=sleep 1000\n' >"/run/systemd/system/$VICTIM"
    systemctl start "$VICTIM"
    configure --arg unit "$VICTIM" '.annotations["org.systemd.property.Conflicts"] = "[\u0027\($unit)\u0027]"'
    POLICY=agent
    systemd_sleeper
    is "$(property ActiveState "$VICTIM")" active
    has_record policy.annotation.ignored '.message | contains("Conflicts")'
    pf delete --force "$ID"
    # so much for what the policy is against
    POLICY=unconfined
    systemd_sleeper
    wait_for sh -c "! systemctl is-active --quiet $VICTIM"
}

# bats test_tags=controllers
@test "limits are systemd's properties and the cgroup's values, also after a reload" {
    needs_systemd
    needs memory
    needs cpu
    needs pids
    configure '.linux.resources = {memory: {limit: 67108864, reservation: 33554432, swap: 134217728},
        cpu: {shares: 512, quota: 12345, period: 50000}, pids: {limit: 77}, unified: {"memory.high": "50331648"}}'
    systemd_sleeper
    is "$(property MemoryMax)" 67108864
    is "$(property MemoryLow)" 33554432
    is "$(property MemoryHigh)" 50331648
    is "$(property MemorySwapMax)" 67108864
    is "$(property CPUWeight)" 59
    is "$(property CPUQuotaPerSecUSec)" 250ms
    is "$(property CPUQuotaPeriodUSec)" 50ms
    is "$(property TasksMax)" 77
    is "$(cgroup_file memory.max)" 67108864
    is "$(cgroup_file memory.high)" 50331648
    is "$(cgroup_file memory.low)" 33554432
    is "$(cgroup_file cpu.max)" "12345 50000"
    is "$(cgroup_file cpu.weight)" 59
    is "$(cgroup_file pids.max)" 77
    systemctl daemon-reload
    is "$(cgroup_file memory.max)" 67108864
    is "$(cgroup_file pids.max)" 77
    is "$(cgroup_file cpu.weight)" 59
}

# bats test_tags=controllers
@test "I/O limits are the cgroup's values, also after a reload" {
    needs_systemd
    needs io
    local disk
    disk=$(awk '$1 ~ /^[0-9]+$/ && ($4 !~ /[0-9]$/ || $4 ~ /^nvme[0-9]+n[0-9]+$/) { print $1, $2; exit }' /proc/partitions)
    [ -n "$disk" ] || skip "no disk to limit"
    configure --argjson major "${disk% *}" --argjson minor "${disk#* }" '{major: $major, minor: $minor} as $disk | .linux.resources.blockIO = {weight: 500,
        throttleReadBpsDevice: [$disk + {rate: 1048576}], throttleWriteIOPSDevice: [$disk + {rate: 100}]}'
    systemd_sleeper
    is "$(property IOWeight)" 4950
    is "$(cgroup_file io.max)" "${disk/ /:} rbps=1048576 wbps=max riops=max wiops=100"
    systemctl daemon-reload
    is "$(cgroup_file io.max)" "${disk/ /:} rbps=1048576 wbps=max riops=max wiops=100"
}

# bats test_tags=devices
@test "device rules are in force in the scope, also after an update and a reload" {
    needs_systemd
    grep -q " tun$" /proc/misc || skip "the test's device is missing: c 10:200, tun" # opening it asks for no capability
    local rules
    configure '.linux.devices = [{path: "/dev/tun2", type: "c", major: 10, minor: 200, fileMode: 438}] | .linux.resources.devices = [{allow: true, access: "rwm"}]'
    systemd_sleeper
    is "$(pf exec "$ID" sh -c 'echo x >/dev/null && : <>/dev/tun2 && echo both')" both # without a rule against it, it works
    pf delete --force "$ID"
    # one that systemd can say too (DeviceAllow), and one that only the runtime's own program can
    for rules in '[{allow: false, access: "rwm"}]' '[{allow: true, access: "rwm"}, {allow: false, type: "c", major: 10, minor: 200, access: "w"}]'; do
        configure ".linux.resources.devices = $rules"
        systemd_sleeper
        denied
        systemctl daemon-reload
        denied
        pf update --resources - "$ID" <<<'{"unified": {"cgroup.max.depth": "7"}}'
        denied
        pf delete --force "$ID"
    done
}
denied() {
    run pf exec "$ID" sh -c 'echo x >/dev/null && echo null; : <>/dev/tun2 && echo both'
    contains "$output" null
    contains "$output" "Operation not permitted"
    lacks "$output" both
}

# bats test_tags=controllers
@test "an update changes the unit and the cgroup, and what is refused changes neither" {
    needs_systemd
    needs memory
    needs pids
    needs cpu
    configure '.linux.resources = {memory: {limit: 67108864}, cpu: {quota: 50000, period: 100000}}'
    systemd_sleeper
    pf update --resources - "$ID" <<<'{"memory":{"limit":134217728},"pids":{"limit":33},"cpu":{"period":200000}}'
    is "$(property MemoryMax)" 134217728
    is "$(cgroup_file memory.max)" 134217728
    is "$(property TasksMax)" 33
    is "$(cgroup_file pids.max)" 33
    is "$(cgroup_file cpu.max)" "50000 200000"
    is "$(property CPUQuotaPerSecUSec)" 250ms
    systemctl daemon-reload
    is "$(cgroup_file pids.max)" 33
    run pf update --resources - "$ID" <<<'{"memory":{"limit":4096,"checkBeforeUpdate":true}}'
    ended 1 "checkBeforeUpdate"
    is "$(property MemoryMax)" 134217728
    is "$(cgroup_file memory.max)" 134217728
}

# bats test_tags=controllers
@test "a memory limit is in force: an allocation beyond it ends with 137" {
    needs_systemd
    needs memory
    configure '.linux.resources.memory = {limit: 33554432, swap: 33554432}'
    command_is tail /dev/zero
    run pf_systemd run --bundle "$BUNDLE" "$ID"
    ended 137
}

@test "a create that is killed at any step leaves a scope that delete --force finds" {
    needs_systemd
    [ -x "${PINFOLD_FAULTS-}" ] || skip "the build with fault points is not there"
    local step
    command_is sleep 1000
    for step in state recorded scope go ready saved; do
        PINFOLD_FAULT=$step PINFOLD=$PINFOLD_FAULTS systemd_create && { echo "create was not killed at $step"; return 1; }
        pf delete --force "$ID"
        [ ! -e "/sys/fs/cgroup/$SLICE/$UNIT" ]
        wait_for no_unit_left
    done
}

@test "names that systemd or a path could misread are refused" {
    local path
    for path in /a/b a:b a:b:c:d system.slice:p: system.slice:p:../x system:p:n ../x.slice:p:n a--b.slice:p:n 'a.slice:p:n@1'; do
        configure --arg path "$path" '.linux.cgroupsPath = $path'
        run systemd_create
        ended 1
        contains "$(cat "$WORK/stderr")" "linux.cgroupsPath: \""
        is "$(wc -l <"$WORK/stderr")" 1
        run pf state "$ID"
        ended 1 "does not exist"
    done
}

@test "without cgroup v2 alone, the systemd driver is one clear error" {
    [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ] || skip "this machine has cgroup v2 alone"
    run systemd_create
    ended 1
    contains "$(cat "$WORK/stderr")" "the systemd cgroup driver needs cgroup v2"
    is "$(wc -l <"$WORK/stderr")" 1
    run pf state "$ID"
    ended 1 "does not exist"
}

@test "the helper is found beside the program, never by PATH, and only if nobody else may change it" {
    needs_systemd
    mkdir "$WORK/alone"
    cp "$PINFOLD" "$WORK/alone/pinfold"
    PINFOLD=$WORK/alone/pinfold PATH=$(dirname "$PINFOLD"):$PATH run systemd_create
    ended 1
    contains "$(cat "$WORK/stderr")" "needs the helper pinfold-systemd beside pinfold or in "
    is "$("$WORK/alone/pinfold" features | jq .linux.cgroup.systemd)" false
    cp "$(dirname "$PINFOLD")/pinfold-systemd" "$WORK/alone/"
    chmod 777 "$WORK/alone/pinfold-systemd"
    PINFOLD=$WORK/alone/pinfold run systemd_create
    ended 1
    chmod 755 "$WORK/alone/pinfold-systemd"
    is "$("$WORK/alone/pinfold" features | jq .linux.cgroup.systemd)" true
    PINFOLD=$WORK/alone/pinfold systemd_create
}

@test "where systemd does not answer, create says so and leaves nothing" {
    needs_systemd
    command_is sleep 1000
    run unshare -m sh -c 'mount -t tmpfs t /run/systemd && mount -t tmpfs t /run/dbus && exec "$@"' sh \
        timeout 60 "$PINFOLD" --root "$STATE" --policy unconfined --systemd-cgroup create --bundle "$BUNDLE" "$ID"
    ended 1 "systemd cannot be reached at unix:path=/run/systemd/private: it does not run here"
    run pf state "$ID"
    ended 1 "does not exist"
}
