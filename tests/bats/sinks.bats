#!/usr/bin/env bats
# Where records go: the file and what may happen to it, the journal, a collector. No loss is silent, nothing is written
# elsewhere, and no engine waits.
load helpers

setup() {
    setup_container
    POLICY=''
    mount -t tmpfs -o mode=755,size=8m none "${LOGS%/*}"
}
teardown() {
    local status=0
    teardown_container || status=$?
    umount -l "${LOGS%/*}" || status=1
    return $status
}

needs_python() { command -v python3 >/dev/null || skip "python3 is not installed"; }
policy_lines() { # LINE...
    POLICY=$WORK/p.yaml
    printf '%s\n' 'version: 1' "$@" >"$POLICY"
}
# One denied write each, by processes that no record takes together.
deny() { # [COUNT]
    local i
    for i in $(seq "${1:-1}"); do
        pf exec "$ID" touch "/denied-$RANDOM-$i" 2>/dev/null || :
    done
}
# A dozen of them by one exec, each of another file.
deny_many() { # WORD
    # shellcheck disable=SC2016 # for the inner shell
    pf exec "$ID" sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do touch "/denied-$0-$i"; done' "$1" 2>/dev/null || :
}
# How many attempts the records of writes stand for, those of older pieces included.
attempts() {
    cat "$LOG.3" "$LOG.2" "$LOG.1" "$LOG" 2>/dev/null | jq -nR '[inputs | fromjson? | select(.status_detail == "fs.write.read_only" or .action_id == 2)
        | (if .status_detail == "fs.write.read_only" then .count // 1 else 0 end) + (.unmapped.suppressed // 0)] | add // 0'
}
end_container() {
    kill -9 "$(state_of .pid)"
    wait_status stopped
    wait_for no_warden
}
no_warden() { [ -z "$(own_processes)" ]; }
observer() {
    local pid
    for pid in $(own_processes); do
        [ "$(cat "/proc/$pid/comm")" != pinfold-warden ] || echo "$pid"
    done
}
sequence_rises() {
    is "$(cat "$LOG.3" "$LOG.2" "$LOG.1" "$LOG" 2>/dev/null | jq -nR '[inputs | fromjson? | .metadata.sequence] | . == (sort | unique)')" true
}
tidy_again() { rm -f "$LOGS/.tidied"; }

@test "rotation: the full file becomes ID.jsonl.1, the oldest is removed and that is said, the numbers go on" {
    policy_lines 'log: {total: 2MiB}' # a sixteenth of it, in four pieces of 32 KiB
    start_sleeper
    for try in $(seq 12); do
        deny_many "first-$try"
        [ ! -e "$LOG.3" ] || break
    done
    [ -f "$LOG.1" ]
    [ -f "$LOG.2" ]
    [ -f "$LOG.3" ]
    is "$(stat -c '%a %U %G' "$LOG" "$LOG.1" | sort -u)" "640 root adm"
    [ "$(stat -c %s "$LOG.1")" -le 32768 ]
    sequence_rises
    is "$(cat "$LOG.3" "$LOG.2" "$LOG.1" "$LOG" | jq -r .metadata.sequence | head -n 1)" 1
    for try in $(seq 12); do
        deny_many "again-$try"
        [ -z "$(cat "$LOG"* | jq -c 'select(.status_detail == "log.removed")')" ] || break
    done
    contains "$(cat "$LOG" "$LOG".* | jq -r 'select(.status_detail == "log.removed") | .message' | head -n 1)" "The oldest records of this container were removed"
    [ ! -e "$LOG.4" ]
    sequence_rises
}

@test "rotation goes around what somebody else has put there" {
    policy_lines 'log: {total: 2MiB}'
    start_sleeper
    echo precious >"$WORK/precious"
    ln -s "$WORK/precious" "$LOG.1"
    for try in $(seq 6); do
        deny_many "$try"
    done
    [ "$(stat -c %s "$LOG")" -gt 32768 ]
    [ -L "$LOG.1" ]
    [ ! -e "$LOG.2" ]
    is "$(cat "$WORK/precious")" precious
    sequence_rises
}

@test "old logs of containers that are gone are removed: by age, and the oldest first beyond log.total" {
    policy_lines 'log: {keep: 2h, total: 4MiB}'
    command_is true
    mkdir -m 2750 "$LOGS"
    for name in old.jsonl old.jsonl.2 new.jsonl keep.txt old.jsonl.gz .hidden.jsonl; do echo '{}' >"$LOGS/$name"; done
    touch -d '3 hours ago' "$LOGS"/old.jsonl* "$LOGS/keep.txt" "$LOGS/.hidden.jsonl"
    mkfifo "$LOGS/pipe.jsonl" && touch -d '3 hours ago' "$LOGS/pipe.jsonl"
    ln -s "$WORK/target.jsonl" "$LOGS/link.jsonl" && echo target >"$WORK/target.jsonl"
    touch -h -d '3 hours ago' "$LOGS/link.jsonl" "$WORK/target.jsonl"
    echo '{}' >"$LOGS/foreign.jsonl" && chown 12345 "$LOGS/foreign.jsonl" && touch -d '3 hours ago' "$LOGS/foreign.jsonl"
    mkdir "$LOGS/directory.jsonl" && touch -d '3 hours ago' "$LOGS/directory.jsonl"
    pf_run
    wait_for no_warden
    is "$(cd "$LOGS" && find . -mindepth 1 ! -name "$ID*" -printf '%f\n' | LC_ALL=C sort | xargs)" ".hidden.jsonl .tidied directory.jsonl foreign.jsonl keep.txt link.jsonl new.jsonl old.jsonl.gz pipe.jsonl"
    is "$(cat "$WORK/target.jsonl")" target
    # and by size: two of 2 MiB are too much beside this container's own; the older goes
    head -c 2M /dev/zero >"$LOGS/first.jsonl" && touch -d '20 minutes ago' "$LOGS/first.jsonl"
    head -c 2M /dev/zero >"$LOGS/second.jsonl" && touch -d '10 minutes ago' "$LOGS/second.jsonl"
    pf_run
    wait_for no_warden
    [ -e "$LOGS/first.jsonl" ] # not again within five minutes
    tidy_again
    pf_run
    wait_for no_warden
    [ ! -e "$LOGS/first.jsonl" ]
    [ -e "$LOGS/second.jsonl" ]
    [ -s "$LOG" ]
}

@test "the log of a container that lives is never tidied away, however old it is" {
    policy_lines 'log: {keep: 1h}'
    start_sleeper
    has_record container.started
    touch -d '3 hours ago' "$LOG"
    echo '{}' >"$LOGS/gone.jsonl" && touch -d '3 hours ago' "$LOGS/gone.jsonl"
    new_bundle "$WORK/other"
    command_is true
    tidy_again
    pf run --bundle "$BUNDLE" "$ID-other" </dev/null
    wait_for test ! -e "$LOGS/gone.jsonl"
    [ -s "$LOG" ]
}

@test "disk full: nothing is held up, what was not written is counted, and the next record says why" {
    start_sleeper
    has_record container.started
    deny 2
    head -c 100M /dev/zero >"$LOGS/filler" 2>/dev/null || :
    before=$(records | wc -l)
    LIMIT=20 deny 20 # more than what is left of the last page
    rm "$LOGS/filler"
    deny 1
    has_record log.lost '.message | contains("No space left on device")'
    end_container
    is "$(attempts)" 23
    sequence_rises
    has_record container.ended
    jq -e . "$LOG" >/dev/null # no line is torn
    more_than "$(records | wc -l)" "$before"
}

@test "log directory removed: it is made again, and the record says what is gone" {
    start_sleeper
    has_record container.started
    deny 2
    rm -r "$LOGS"
    deny 1
    has_record log.lost '.message | contains("was removed while this container was running")'
    is "$(stat -c '%a %U' "$LOGS" "$LOG" | xargs)" "750 root 640 root"
    mv "$LOGS" "$LOGS.old" # nothing is missing now, but elsewhere
    deny 1
    has_record fs.write.read_only
    end_container
    has_record container.ended
    is "$(records '.status_detail == "log.lost"')" ""
    sequence_rises
}

@test "log file replaced by a symbolic link or a pipe: it is put aside, not followed" {
    start_sleeper
    has_record container.started
    echo outside >"$WORK/outside"
    mv "$LOG" "$LOG.2"
    ln -s "$WORK/outside" "$LOG"
    deny 1
    has_record log.replaced '.message | contains("foreign-0")'
    [ -f "$LOG" ]
    [ ! -L "$LOG" ]
    is "$(cat "$WORK/outside")" outside
    is "$(readlink "$LOG.foreign-0")" "$WORK/outside"
    mv "$LOG" "$LOG.1"
    mkfifo "$LOG"
    LIMIT=10 deny 1
    has_record log.replaced '.message | contains("foreign-1")'
    [ -p "$LOG.foreign-1" ]
    end_container
    is "$(attempts)" 2
    sequence_rises
    rm "$LOG".foreign-*
}

@test "a log that was renamed goes on under its own name" {
    start_sleeper
    has_record container.started
    mv "$LOG" "$LOGS/elsewhere"
    deny 1
    has_record fs.write.read_only
    is "$(records '.status_detail | startswith("log.")')" ""
    end_container
}

@test "SIGKILL of the warden in the middle of a line: the next record begins a line of its own" {
    start_sleeper
    has_record container.started
    warden=$(observer)
    kill -STOP "$warden"
    printf '{"time":17,"class_uid":10' >>"$LOG" # what a write that was cut leaves
    kill -9 "$warden"
    for try in $(seq 50); do
        ! grep -q warden.lost "$LOG" || break
        sleep 0.1
    done
    is "$(grep -c '^{"time":17,"class_uid":10$' "$LOG")" 1
    is "$(jq -nR '[inputs | fromjson? | select(.status_detail == "warden.lost")] | length' "$LOG")" 1
    sequence_rises
    wait_status stopped
    wait_for no_warden
    sed -i '/^{"time":17,/d' "$LOG" # what is left is validated
}

# -- the journal and OTLP ------------------------------------------------------------------------------------------

# A journal of the test's own: a datagram socket where journald has its, whose entries become lines of JSON.
start_journal() {
    mkdir -p /run/systemd
    mount -t tmpfs none /run/systemd
    mkdir /run/systemd/journal
    cat >"$WORK/journal.py" <<'PYTHON'
import json, os, socket, struct, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind("/run/systemd/journal/socket")
os.chmod("/run/systemd/journal/socket", 0o666)
out = open(sys.argv[1], "a", buffering=1)
while True:
    entry, fields = receiver.recv(1 << 20), {}
    while entry:
        name, _, entry = entry.partition(b"\n")
        if b"=" in name:
            name, _, value = name.partition(b"=")
        else:
            size = struct.unpack("<Q", entry[:8])[0]
            value, end, entry = entry[8 : 8 + size], entry[8 + size : 9 + size], entry[9 + size :]
            assert end == b"\n", entry
        fields[name.decode()] = value.decode()
    out.write(json.dumps(fields) + "\n")
PYTHON
    python3 "$WORK/journal.py" "$WORK/journal" 3>&- &
    JOURNAL=$!
    wait_for test -S /run/systemd/journal/socket
}
end_journal() {
    [ -z "${JOURNAL-}" ] || { kill "$JOURNAL" && wait "$JOURNAL"; } 2>/dev/null || :
    JOURNAL=''
}
journal_has() { # JQ-FILTER
    [ -n "$(jq -c "select($1)" "$WORK/journal")" ]
}

@test "journald: each record with fields of its own, and whole" {
    needs_python
    start_journal
    policy_lines 'log: {journald: true}'
    start_sleeper
    deny 2
    end_container
    wait_for journal_has '.PINFOLD_REASON == "container.ended"'
    is "$(jq -r .PINFOLD_RECORD "$WORK/journal" | jq -cS .)" "$(jq -cS . "$LOG")"
    is "$(jq -r 'select(.PINFOLD_REASON == "fs.write.read_only") | [.PRIORITY, .PINFOLD_ACTION, .SYSLOG_IDENTIFIER, .PINFOLD_CONTAINER_ID] | join(" ")' "$WORK/journal" | sort -u)" "4 denied pinfold $ID"
    is "$(jq -r .PINFOLD_SEQUENCE "$WORK/journal")" "$(jq -r .metadata.sequence "$LOG")"
    is "$(jq -r .PINFOLD_RUN "$WORK/journal" | sort -u)" "$(jq -r .metadata.correlation_uid "$LOG" | sort -u)"
    is "$(jq -r 'select(.PINFOLD_REASON == "container.ended") | .MESSAGE, .PRIORITY' "$WORK/journal" | xargs)" "The container ended with exit code 137. 6"
    end_journal
    umount -l /run/systemd
}

@test "journald: what it writes of a hostile name is one line of printable text" {
    needs_python
    start_journal
    cat >"$ROOT/bin/hostile" <<'SH'
#!/bin/sh
touch "$(printf '/a\nb\033[31m"c')"
exit 0
SH
    chmod 755 "$ROOT/bin/hostile"
    command_is hostile
    pf_run
    wait_for journal_has '.PINFOLD_REASON == "container.ended"'
    is "$(jq -r 'select(.PINFOLD_REASON == "fs.write.read_only") | .MESSAGE' "$WORK/journal" | wc -l)" 1
    contains "$(jq -r 'select(.PINFOLD_REASON == "fs.write.read_only") | .MESSAGE' "$WORK/journal")" '"c'
    in_none $'\033' "$WORK/journal"
    end_journal
    umount -l /run/systemd
}

@test "journald: one that hangs or is gone holds nobody up, and the file says what it did not take" {
    needs_python
    start_journal
    start_sleeper
    wait_for journal_has '.PINFOLD_REASON == "container.started"'
    kill -STOP "$JOURNAL"
    # more than a socket holds
    # shellcheck disable=SC2016 # for the inner shell
    LIMIT=25 pf exec "$ID" sh -c 'for i in $(seq 120); do for j in 1 2; do touch /hang-$i-$j; done; done' 2>/dev/null || :
    kill -CONT "$JOURNAL"
    end_journal
    deny 1
    has_record log.sink.failed '.finding_info.title | contains("journald did not take")'
    end_container
    has_record container.ended
    is "$(attempts)" 241
    umount -l /run/systemd
}

@test "journald: true where there is no journal makes create fail; auto does without it" {
    mkdir -p /run/systemd && mount -t tmpfs none /run/systemd
    policy_lines 'log: {journald: true}'
    run pf_run
    ended 1 "log.journald: true needs the journal"
    policy_lines 'log: {journald: true}' 'enforcement: {best_effort: [log.journald]}'
    pf_run
    policy_lines 'log: {journald: auto}'
    pf_run
    umount -l /run/systemd
}

@test "otlp: a file of OTLP/JSON, a request a line, with the whole record as ocsf.raw" {
    policy_lines "log: {otlp: $WORK/otlp.jsonl}"
    start_sleeper
    deny 2
    end_container
    is "$(jq -r '.resourceLogs[0].scopeLogs[0].logRecords[0].attributes[] | select(.key == "ocsf.raw").value.stringValue' "$WORK/otlp.jsonl" | jq -cS .)" "$(jq -cS . "$LOG")"
    is "$(jq -c '.resourceLogs[0].resource.attributes | map({(.key): .value.stringValue}) | add | [."service.name", ."host.name", ."container.id"]' "$WORK/otlp.jsonl" | sort -u)" "[\"pinfold\",\"$(hostname)\",\"$ID\"]"
    is "$(jq -c '.resourceLogs[0].scopeLogs[0].logRecords[0] | select(any(.attributes[]; .value.stringValue == "fs.write.read_only")) | [.severityNumber, .severityText]' "$WORK/otlp.jsonl" | sort -u)" '[13,"WARN"]'
    is "$(jq -r '.resourceLogs[0].scopeLogs[0].logRecords[0].timeUnixNano' "$WORK/otlp.jsonl")" "$(jq -r '"\(.time)000000"' "$LOG")"
    is "$(jq -r '.resourceLogs[0].scopeLogs[0].logRecords[0].body.stringValue' "$WORK/otlp.jsonl")" "$(jq -r .message "$LOG")"
}

@test "otlp: a full disk there is said in the file, and a link or a pipe is refused" {
    mkdir "$WORK/small" && mount -t tmpfs -o size=16k none "$WORK/small"
    policy_lines "log: {otlp: $WORK/small/otlp}"
    start_sleeper
    deny 12
    has_record log.sink.failed '.finding_info.title | contains("No space left on device")'
    end_container
    is "$(attempts)" 12
    umount -l "$WORK/small"
    ln -s "$WORK/elsewhere" "$WORK/link" && mkfifo "$WORK/pipe"
    pf delete --force "$ID"
    policy_lines "log: {otlp: $WORK/link}"
    run pf_run
    ended 1 "log.otlp"
    [ ! -e "$WORK/elsewhere" ]
    policy_lines "log: {otlp: $WORK/pipe}"
    run pf_run
    ended 1 "log.otlp"
}

@test "the file's disk is full: the other sinks say so" {
    policy_lines "log: {otlp: $WORK/otlp.jsonl}"
    start_sleeper
    has_record container.started
    head -c 100M /dev/zero >"$LOGS/filler" 2>/dev/null || :
    deny 8
    [ -n "$(jq -c '.resourceLogs[0].scopeLogs[0].logRecords[0].attributes[] | select(.value.stringValue == "log.sink.failed")' "$WORK/otlp.jsonl")" ]
    rm "$LOGS/filler"
    deny 1
    has_record log.lost
    end_container
}
