#!/usr/bin/env bats
# The supervisor of a running container: what it holds, what happens when it is lost, when it goes.
load helpers

setup() {
    setup_container
    POLICY=''
}
teardown() { teardown_container; }

# The one that observes: it has the seccomp listener.
observer() {
    local pid
    for pid in $(own_processes); do
        ! ls -l "/proc/$pid/fd" 2>/dev/null | grep -q 'seccomp notify' || { echo "$pid"; return; }
    done
}

@test "one stays beside the container, with no_new_privs" {
    start_sleeper
    pid=$(observer)
    [ -n "$pid" ]
    is "$(sed -n 's/^NoNewPrivs:\t//p' "/proc/$pid/status")" 1
}

@test "it has a filter of its own, and it and its guardian no capability beyond what they observe with" {
    start_sleeper
    for pid in $(own_processes); do
        # the guardian reads nothing that a container has written
        [ "$(cat "/proc/$pid/comm")" = pinfold-guard ] || is "$(sed -n 's/^Seccomp:\t//p' "/proc/$pid/status")" 2
        is "$(sed -n 's/^NoNewPrivs:\t//p' "/proc/$pid/status")" 1
        # kill, net_admin, dac_read_search, sys_ptrace: 5, 12, 2, 19; the guardian: kill
        [[ $(sed -n 's/^CapPrm:\t//p' "/proc/$pid/status") =~ ^(0000000000081024|0000000000000020)$ ]]
        is "$(sed -n 's/^CapInh:\t//p' "/proc/$pid/status")" 0000000000000000
    done
}

@test "it has no terminal, no standard stream of the engine, and is in another session" {
    start_sleeper
    for pid in $(own_processes); do
        is "$(ls -l "/proc/$pid/fd" | grep -E "$WORK/(stdout|stderr)|/dev/pts|/dev/tty")" ""
        [ "$(cut -d' ' -f6 "/proc/$pid/stat")" != "$(cut -d' ' -f6 /proc/self/stat)" ]
    done
}

@test "it is outside the container's memory cgroup, and no likelier to be killed than the caller" {
    start_sleeper
    for pid in $(own_processes); do
        lacks "$(cat "/proc/$pid/cgroup")" "$ID"
        [ "$(cat "/proc/$pid/oom_score_adj")" -le "$(cat /proc/self/oom_score_adj)" ]
    done
}

@test "it holds no environment value and no secret" {
    configure '.process.env += ["GITHUB_TOKEN=fake4711"]'
    start_sleeper
    for pid in $(own_processes); do
        in_none fake4711 "/proc/$pid/environ" "/proc/$pid/cmdline"
    done
}

@test "it is gone soon after the container" {
    start_sleeper
    kill -9 "$(state_of .pid)"
    for try in $(seq 20); do
        [ -n "$(own_processes)" ] || break
        sleep 0.05
    done
    is "$(own_processes)" ""
}

@test "one that a busy machine holds up when the container ends still writes the end" {
    start_sleeper
    warden=$(observer) pid=$(state_of .pid)
    kill -STOP "$warden"
    kill -9 "$pid"
    sleep 0.4 # longer than the guardian waits for one that sleeps
    kill -CONT "$warden"
    wait_status stopped
    has_record container.ended
    is "$(records '.status_detail == "warden.lost"')" ""
}

@test "it is lost: the container is stopped within a second, and the loss is recorded" {
    start_sleeper
    pid=$(state_of .pid)
    kill -9 "$(observer)"
    for try in $(seq 10); do
        [ -d "/proc/$pid" ] && [ "$(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null)" != Z ] || break
        sleep 0.1
    done
    wait_status stopped
    [ "$try" -lt 10 ]
    has_record warden.lost
}

@test "without it there is no exec" {
    start_sleeper
    for pid in $(own_processes); do kill -9 "$pid" 2>/dev/null || :; done # the first one may take the others along
    run pf exec "$ID" true
    [ "$status" = 255 ]
}

@test "a container that is killed while created leaves none" {
    pf_create
    [ -n "$(own_processes)" ]
    pf delete --force "$ID"
    for try in $(seq 20); do
        [ -n "$(own_processes)" ] || break
        sleep 0.05
    done
    is "$(own_processes)" ""
}

@test "a reader of the engine sees the end of the container's output at once" {
    script_is 'echo said'
    SECONDS=0
    is "$(pf_run)" said
    [ $SECONDS -lt 3 ]
}

@test "fifty runs leave nothing and take no descriptor with them" {
    before=$(ls /proc/self/fd | wc -l)
    for number in $(seq 50); do
        pf_run >/dev/null
    done
    is "$(ls /proc/self/fd | wc -l)" "$before"
    is "$(own_processes)" ""
}
