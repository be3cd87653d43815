#!/usr/bin/env bats
# `pinfold log`: what is read, what is chosen from it, and what a reader sees. The records are written here, so that each
# number is known; record.bats and inside.bats have those of real containers.
load helpers

setup() {
    setup_container
    D=$WORK/logs
    mkdir "$D"
}
teardown() { teardown_container; }

# A record of container ID at SECOND of a minute long ago; MEMBERS go over what a denied write has.
record() { # ID SECOND [MEMBERS]
    jq -cn --arg id "$1" --argjson second "$2" --argjson more "${3:-"{}"}" '
      {class_uid: 1001, activity_id: 3, action_id: 2, time: (1796000400000 + $second * 1000),
       status_detail: "fs.write.read_only", message: "Denied.", file: {path: "/etc/x"},
       actor: {process: {pid: 7, name: "sh", container: {uid: $id}}}, metadata: {correlation_uid: ($id + "-run")}} * $more'
}
path() { printf '{"file": {"path": "%s"}}' "$1"; }
end() { # ID SECOND CODE
    record "$1" "$2" '{"class_uid": 6002, "activity_id": 4, "action_id": 3, "status_detail": "container.ended",
        "message": "The container ended with exit code '"$3"'.", "unmapped": {"exit_code": '"$3"'}}'
}
log() { run "$PINFOLD" log --log-dir "$D" "$@"; }

@test "rotated files are read first, the oldest before the others" {
    record a 30 "$(path /newest)" >"$D/a.jsonl"
    record a 20 "$(path /middle)" >"$D/a.jsonl.1"
    record a 10 "$(path /oldest)" >"$D/a.jsonl.2"
    record a 5 "$(path /not-reached)" >"$D/a.jsonl.4"
    log a --json
    ended 0
    is "$(jq -r .file.path <<<"$output" | xargs)" "/oldest /middle /newest"
    # .1 and .2 are no containers of their own
    log --all
    lacks "$output" CONTAINER
}

@test "a container called like a rotated file is one" {
    record a 10 >"$D/a.jsonl"
    record a.jsonl.1 20 "$(path /other)" >"$D/a.jsonl.1.jsonl"
    log a --json
    is "$(jq -r .file.path <<<"$output")" /etc/x
    log a.jsonl.1 --json
    is "$(jq -r .file.path <<<"$output")" /other
}

@test "--follow goes on with the file that takes the place of a renamed one, and misses nothing of either" {
    record a 1 "$(path /1)" >"$D/a.jsonl"
    "$PINFOLD" log --log-dir "$D" a --json --follow >"$WORK/out" 3>&- &
    follower=$!
    shown() { [ "$(wc -l <"$WORK/out")" = "$1" ]; }
    wait_for shown 1
    # twice, quicker than it looks: the one between is found under its number
    exec 5>>"$D/a.jsonl"
    mv "$D/a.jsonl" "$D/a.jsonl.1"
    record a 2 "$(path /2)" >&5
    record a 3 "$(path /3)" >"$D/a.jsonl.new"
    mv "$D/a.jsonl.1" "$D/a.jsonl.2" && mv "$D/a.jsonl.new" "$D/a.jsonl.1"
    record a 4 "$(path /4)" >"$D/a.jsonl.new" && mv "$D/a.jsonl.new" "$D/a.jsonl"
    exec 5>&-
    wait_for shown 4
    end a 5 0 >>"$D/a.jsonl"
    wait $follower
    is "$(jq -r '.file.path // empty' "$WORK/out" | xargs)" "/1 /2 /3 /4 /etc/x"
}

@test "a file from elsewhere: by its path, with its rotated ones, and from standard input" {
    mkdir "$WORK/copied"
    record a 20 "$(path /new)" >"$WORK/copied/a.jsonl"
    record a 10 "$(path /old)" >"$WORK/copied/a.jsonl.1"
    log "$WORK/copied/a.jsonl" --json
    is "$(jq -r .file.path <<<"$output" | xargs)" "/old /new"
    log "$WORK/copied/a.jsonl.1" --json
    is "$(jq -r .file.path <<<"$output")" /old
    cd "$WORK/copied"
    log a.jsonl --json
    is "$(jq -r .file.path <<<"$output" | xargs)" "/old /new"
    is "$(cat a.jsonl.1 a.jsonl | "$PINFOLD" log - --json | jq -r .file.path | xargs)" "/old /new"
    log ./none.jsonl
    ended 1 "none.jsonl"
    mkfifo pipe.jsonl
    log ./pipe.jsonl
    ended 1 "not a regular file"
}

