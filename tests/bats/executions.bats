#!/usr/usr/bin/env bats
# Records of programs that are run (observe.processes): what, by whom, from when to when, and how it ended.
load helpers

setup() {
    setup_container
    POLICY=''
}
teardown() { teardown_container; }

launches() { records '.status_detail == "process.launched"'; }
ends() { records '.status_detail == "process.ended"'; }
# The pid that ran this command line.
pid_of() { # CMD_LINE
    launches | jq -r --arg line "$1" 'select(.process.cmd_line == $line) | .process.pid'
}
# How the process ended that ran this command line.
end_of() { # CMD_LINE
    ends | jq -r --arg line "$1" 'select(.process.cmd_line == $line) | .exit_code'
}
# Starts and ends: those that were written, and those that were counted.
accounted() {
    jq -s 'map(select(.status_detail == "process.launched" or .status_detail == "process.ended" or
               (.status_detail == "log.suppressed" and .resources[0].name == "executions")))
           | map((.count // 1) + (.unmapped.suppressed // 0)) | add' "$LOG"
}

@test "a program: its whole argv, directory, user, parent, and from when to when" {
    configure '.process.user = {uid: 1000, gid: 1000} | .process.cwd = "/home/user"'
    script_is '/bin/ls -l "/tmp" "two words" >/dev/null 2>&1; exit 0'
    pf_run
    launch=$(launches | jq -c 'select(.process.cmd_line == "/bin/ls -l /tmp two words")')
    is "$(jq -r '[.class_uid, .activity_id, .type_uid, .action_id, .process.name, .process.working_directory,
                  .process.user.uid] | join(" ")' <<<"$launch")" "1007 1 100701 3 ls /home/user 1000"
    init=$(launches | jq -r 'select(.process.cmd_line | startswith("sh -c")) | .process.pid')
    is "$(jq -r '[.process.parent_process.pid, .actor.process.pid] | unique | join(" ")' <<<"$launch")" "$init"
    is "$(jq -r '.actor.process.name' <<<"$launch")" sh
    end=$(ends | jq -c 'select(.process.cmd_line == "/bin/ls -l /tmp two words")')
    is "$(jq -r '.process.pid' <<<"$end")" "$(jq -r '.process.pid' <<<"$launch")"
    is "$(jq -r '.process.created_time' <<<"$end")" "$(jq -r '.process.created_time' <<<"$launch")"
    is "$(jq -r '.process.terminated_time >= .process.created_time' <<<"$end")" true
    is "$(launches | wc -l) $(ends | wc -l)" "2 2"
}

@test "exit codes, and signals" {
    script_is '/bin/sh -c "exit 3"; /bin/sh -c "kill -9 \$\$"; exit 5'
    run pf_run
    is "$status" 5
    is "$(end_of '/bin/sh -c exit 3')" 3
    # shellcheck disable=SC2016 # as it is recorded
    killed=$(ends | jq -c 'select(.process.cmd_line == "/bin/sh -c kill -9 $$")')
    is "$(jq -r '[.exit_code, .unmapped.signal] | join(" ")' <<<"$killed")" "137 9"
    is "$(ends | jq -r 'select(.process.cmd_line | startswith("sh -c")) | .exit_code')" 5
}

@test "the attempts of one search in PATH are one start, and what is nowhere is none" {
    mkdir -p "$ROOT"/{a,b,c}
    printf '#!/bin/sh\nexit 4\n' >"$ROOT/c/tool"
    chmod 755 "$ROOT/c/tool"
    configure '.process.env = ["PATH=/a:/b:/c:/bin"]'
    script_is '/usr/bin/env tool x; /usr/bin/env no-such-tool 2>/dev/null; exit 0'
    pf_run
    is "$(launches | jq -r .process.cmd_line | grep -c '^tool x$')" 1
    is "$(launches | jq -r .process.cmd_line | grep -c '^no-such-tool')" 0
    # env became tool: two programs, one process, one end
    is "$(pid_of 'tool x')" "$(pid_of '/usr/bin/env tool x')"
    is "$(end_of 'tool x')" 4
    is "$(end_of '/usr/bin/env no-such-tool')" 127
}

