#!/usr/bin/env bats
# What is left when the runtime is killed at any step of create, and what delete --force then finds. The steps are the
# fault points of src/container/fault.h, compiled into pinfold-faults only.
load helpers

setup() {
    setup_container
    FAULTS=${PINFOLD_FAULTS-}
    [ -x "$FAULTS" ] || skip "no build with fault points (make pinfold-faults)"
    command_is sleep 1000
    configure '.linux.resources.pids = {limit: 50}'
}
teardown() { teardown_container; }

# Kills create at STEP under POLICY, then deletes; the teardown looks for anything that is left.
killed_at() { # STEP
    local code=0
    PINFOLD_FAULT=$1 timeout -k 5 20 "$FAULTS" --root "$STATE" ${POLICY:+--policy "$POLICY"} ${MANAGER:+--cgroup-manager "$MANAGER"} create --bundle "$BUNDLE" \
        --pid-file "$WORK/pid" "$ID" </dev/null >"$WORK/stdout" 2>"$WORK/stderr" 3>&- || code=$?
    is "$code" 137
    # the container must not run on by itself
    run pf delete --force "$ID"
    ended 0
    run pf state "$ID"
    ended 1 "does not exist"
    # the id can be used again
    pf_create
    is "$(state_of .status)" created
}

# recorded and scope are steps of the systemd driver: systemd.bats has them. Those of update --policy are in egress_update.bats.
@test "runc #4534, #4645, #4735, #5153: every fault point that the sources have is tried here" {
    is "$(grep -rhoE 'fault_point\("[a-z-]+"\)' "$BATS_TEST_DIRNAME/../../src/container" | sed 's/.*"\(.*\)".*/\1/' | sort -u | xargs)" \
        "$(tr ' ' '\n' <<<"directory state cgroup cgroup-limits clone go warden begun hooks ready saved pid-file recorded scope \
            update-names update-keeper update-broker update-warden update-wall update-told update-stored" | sort | xargs)"
}

@test "agent: create killed at directory" { POLICY=agent; killed_at directory; }
@test "agent: create killed at state" { POLICY=agent; killed_at state; }
@test "agent: create killed at cgroup" { POLICY=agent; killed_at cgroup; }
@test "agent: create killed at cgroup-limits" { POLICY=agent; killed_at cgroup-limits; }
@test "agent: create killed at clone" { POLICY=agent; killed_at clone; }
@test "agent: create killed at warden" { POLICY=agent; killed_at warden; }
@test "agent: create killed at go" { POLICY=agent; killed_at go; }
@test "agent: create killed at begun" { POLICY=agent; killed_at begun; }
@test "agent: create killed at hooks" { POLICY=agent; killed_at hooks; }
@test "agent: create killed at ready" { POLICY=agent; killed_at ready; }
@test "agent: create killed at saved" { POLICY=agent; killed_at saved; }
@test "agent: create killed at pid-file" { POLICY=agent; killed_at pid-file; }
@test "unconfined: create killed at directory" { POLICY=unconfined; killed_at directory; }
@test "unconfined: create killed at state" { POLICY=unconfined; killed_at state; }
@test "unconfined: create killed at cgroup" { POLICY=unconfined; killed_at cgroup; }
@test "unconfined: create killed at cgroup-limits" { POLICY=unconfined; killed_at cgroup-limits; }
@test "unconfined: create killed at clone" { POLICY=unconfined; killed_at clone; }
@test "unconfined: create killed at go" { POLICY=unconfined; killed_at go; }
@test "unconfined: create killed at begun" { POLICY=unconfined; killed_at begun; }
@test "unconfined: create killed at hooks" { POLICY=unconfined; killed_at hooks; }
@test "unconfined: create killed at ready" { POLICY=unconfined; killed_at ready; }
@test "unconfined: create killed at saved" { POLICY=unconfined; killed_at saved; }
@test "unconfined: create killed at pid-file" { POLICY=unconfined; killed_at pid-file; }
# Init outlives its create from here on, and no cgroup tells who belongs to the container.
@test "agent, without a cgroup: create killed at ready" { POLICY=agent MANAGER=disabled; configure 'del(.linux.resources)'; killed_at ready; }
@test "unconfined, without a cgroup: create killed at ready" { POLICY=unconfined MANAGER=disabled; configure 'del(.linux.resources)'; killed_at ready; }
