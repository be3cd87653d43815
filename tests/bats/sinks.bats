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
    [ -f "$LOG.1" ] && [ -f "$LOG.2" ] && [ -f "$LOG.3" ]
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
    [ -L "$LOG.1" ] && [ ! -e "$LOG.2" ]
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
    [ -f "$LOG" ] && [ ! -L "$LOG" ]
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
