#!/usr/bin/env bats
# on_denied_action other than block_and_log, and what `pinfold policy suggest` makes of a run.
load helpers

setup() {
    setup_container
    POLICY=$WORK/policy.yaml
    mkdir -p "$ROOT/opt" "$ROOT/usr/share"
}
teardown() { teardown_container; }

policy_is() { # LINE...
    printf '%s\n' 'version: 1' "$@" >"$POLICY"
}
# Writes in two places of the root, looks at a system call's errno, and at a fake key.
work() {
    script_is 'echo one >/opt/one && mkdir -p /usr/share/deep/er && echo two >/usr/share/deep/er/two && echo all done'
}
observed() { # REASON
    records ".action_id == 3 and .status_detail == \"$1\""
}

@test "block_and_log: the first write ends the work" {
    work
    policy_is 'on_denied_action: block_and_log'
    run pf_run
    [ "$status" != 0 ]
    lacks "$output" "all done"
}

@test "log_only: the work is done, and each thing that is denied otherwise is recorded as observed" {
    work
    policy_is 'on_denied_action: log_only'
    run pf_run
    ended 0 "all done"
    is "$(cat "$ROOT/opt/one")" one
    is "$(observed fs.write.read_only | jq -r '.file.path' | sort | tr '\n' ' ')" "/opt/one /usr/share/deep /usr/share/deep/er /usr/share/deep/er/two "
    is "$(records '.action_id == 2 and .status_detail == "fs.write.read_only"')" ''
}

@test "log_only: a denied system call goes on to the kernel" {
    script_is 'unshare -m true && echo through'
    # the kernel asks for a capability that no policy gives
    policy_is 'on_denied_action: log_only'
    run pf_run
    [ "$status" != 0 ]
    is "$(observed syscall.not_allowed | jq -r .activity_name)" unshare
    is "$(records '.action_id == 2 and .status_detail == "syscall.not_allowed"')" ''
}

@test "log_only: credentials are taken out all the same, and nothing leaves" {
    configure '.process.env += ["GITHUB_TOKEN=fake"]'
    # shellcheck disable=SC2016 # the container's own
    script_is 'echo "token:$GITHUB_TOKEN"; nc -w 2 1.2.3.4 443 </dev/null && echo out'
    policy_is 'on_denied_action: log_only'
    run pf_run
    contains "$output" "token:"
    lacks "$output" fake
    lacks "$output" out
    has_record credential.env.removed
    has_record net.address.literal
}

@test "suggest: the smallest policy that would have let a run pass, and with it the run passes" {
    work
    policy_is 'on_denied_action: log_only'
    run pf_run
    ended 0 "all done"
    rm -r "$ROOT/opt/one" "$ROOT/usr/share/deep"
    "$PINFOLD" policy suggest "$ID" >"$WORK/suggested.yaml"
    is "$(grep -c '^    - ' "$WORK/suggested.yaml")" 3 # @default, /opt and /usr/share, which holds what is deeper
    matches "$(cat "$WORK/suggested.yaml")" '- "/opt" +# fs.write.read_only'
    ID=$ID-again LOG=$LOGS/$ID.jsonl POLICY=$WORK/suggested.yaml
    run pf_run
    ended 0 "all done"
    [ -s "$LOG" ]
    is "$(denials fs.write.read_only)" 0
}

@test "suggest: credentials and fake keys are not among it, and what no line allows is said" {
    configure '.process.env += ["GITHUB_TOKEN=fake"]'
    script_is 'cat /root/.ssh/id_rsa; mount -t tmpfs none /mnt; exit 0'
    POLICY=agent
    run pf_run
    run "$PINFOLD" policy suggest "$ID"
    ended 0 "# no line suggested for /root/.ssh/id_rsa: fs.decoy.opened"
    contains "$output" "# no line suggested for mount(): syscall.not_allowed"
    lacks "$output" GITHUB_TOKEN
    # nothing but comments and the version
    is "$(grep -v '^#' <<<"$output")" "version: 1"
}

@test "suggest: a name that the workload chose stays a name" {
    script_is 'mkdir "/opt/a: [b], \"c\" # d" 2>/dev/null; touch "/opt/x
network: {mode: open}"; exit 0'
    policy_is 'on_denied_action: log_only'
    run pf_run
    "$PINFOLD" policy suggest "$ID" >"$WORK/suggested.yaml"
    lacks "$(cat "$WORK/suggested.yaml")" "network:"
    run "$PINFOLD" policy check "$WORK/suggested.yaml"
    is "$status" 0
}

@test "stop: the first denied action ends the container, and the record says so" {
    script_is 'echo begun; touch /opt/x; echo went on'
    policy_is 'on_denied_action: stop'
    run pf_run
    ended 137 begun
    lacks "$output" "went on"
    has_record fs.write.read_only
    contains "$(records '.class_uid == 6002' | jq -r .message)" "on_denied_action: stop"
}

@test "an annotation cannot turn blocking off, and can turn stopping on" {
    work
    POLICY=agent
    configure '.annotations = {"dev.pinfold.on_denied_action": "log_only"}'
    run pf_run
    lacks "$output" "all done"
    has_record policy.annotation.ignored
    configure '.annotations = {"dev.pinfold.on_denied_action": "stop"}'
    ID=$ID-stop LOG=$LOGS/$ID.jsonl
    run pf_run
    is "$status" 137
}
