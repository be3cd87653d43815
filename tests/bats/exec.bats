#!/usr/bin/env bats
# exec: as conmon, containerd, CRI-O and people call it.
load helpers

setup() {
    setup_container
    configure '.process.env += ["FROM=config"]'
    start_sleeper
}
teardown() { teardown_container; }

process_file() { # JQ: config.json's process, changed
    jq ".process | $1" "$BUNDLE/config.json" >"$WORK/process.json"
}

@test "the exit code, 128 and the signal, 255 for what could not run" {
    run pf exec "$ID" sh -c 'exit 5'
    ended 5
    run pf exec "$ID" sh -c 'kill -9 $$'
    ended 137
    run pf exec "$ID" nosuch
    ended 255
}

@test "standard input, output and error" {
    run bash -c 'echo given | timeout 10 "$0" --root "$1" exec "$2" sh -c "cat; echo error >&2" 2>"$3" 3>&-' "$PINFOLD" "$STATE" "$ID" "$WORK/error"
    is "$output" given
    is "$(cat "$WORK/error")" error
}

@test "the same namespaces and root as the container" {
    for name in mnt net pid ipc uts; do
        is "$(pf exec "$ID" readlink /proc/self/ns/$name)" "$(readlink "/proc/$(state_of .pid)/ns/$name")"
    done
    is "$(pf exec "$ID" cat /proc/1/comm)" sleep
}

@test "the same cgroups as the container" {
    is "$(pf exec "$ID" cat /proc/self/cgroup)" "$(pf exec "$ID" cat /proc/1/cgroup)"
    pf exec --detach "$ID" sleep 999
    wait_for bash -c "[ \"\$('$PINFOLD' --root '$STATE' ps --format json '$ID' | jq length)\" = 2 ]"
}

@test "environment: config.json's, not that of process 1; --env adds and replaces" {
    is "$(pf exec "$ID" sh -c 'echo $FROM')" config
    is "$(pf exec --env FROM=exec --env MORE=1 "$ID" sh -c 'echo $FROM $MORE')" "exec 1"
    is "$(LEAK=1 pf exec "$ID" env | grep -c LEAK || :)" 0
}

@test "--user, --cwd, --additional-gids" {
    is "$(pf exec --user 1000:29 "$ID" sh -c 'echo $(id -u) $(id -g)')" "1000 29"
    is "$(pf exec --user 1000 --additional-gids 29 "$ID" grep Groups /proc/self/status | cut -f2 | xargs)" 29
    is "$(pf exec --cwd /etc "$ID" pwd)" /etc
}

@test "--cwd that is missing is an error: exec makes nothing" {
    run pf exec --cwd /not/there "$ID" pwd
    ended 255 /not/there
    [ ! -e "$ROOT/not" ]
}

@test "--process FILE" {
    process_file '.args = ["sh", "-c", "echo $X; id -u; pwd"] | .env = ["PATH=/bin:/usr/bin", "X=1"] | .user = {uid: 1000, gid: 1000} | .cwd = "/tmp"'
    is "$(pf exec --process "$WORK/process.json" "$ID" | xargs)" "1 1000 /tmp"
}

@test "--process --detach --pid-file, as conmon calls it: the pid is the command's, the file is there when exec ends" {
    process_file '.args = ["sleep", "998"]'
    pf exec --pid-file "$WORK/pid" --process "$WORK/process.json" --detach "$ID" </dev/null >/dev/null 2>&1
    is "$(tr '\0' ' ' <"/proc/$(cat "$WORK/pid")/cmdline")" "sleep 998 "
}

@test "no pid file when the command cannot run (conmon's only sign of failure)" {
    process_file '.args = ["nosuch"]'
    run pf exec --pid-file "$WORK/pid" --process "$WORK/process.json" --detach "$ID"
    [ "$status" != 0 ]
    contains "$output" 'exec: "nosuch": executable file not found in $PATH'
    [ ! -e "$WORK/pid" ]
}

@test "an attached exec with a pid file" {
    pf exec --pid-file "$WORK/pid" "$ID" true
    matches "$(cat "$WORK/pid")" '^[0-9]+$'
}

@test "capabilities are the container's; --cap adds" {
    is "$(pf exec "$ID" grep CapBnd /proc/self/status)" "$(pf exec "$ID" grep CapBnd /proc/1/status)"
    is "$(pf exec "$ID" grep CapEff /proc/self/status)" "$(pf exec "$ID" grep CapEff /proc/1/status)"
    run pf exec --cap CAP_CHOWN "$ID" grep CapBnd /proc/self/status
    ended 0
}

@test "no_new_privs is the container's, and can be asked for" {
    is "$(pf exec "$ID" grep NoNewPrivs /proc/self/status)" "$(pf exec "$ID" grep NoNewPrivs /proc/1/status)"
    is "$(pf exec --no-new-privs "$ID" grep NoNewPrivs /proc/self/status | cut -f2)" 1
}

@test "a session of its own (a signal to the group does not reach the caller)" {
    run pf exec "$ID" sh -c 'read -r pid name state parent group session rest </proc/self/stat; [ $group = $session ] && [ $pid = $session ] && echo own'
    is "$output" own
}

@test "no descriptor of the runtime" {
    is "$(pf exec "$ID" ls /proc/self/fd | xargs)" "0 1 2 3"
}

@test "output of a million bytes arrives whole" {
    is "$(pf exec "$ID" head -c 1000000 /dev/zero | wc -c)" 1000000
}

@test "runc #5210: fifty short execs, one after the other" {
    for number in $(seq 50); do
        is "$(timeout 10 "$PINFOLD" --root "$STATE" exec "$ID" echo "$number" 3>&-)" "$number"
    done
}

@test "exec in a paused container is refused" {
    pf pause "$ID"
    LIMIT=5 run pf exec "$ID" true
    [ "$status" = 255 ]
    contains "$output" paused
    pf resume "$ID"
    run pf exec "$ID" true
    ended 0
}

@test "the container ends while an exec runs: exec ends too" {
    timeout 20 "$PINFOLD" --root "$STATE" exec "$ID" sleep 997 </dev/null 3>&- &
    runner=$!
    wait_for bash -c "[ \"\$('$PINFOLD' --root '$STATE' ps --format json '$ID' | jq length)\" = 2 ]"
    pf kill "$ID" KILL
    code=0; wait $runner || code=$?
    is "$code" 137
}
