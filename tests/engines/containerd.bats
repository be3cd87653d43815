#!/usr/bin/env bats
# pinfold below containerd's shim, by `ctr`. The agent policy where a test does not say RUNTIME=pinfold-unconfined.

load engine.bash
load containerd.bash

bats_require_minimum_version 1.5.0

setup_file() {
    engine_begin containerd ctr script jq python3
    containerd_begin
    ctr images import "$HOUSE/image.tar" >/dev/null
}

teardown_file() {
    engine_end
}

setup() {
    NAME=t$BATS_TEST_NUMBER-$$
}

# Nothing of the container is left after its deletion.
teardown() {
    [ -n "$(ctr containers ls -q "id==$NAME" 2>/dev/null)" ] || return 0
    ctr task delete -f "$NAME" >/dev/null 2>&1 || :
    ctr containers delete "$NAME"
    nothing_left_of "$NAME"
}

ctr_run() { # OPTION... IMAGE NAME COMMAND...
    ctr run --runtime io.containerd.runc.v2 --runc-binary "$(runtime_binary "${RUNTIME:-pinfold}")" "$@"
}
ctr_on_terminal() {
    inside script -qec "stty rows 33 cols 77; $(printf '%q ' timeout --foreground -k 5 60 ctr -a "$SOCKET" "$@")" /dev/null </dev/null
}
sleeper() { # [OPTION...]
    ctr_run -d "$@" "$IMAGE" "$NAME" sleep 1000
}
ctr_exec() { # OPTION... COMMAND...
    ctr task exec --exec-id "e$RANDOM$RANDOM" "$@"
}
status_of() { # NAME
    ctr task ls | awk -v name="$1" '$1 == name { print $3 }'
}
cgroup_of() { # CONTROLLER FILE: what is in it
    cat "/proc/$HOLDER/root/sys/fs/cgroup/$1/default/$NAME/$2"
}

@test "exit codes of the command arrive: 0, 3, 137 by a signal" {
    run ctr_run --rm "$IMAGE" "$NAME" true
    ended 0
    run ctr_run --rm "$IMAGE" "$NAME" sh -c 'exit 3'
    ended 3
    run ctr_run --rm "$IMAGE" "$NAME" sh -c 'sleep 100 & kill -9 $!; wait $!'
    ended 137
}

@test "a command that is not there, one that may not be executed: the shim hands on what pinfold says" {
    for RUNTIME in pinfold pinfold-unconfined; do
        run ctr_run --rm "$IMAGE" "$NAME" no-such-command
        ended 1 "executable file not found in \$PATH"
        run ctr_run --rm "$IMAGE" "$NAME" /etc/passwd
        ended 1 "permission denied"
        is "$(ctr containers ls -q)" ""
    done
}

@test "standard streams, and a terminal" {
    is "$(ctr_run --rm "$IMAGE" "$NAME" sh -c 'read word; echo "got $word"; echo wrong >&2' 2>/dev/null <<<pinfold)" "got pinfold"
    run ctr_on_terminal run --runtime io.containerd.runc.v2 --runc-binary "$PINFOLD" --rm -t "$IMAGE" "$NAME" sh -c 'tty; sleep 1; stty size; exit 4'
    ended 4 /dev/pts/0
    contains "$output" "33 77"
}

@test "exec: output, exit codes, directory, user, a missing command, a terminal, the container's restrictions" {
    sleeper
    is "$(ctr_exec "$NAME" echo from inside)" "from inside"
    is "$(ctr_exec --cwd /tmp --user 1000 "$NAME" sh -c 'id -u; pwd')" $'1000\n/tmp'
    is "$(ctr_exec "$NAME" cat <<<"through cat")" "through cat"
    run ctr_exec "$NAME" sh -c 'exit 5'
    ended 5
    run ctr_exec "$NAME" no-such-command
    ended 1 "executable file not found in \$PATH"
    run ctr_on_terminal task exec -t --exec-id terminal "$NAME" sh -c 'tty; exit 6'
    ended 6 /dev/pts/
    run ctr_exec "$NAME" sh -c 'grep -E "^(CapBnd|NoNewPrivs|Seccomp):" /proc/self/status; touch /usr/x'
    ended 1 "Read-only file system"
    contains "$output" $'CapBnd:\t00000000800004fb\nNoNewPrivs:\t1\nSeccomp:\t2'
}

