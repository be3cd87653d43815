#!/usr/bin/env bats
# What the suites of other runtimes and of the specification found (docs/conformance.md).

load helpers
setup() { setup_container; }
teardown() {
    local frozen=/sys/fs/cgroup/freezer/$ID-frozen
    if [ -d "$frozen" ]; then
        echo THAWED >"$frozen/freezer.state"
        rmdir "$frozen" || :
    fi
    teardown_container
}

@test "delete --force ends an init that somebody else has moved into a frozen cgroup, and leaves that cgroup frozen" {
    local frozen=/sys/fs/cgroup/freezer/$ID-frozen
    [ -e /sys/fs/cgroup/freezer/tasks ] || skip "no freezer of cgroup v1"
    mkdir "$frozen"
    start_sleeper
    local init
    init=$(state_of .pid)
    echo "$init" >"$frozen/cgroup.procs"
    echo FROZEN >"$frozen/freezer.state"
    kill -9 "$init"
    sleep 0.3
    [ -d "/proc/$init" ] # the trap works: SIGKILL alone does not end it
    pf delete --force "$ID"
    [ ! -d "/proc/$init" ]
    [ "$(cat "$frozen/freezer.state")" = FROZEN ]
    rmdir "$frozen"
}
