#!/usr/bin/env bats
# `pinfold events` in the shape that callers read, and `pinfold ps`.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

has() { # CONTROLLER of v1
    grep -qE "(^|,)$1(,|\$)" <(cut -d: -f2 /proc/self/cgroup)
}

freezer_or_unified() { # the container's directory in some hierarchy
    local line
    line=$(grep -E '^(0::|[0-9]+:freezer:)' "/proc/$(state_of .pid)/cgroup" | sort -n | tail -n 1)
    case $line in
    0::*) echo "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)${line#0::}" ;;
    *) echo "/sys/fs/cgroup/freezer${line##*:}" ;;
    esac
}

@test "events --stats: one line with what the container uses" {
    configure '.linux.resources = {memory: {limit: 67108864}, pids: {limit: 55}}'
    script_is 'i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; exec sleep 1000'
    pf_create
    pf start "$ID"
    wait_for grep -q sleep "/proc/$(state_of .pid)/cmdline"
    run pf events --stats "$ID"
    ended 0
    is "${#lines[@]}" 1
    is "$(jq -r '.type + " " + .id' <<<"$output")" "stats $ID"
    is "$(jq '.data.cpu.usage.total > 1000000 and (.data.cpu.usage | has("kernel") and has("user"))' <<<"$output")" true
    is "$(jq -c '.data.cpu.throttling | keys' <<<"$output")" '["periods","throttledPeriods","throttledTime"]'
    is "$(jq '[.data.network_interfaces[].Name] | index("lo") != null' <<<"$output")" true
    if has pids; then is "$(jq -c '.data.pids' <<<"$output")" '{"current":1,"limit":55}'; fi
    if has memory; then
        is "$(jq '.data.memory.usage.limit' <<<"$output")" 67108864
        is "$(jq '.data.memory.usage.usage > 4096 and .data.memory.usage.max >= .data.memory.usage.usage and (.data.memory.raw.rss >= 0)' <<<"$output")" true
        is "$(jq '.data.memory | has("cache") and has("swap") and has("kernel") and has("kernelTCP")' <<<"$output")" true
    fi
    if has blkio; then is "$(jq '.data.blkio | has("ioServiceBytesRecursive") and has("ioServicedRecursive")' <<<"$output")" true; fi
    if has cpuacct; then is "$(jq '[.data.cpu.usage.percpu[]] | add == 0 or length == '"$(nproc --all)" <<<"$output")" true; fi
}

@test "events: no limit of processes is 0, as callers know it" {
    has pids || skip "no v1 pids controller"
    configure '.linux.resources = {pids: {limit: -1}}'
    start_sleeper
    is "$(pf events --stats "$ID" | jq .data.pids.limit)" 0
}

@test "events --interval: a line each time, until the container ends" {
    start_sleeper
    LIMIT=20 pf events --interval 100ms "$ID" >"$WORK/events" 3>&- &
    events=$!
    wait_for sh -c "[ \$(wc -l <$WORK/events) -ge 3 ]"
    pf kill "$ID" KILL
    wait "$events"
    is "$(jq -r .type "$WORK/events" | sort -u)" stats
}

@test "events: memory that runs out is an event" {
    has memory || skip "no v1 memory controller"
    configure '.linux.resources = {memory: {limit: 33554432, swap: 33554432}}'
    script_is 'trap "" TERM; while [ ! -e work/go ]; do sleep 0.1; done; tail /dev/zero; exec sleep 1000'
    pf_create
    pf start "$ID"
    LIMIT=20 pf events --interval=1h "$ID" >"$WORK/events" 3>&- &
    events=$!
    wait_for test -s "$WORK/events"
    touch "$ROOT/work/go"
    wait_for grep -q oom "$WORK/events"
    is "$(jq -c 'select(.type == "oom")' "$WORK/events" | head -n 1)" "{\"type\":\"oom\",\"id\":\"$ID\"}"
    pf kill "$ID" KILL
    wait "$events"
}

@test "events: a container that has ended, and bad input, are one clear error" {
    run pf events --interval soon "$ID"
    ended 1 '--interval: expected a time such as 5s or 500ms, found "soon"'
    run pf events --stats "$ID"
    ended 1 "does not exist"
    pf_create
    pf start "$ID"
    wait_status stopped
    run pf events --stats "$ID"
    ended 1 "container not running"
}

@test "ps: the processes of the container, as JSON, as a table, and by the machine's ps" {
    start_sleeper
    pf exec --detach "$ID" sh -c $'sleep 1000; : \033[31m'
    wait_for sh -c "[ \$(wc -l <$(freezer_or_unified)/cgroup.procs) = 3 ]"
    pid=$(state_of .pid)
    run pf ps --format json "$ID"
    ended 0
    is "$(jq "length == 3 and index($pid) != null" <<<"$output")" true
    run pf ps "$ID"
    ended 0
    is "${#lines[@]}" 4
    matches "${lines[0]}" '^UID +PID +PPID +C +STIME +TTY +TIME +CMD$'
    is "$(awk -v pid="$pid" '$2 == pid { print $1, $2, $8, $9 }' <<<"$output")" "$(id -un) $pid sleep 1000"
    lacks "$output" $'\033'
    [ -x /usr/bin/ps ] || [ -x /bin/ps ] || skip "this machine has no ps"
    run pf ps --format table "$ID" -o pid,args
    ended 0
    is "${#lines[@]}" 4
    contains "$output" "$pid sleep 1000"
    run pf ps "$ID" -o args
    ended 1 "no column PID"
}

@test "ps: users by the names that the machine's passwd has, else by their numbers" {
    configure '.process.user = {uid: 54321, gid: 1}'
    start_sleeper
    pf exec --detach --user 65534 "$ID" sleep 999
    wait_for sh -c "[ \$(wc -l <$(freezer_or_unified)/cgroup.procs) = 2 ]"
    is "$(pf ps "$ID" | awk 'NR > 1 { print $1, $9 }' | sort | paste -sd,)" "54321 1000,$(id -un 65534) 999"
}

@test "ps: a container that is not there, a format that is none" {
    run pf ps missing
    ended 1 "does not exist"
    start_sleeper
    run pf ps --format xml "$ID"
    ended 1 'expected table or json, found "xml"'
}