@test "pause, resume, ps, metrics, kill, wait, delete" {
    ctr_run -d --memory-limit 67108864 --cpus 0.5 "$IMAGE" "$NAME" sh -c 'while :; do :; done'
    is "$(cgroup_of memory memory.limit_in_bytes)" 67108864
    is "$(cgroup_of cpu cpu.cfs_quota_us)" 50000
    is "$(cgroup_of pids pids.max)" 1024 # the agent policy's
    pid=$(ctr task ls | awk -v name="$NAME" '$1 == name { print $2 }')
    is "$(ctr task ps "$NAME" | awk 'NR > 1 { print $1 }')" "$pid"
    is "$(ctr task metrics --format json "$NAME" | jq '.pids.current, .memory.usage.limit' | xargs)" "1 67108864"
    ctr task pause "$NAME"
    is "$(status_of "$NAME")" PAUSED
    stands_still "$pid"
    ctr task resume "$NAME"
    is "$(status_of "$NAME")" RUNNING
    is "$(ctr_exec "$NAME" echo again)" again
    ctr task kill -s SIGKILL "$NAME"
    for try in $(seq 50); do [ "$(status_of "$NAME")" != STOPPED ] || break; sleep 0.1; done
    run ctr_exec "$NAME" true
    [ "$status" != 0 ]
    contains "$(ctr task delete "$NAME" 2>&1)" "exit code 137"
    is "$(status_of "$NAME")" ""
    # and once more in the same container
    run ctr task start -d "$NAME"
    ended 0
    is "$(ctr_exec "$NAME" echo once more)" "once more"
}

@test "kill with a signal that the command catches; the log file; kill --all" {
    ctr_run -d --log-uri "file://$HOUSE/tmp/$NAME.log" "$IMAGE" "$NAME" sh -c 'trap "echo caught; exit 9" USR1; echo begun; while :; do sleep 0.1; done'
    for try in $(seq 50); do [ ! -s "$HOUSE/tmp/$NAME.log" ] || break; sleep 0.1; done
    ctr task kill -s SIGUSR1 "$NAME"
    for try in $(seq 50); do [ "$(status_of "$NAME")" != STOPPED ] || break; sleep 0.1; done
    is "$(cat "$HOUSE/tmp/$NAME.log")" $'begun\ncaught'
    contains "$(ctr task delete "$NAME" 2>&1)" "exit code 9"
    ctr task start -d "$NAME"
    ctr_exec -d "$NAME" sleep 500
    ctr task kill -a -s SIGKILL "$NAME"
    for try in $(seq 50); do [ "$(status_of "$NAME")" != STOPPED ] || break; sleep 0.1; done
    is "$(status_of "$NAME")" STOPPED
}

@test "options of ctr run under both policies" {
    mkdir -p "$HOUSE/work"
    for RUNTIME in pinfold pinfold-unconfined; do
        run ctr_run --rm --read-only --cwd /tmp --env COLOUR=red --seccomp \
            --mount "type=bind,src=$HOUSE/work,dst=/workspace,options=rbind:ro" --mount type=tmpfs,src=tmpfs,dst=/mnt,options=size=1m \
            "$IMAGE" "$NAME" sh -c 'pwd; echo $COLOUR; touch /x /workspace/x 2>&1 | grep -c Read-only; df -k /mnt | tail -1 | xargs echo | cut -d" " -f2; ls /sys/class/net'
        ended 0
        is "$(xargs <<<"$output")" "/tmp red 2 1024 lo"
    done
}

@test "pinfold-unconfined is a plain runtime; the agent policy refuses the host's network and keeps --privileged hardened" {
    RUNTIME=pinfold-unconfined run ctr_run --rm --privileged --net-host --env GITHUB_TOKEN=x "$IMAGE" "$NAME-p" sh -c 'touch /x && echo written; ls /sys/class/net; echo $GITHUB_TOKEN'
    # a machine whose root lacks a capability cannot hand all of them on
    [[ "$output" = *"not allowed by the system"* ]] || is "$(xargs <<<"$output")" "written lo x"
    RUNTIME=pinfold-unconfined run ctr_run --rm --net-host --env GITHUB_TOKEN=x "$IMAGE" "$NAME" sh -c 'touch /x && echo written; ls /sys/class/net; echo $GITHUB_TOKEN'
    ended 0
    is "$(xargs <<<"$output")" "written lo x"
    run ctr_run --rm --net-host "$IMAGE" "$NAME" true
    ended 1 "namespace.host.refused"
    run ctr_run --rm --privileged --env GITHUB_TOKEN=x "$IMAGE" "$NAME" sh -c 'grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status; touch /x; echo "token $GITHUB_TOKEN"'
    contains "$output" $'CapEff:\t00000000800004fb\nNoNewPrivs:\t1\nSeccomp:\t2'
    contains "$output" "Read-only file system"
    matches "$output" 'token *$'
}

@test "nothing gets out of the agent policy: denied at once, with a record" {
    sleeper
    for target in "tcp 203.0.113.7 443" "tcp 127.0.0.1 9" "udp 203.0.113.7 53" "tcp 2001:db8::9 443"; do
        run ctr_exec "$NAME" reach $target
        ended 1
    done
    record=$(records_of "$NAME" '.status_detail == "net.address.literal" and .dst_endpoint.ip == "203.0.113.7" and .dst_endpoint.port == 443')
    is "$(jq -r '.actor.process.cmd_line' <<<"$record")" "reach tcp 203.0.113.7 443"
}