@test "a call that fails although the file is there is no start" {
    printf 'exit 6\n' >"$ROOT/bin/no-format" # no "#!": ENOEXEC, after which libc runs a shell
    chmod 755 "$ROOT/bin/no-format"
    script_is '/usr/bin/env /bin/no-format; exit 0'
    pf_run
    is "$(launches | jq -r .process.cmd_line | grep -c no-format)" 3 # of the container's shell, env's, and the one that libc runs
    is "$(end_of '/bin/sh /bin/no-format')" 6
    is "$(launches | jq -r 'select(.process.cmd_line == "/bin/no-format")')" ""
}

@test "what goes on in the background, and what the end of the container ends" {
    script_is '(/bin/sh -c "/bin/sleep 0.1; exit 7" &); (/bin/sleep 1000 &); /bin/sleep 1; exit 0'
    pf_run
    is "$(end_of '/bin/sh -c /bin/sleep 0.1; exit 7')" 7
    is "$(ends | jq -r 'select(.process.cmd_line == "/bin/sleep 1000") | .unmapped.signal')" 9
}

@test "secrets in argv are redacted" {
    script_is '/bin/ls --token=hunter2 >/dev/null 2>&1; /bin/ls -u user:pass https://u:hunter2@host/ >/dev/null 2>&1; exit 0'
    pf_run
    [ "$(launches | wc -l)" = 3 ]
    in_none hunter2 "$LOG"
}

@test "six hundred runs: each start and each end is recorded or counted" {
    script_is 'i=0; while [ $i -lt 600 ]; do /bin/true; i=$((i + 1)); done'
    LIMIT=100 pf_run
    is "$(accounted)" 1202 # and the shell itself
}

@test "more processes than are watched: starts are recorded, ends counted" {
    script_is 'i=0; while [ $i -lt 360 ]; do
        /bin/sleep 100 &
        until read name </proc/$!/comm && [ "$name" = sleep ]; do :; done
        i=$((i + 1)); done; exit 0'
    LIMIT=100 pf_run
    is "$(accounted)" 722
}

@test "a process of exec: its exec id is on what it runs" {
    start_sleeper
    pf exec "$ID" /bin/sh -c '/bin/ls / >/dev/null; exit 0'
    pf delete --force "$ID"
    has_record container.ended
    ids=$(launches | jq -r 'select(.process.cmd_line == "/bin/ls /") | .unmapped.exec_id')
    matches "$ids" '^[0-9a-zA-Z-]{4,}$'
    [ "$ids" != null ]
    is "$(ends | jq -r 'select(.process.cmd_line == "/bin/ls /") | .unmapped.exec_id')" "$ids"
    is "$(launches | jq -r 'select(.process.cmd_line == "sleep 1000") | .unmapped.exec_id')" null
}

@test "in a user namespace" {
    user_namespace
    script_is '/bin/sh -c "exit 3"; exit 0'
    pf_run
    is "$(end_of '/bin/sh -c exit 3')" 3
}

@test "where a policy narrows what may be read: one answer, and what is denied is not a start" {
    mkdir -p "$ROOT/closed"
    cp "$ROOT/bin/busybox" "$ROOT/closed/ls"
    printf 'version: 1\nfilesystem: {readable: [/bin, /lib, /etc]}\n' >"$WORK/policy.yaml"
    POLICY=$WORK/policy.yaml
    script_is '/closed/ls; /bin/sh -c "exit 3"; exit 0'
    pf_run
    is "$(end_of '/bin/sh -c exit 3')" 3
    is "$(launches | jq -r .process.cmd_line | grep -c closed/ls)" 1 # the shell's own
    is "$(denials fs.read.not_granted)" 1
}

@test "observe.processes: false: none, and explain says so" {
    printf 'version: 1\nobserve: {processes: false}\n' >"$WORK/policy.yaml"
    contains "$(pf explain --bundle "$BUNDLE")" "programs that are run"
    script_is '/bin/true; touch /x; exit 0'
    POLICY=$WORK/policy.yaml
    pf_run
    has_record fs.write.read_only
    is "$(launches)$(ends)" ""
    matches "$(pf explain --bundle "$BUNDLE" | grep 'programs that are run')" 'off'
}

@test "OCSF: valid against the schema" {
    check=${CHECK_OCSF:-$(cd "$BATS_TEST_DIRNAME/../../.." && pwd)/shared/bin/check-ocsf}
    [ -x "$check" ] || skip "no schema validator beside the tree (CHECK_OCSF names one)"
    script_is '/bin/sh -c "exit 3"; /bin/sh -c "kill -9 \$\$"; exit 0'
    pf_run
    run python3 "$check" "$LOG"
    ended 0 "0 faults"
}
