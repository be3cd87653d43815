#!/usr/bin/env bats
# The denial record: OCSF, one object a line, complete, in order, outside the container.
load helpers

setup() {
    setup_container
    POLICY=''
}
teardown() { teardown_container; }

misbehave() {
    configure '.process.env += ["GITHUB_TOKEN=fake", "HOME=/root"]'
    script_is 'touch /x; cat /root/.ssh/id_rsa; mount -t tmpfs none /tmp; nc -w 2 1.2.3.4 443 </dev/null; exit 3'
    run pf_run
    is "$status" 3
}

@test "the file: JSON lines, 0640, of root and group adm" {
    misbehave
    is "$(stat -c '%a %U %G' "$LOG")" "640 root adm"
    jq -e . "$LOG" >/dev/null
}

@test "one record for each denial, with its reason" {
    misbehave
    for reason in credential.env.removed fs.write.read_only fs.decoy.opened syscall.not_allowed net.address.literal; do
        has_record "$reason"
    done
}

@test "life cycle: created, started and ended with the exit code; the policy with its digest" {
    misbehave
    [ "$(records '.class_uid == 6002' | wc -l)" -ge 2 ]
    is "$(records '.class_uid == 5019' | wc -l)" 1
    matches "$(records '.class_uid == 5019' | jq -r '.policy.uid // .policy.version // (.. | .uid? // empty)' | grep -E '^[0-9a-f]{64}$' | head -n 1)" '^[0-9a-f]{64}$'
}

@test "every record: host, container, run, sequence, policy, time" {
    misbehave
    is "$(records | jq -r '.metadata.correlation_uid' | sort -u | wc -l)" 1
    is "$(records | jq -r '.device.hostname' | sort -u)" "$(hostname)"
    is "$(records | jq -c '[.metadata.sequence, .time, .metadata.version, .message] | map(. != null) | all' | sort -u)" true
    is "$(records '.action_id == 2' | jq -r '.actor.process.container.uid' | sort -u)" "$ID"
    is "$(records | jq -s '[.[].metadata.sequence] == ([.[].metadata.sequence] | sort | unique)')" true
}

@test "every denial names the policy line that decided; what can be allowed names the line that would" {
    misbehave
    is "$(records '.action_id == 2' | jq -c '.firewall_rule.name != null or .firewall_rule.uid != null or .firewall_rule.desc != null' | sort -u)" true
    [ -n "$(records '.unmapped.remedy != null')" ]
}

@test "OCSF: valid against the schema" {
    check=${CHECK_OCSF:-$(cd "$BATS_TEST_DIRNAME/../../.." && pwd)/shared/bin/check-ocsf}
    [ -x "$check" ] || skip "no schema validator beside the tree (CHECK_OCSF names one)"
    misbehave
    run python3 "$check" "$LOG"
    ended 0 "0 faults"
}

@test "repeats are one record with a count: written at 1, 2, 4, 8, ..., all counted" {
    script_is 'i=0; while [ $i -lt 100 ]; do echo x 2>/dev/null >/x; i=$((i + 1)); done'
    LIMIT=60 run pf_run
    # each record counts what came since the one before: together exactly 100
    is "$(records '.status_detail == "fs.write.read_only"' | jq -r '.count // 1' | xargs)" "1 1 2 4 8 16 32 36"
    is "$(denials fs.write.read_only)" 100
}

@test "strings of the workload: control characters and broken UTF-8 come out as valid JSON" {
    printf '#!/bin/sh\ntouch "/$(printf "bad\\\\377\\\\033[31m\\\\nname")"\n' >"$ROOT/bin/hostile"
    chmod 755 "$ROOT/bin/hostile"
    command_is hostile
    run pf_run
    has_record fs.write.read_only
    python3 -c 'import json, sys; [json.loads(l) for l in open(sys.argv[1], encoding="utf-8")]' "$LOG"
    in_none $'\033' "$LOG"
}

@test "secrets in arguments are redacted" {
    script_is 'touch /x --token=ghp_0123456789012345678901234567890123456 2>/dev/null; PASSWORD=1 touch /y; exit 0'
    run pf_run
    in_none ghp_0123456789012345678901234567890123456 "$LOG"
}

@test "pinfold log: by id, by prefix and --last; --json is the file's records" {
    misbehave
    contains "$("$PINFOLD" log "$ID")" fs.write.read_only
    contains "$("$PINFOLD" log "${ID%?}")" fs.write.read_only
    contains "$("$PINFOLD" log --last)" net.address.literal
    is "$("$PINFOLD" log "$ID" --json | jq -s length)" "$(wc -l <"$LOG")"
}

@test "pinfold log --reason GLOB and --exit-code" {
    misbehave
    is "$("$PINFOLD" log "$ID" --json --reason 'net.*' | jq -r .status_detail | sort -u)" net.address.literal
    run "$PINFOLD" log "$ID" --exit-code
    [ "$status" != 0 ]
    run "$PINFOLD" log "$ID" --reason 'no.such' --exit-code
    ended 0
}

@test "pinfold log of a container that never was" {
    run "$PINFOLD" log never-was-$ID
    [ "$status" != 0 ]
}

@test "the record is whole as soon as run has ended" {
    for number in 1 2 3 4 5; do
        ID=$PREFIX-$number
        LOG=$LOGS/$ID.jsonl
        script_is 'touch /x; nc -w 1 1.2.3.4 443 </dev/null'
        run pf_run
        [ -n "$(records '.status_detail == "fs.write.read_only"')" ]
        [ -n "$(records '.status_detail == "net.address.literal"')" ]
    done
    ID=$PREFIX
}

@test "the container cannot reach the record" {
    script_is 'ls /var/log/pinfold 2>/dev/null; find / -name "*.jsonl" 2>/dev/null | grep -v /run/pinfold; exit 0'
    run pf_run
    is "$output" ""
}