@test "several containers: one table by time, which says whose each row is" {
    { record first 10 "$(path /1)"; record first 30 "$(path /3)"; } >"$D/first.jsonl"
    { record second 20 "$(path /2)"; record second 40 "$(path /4)"; } >"$D/second.jsonl"
    log first second
    ended 0
    is "$(awk '/^[0-9]+:/ { print $2 $NF }' <<<"$output" | xargs)" "first/1 second/2 first/3 second/4"
    contains "$output" CONTAINER
    contains "$output" "4 denied"
    log --all --json
    is "$(jq -r .file.path <<<"$output" | xargs)" "/1 /2 /3 /4"
    # the same one twice is shown once
    log first firs --json
    is "$(wc -l <<<"$output")" 2
}

@test "--summary: counts, remedies, and how each container ended" {
    {
        record a 1 '{"count": 1}'
        record a 2 '{"count": 7, "unmapped": {"remedy": "filesystem: {writable: [/etc/x]}"}}'
        record a 3 "$(path /y)"
        end a 4 137
    } >"$D/a.jsonl"
    log a --summary
    ended 0
    matches "$output" ' 8  denied    fs.write.read_only +/etc/x'
    contains "$output" "allow with  filesystem: {writable: [/etc/x]}"
    matches "$output" 'a: The container ended with exit code 137\.'
    contains "$output" "9 denied"
}

@test "filters: --denied, --exec, --since" {
    {
        record a 1 '{"action_id": 1, "status_detail": "net.connection.opened"}'
        record a 2 '{"unmapped": {"exec_id": "e1"}, "file": {"path": "/by-exec"}}'
        record a 3 "$(path /by-init)"
    } >"$D/a.jsonl"
    log a --denied --json
    is "$(jq -r .file.path <<<"$output" | xargs)" "/by-exec /by-init"
    log a --exec e1 --json
    is "$(jq -r .file.path <<<"$output")" /by-exec
    log a --since "$(date -d @1796000403 '+%Y-%m-%d %H:%M:%S')" --json
    is "$(jq -r .file.path <<<"$output")" /by-init
    log a --since "$(date -d @1796000403 +%Y-%m-%dT%H:%M:%S)" --json
    is "$(jq -r .file.path <<<"$output")" /by-init
    jq -c ".time = $(($(date +%s) - 90)) * 1000" "$D/a.jsonl" >"$D/b.jsonl"
    log b --since 1m --json
    is "$output" ""
    log b --since 2m --json
    is "$(wc -l <<<"$output")" 3
    for wrong in yesterday 10 10x -5m 5mm ''; do
        log a --since "$wrong"
        ended 1 "--since is how long ago"
    done
}

@test "programs that were run are left out of the table until they are asked for; --json has them" {
    {
        record a 1 '{"class_uid": 1007, "activity_id": 1, "action_id": 1, "status_detail": "process.started",
            "process": {"cmd_line": "make test"}}'
        record a 2
    } >"$D/a.jsonl"
    log a
    lacks "$output" "make test"
    contains "$output" /etc/x
    log a --executions
    contains "$output" "make test"
    log a --reason 'process.*'
    contains "$output" "make test"
    log a --json
    is "$(wc -l <<<"$output")" 2
}

@test "a table fits a terminal of 80 columns, and has colours there only" {
    record a 1 "$(path "/$(printf 'long%.0s' {1..60})")" >"$D/a.jsonl"
    record b 2 >"$D/b.jsonl"
    too_wide() { sed 's/\xe2\x80\xa6/./g' | grep -v 'allow with' | LC_ALL=C awk 'length > 80' | wc -l; }
    for which in a --all; do
        COLUMNS=80 log $which
        is "$(too_wide <<<"$output")" 0
        lacks "$output" $'\033'
        TERM=xterm script -qec "stty cols 80; '$PINFOLD' log --log-dir '$D' $which" /dev/null </dev/null >"$WORK/terminal"
        contains "$(cat "$WORK/terminal")" $'\033[31m'
        is "$(sed 's/\x1b\[[0-9;]*m//g; s/\r//' "$WORK/terminal" | too_wide)" 0
        TERM=xterm NO_COLOR=1 script -qec "'$PINFOLD' log --log-dir '$D' $which" /dev/null </dev/null >"$WORK/terminal"
        lacks "$(cat "$WORK/terminal")" $'\033'
    done
}

@test "what is chosen must be clear" {
    record a 1 >"$D/a.jsonl"
    log
    ended 1 "which container?"
    log a --last
    ended 1 "either containers, or --last or --all"
    log --last --all
    ended 1 "either --last or --all"
    log a b
    ended 1 'no log of "b"'
    log ''
    ended 1 "expected a container's ID"
}

@test "--reasons: each reason code with its meaning, and no log" {
    run "$PINFOLD" log --reasons
    ended 0
    matches "$output" $'\nfs.decoy.opened +a fake key was opened'
    is "$(awk '{ print $1 }' <<<"$output" | sort | uniq -d)" ""
    log --reasons a
    ended 1 "--reasons reads no log"
}
