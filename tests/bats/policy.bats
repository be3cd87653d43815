#!/usr/bin/env bats
# Policies as documents: from whom they are believed, which one counts, what annotations may do, what the state keeps.
load helpers

# /etc/pinfold of this test's own: a copy of /etc is bound over it in the tests' mount namespace.
setup() {
    setup_container
    POLICY=''
    PRESETS=$(cd "$PINFOLD_TESTS/../policies" && pwd)
    cp -a /etc "$WORK/etc"
    rm -rf "$WORK/etc/pinfold"
    mkdir -p "$WORK/etc/pinfold/policies"
    mount --bind "$WORK/etc" /etc
}
teardown() {
    [ -z "${WORK-}" ] || umount /etc
    teardown_container
}

policy_file() { # PATH LINE...
    local path=$1
    shift
    printf '%s\n' "$@" >"$path"
    chmod 644 "$path"
}

@test "the short policy runs: what it names is writable, the rest is not" {
    policy_file "$WORK/p.yaml" 'filesystem: {default: deny, writable: ["@mounts", /work]}' \
        'network: {mode: allowlist, allowed_hosts: [example.org]}' \
        'credentials: {inherit_user_credentials: false}' 'on_denied_action: block_and_log'
    script_is 'cd /work && touch x && echo written; touch /etc/x || echo denied'
    POLICY=$WORK/p.yaml run pf_run
    ended 0 written
    contains "$output" denied
    [ "$(denials mechanism.unavailable)" = 0 ]
}

@test "an error of a policy names line and column, and leaves nothing behind" {
    policy_file "$WORK/p.yaml" 'network:' '  mode: allowlst'
    POLICY=$WORK/p.yaml run pf_run
    ended 1 "p.yaml:2:9: network.mode: expected none, allowlist or open, found \"allowlst\""
    [ ! -e "$STATE/$ID" ]
}

@test "a written line that is not in force makes create fail, unless best_effort names it" {
    policy_file "$WORK/p.yaml" 'log: {otlp: "http://127.0.0.1:4318"}'
    POLICY=$WORK/p.yaml run pf_run
    ended 1 "log.otlp, written in $WORK/p.yaml:1:13, needs"
    [ ! -e "$STATE/$ID" ]
    run "$PINFOLD" policy check "$WORK/p.yaml"
    ended 0 "create refuses this line: log.otlp needs"
    policy_file "$WORK/p.yaml" 'log: {otlp: "http://127.0.0.1:4318"}' 'enforcement: {best_effort: [log.otlp]}'
    POLICY=$WORK/p.yaml run pf_run
    ended 0
    has_record mechanism.unavailable '.message | contains("log.otlp is not in force")'
}

@test "a policy that others can write, or that is another user's, is refused" {
    policy_file "$WORK/p.yaml" 'network: {mode: none}'
    chmod 666 "$WORK/p.yaml"
    POLICY=$WORK/p.yaml run pf_run
    ended 1 "others can write it"
    chmod 644 "$WORK/p.yaml"
    chown 1234 "$WORK/p.yaml"
    POLICY=$WORK/p.yaml run pf_run
    ended 1 "belongs to uid 1234"
    mkfifo "$WORK/fifo.yaml"
    POLICY=$WORK/fifo.yaml run pf_run
    ended 1 "no regular file"
}

@test "a policy inside a writable mount is refused, also through a bind of a bind; read-only it may be" {
    mkdir -p "$WORK/project/sub" "$WORK/again" "$ROOT/work"
    policy_file "$WORK/project/sub/p.yaml" 'network: {mode: none}'
    configure --arg dir "$WORK/project" '.mounts += [{destination: "/work", type: "bind", source: $dir, options: ["rbind"]}]'
    POLICY=$WORK/project/sub/p.yaml run pf_run
    ended 1 "lies inside the mount at /work"
    mount --bind "$WORK/project" "$WORK/again"
    POLICY=$WORK/again/sub/p.yaml run pf_run
    umount "$WORK/again"
    ended 1 "lies inside the mount at /work"
    configure '.mounts[-1].options = ["rbind", "ro"]'
    POLICY=$WORK/project/sub/p.yaml run pf_run
    ended 0
}

@test "a policy inside a writable mount is refused when it is named by a bind mount of what is mounted, or of a part" {
    mkdir -p "$WORK/project/sub dir/deep" "$WORK/again" "$WORK/other" "$ROOT/work"
    policy_file "$WORK/project/sub dir/deep/p.yaml" 'network: {mode: none}'
    configure --arg dir "$WORK/project" '.mounts += [{destination: "/work", type: "bind", source: $dir, options: ["rbind"]}]'
    for part in "sub dir" "sub dir/deep" "sub dir/deep/p.yaml"; do
        [ -d "$WORK/project/$part" ] || { rmdir "$WORK/again" && : >"$WORK/again"; }
        mount --bind "$WORK/project/$part" "$WORK/again"
        named=$(find "$WORK/again" -name p.yaml -o -type f)
        POLICY=$named run pf_run
        umount "$WORK/again"
        ended 1 "lies inside the mount at /work"
    done
    # another file system that is mounted twice, once below what the container gets
    mkdir "$WORK/project/tmpfs"
    mount -t tmpfs tmpfs "$WORK/project/tmpfs"
    policy_file "$WORK/project/tmpfs/p.yaml" 'network: {mode: none}'
    mount --bind "$WORK/project/tmpfs" "$WORK/other"
    POLICY=$WORK/other/p.yaml run pf_run
    umount "$WORK/project/tmpfs"
    status_then=$status output_then=$output
    # gone from there, it is nobody's to write
    POLICY=$WORK/other/p.yaml run pf_run
    umount "$WORK/other"
    ended 0
    is "$status_then" 1
    contains "$output_then" "lies inside the mount at /work"
}

@test "order: /etc/pinfold/policy.yaml, then the policy of the link, then --policy" {
    policy_file /etc/pinfold/policy.yaml 'limits: {pids: 111}' 'network: {mode: none}'
    policy_file /etc/pinfold/policies/linked.yaml 'limits: {pids: 222}'
    policy_file "$WORK/flag.yaml" 'limits: {pids: 333}'
    run pf policy show
    contains "$output" "pids: 111"
    mkdir "$WORK/bin"
    ln -s "$(readlink -f "$PINFOLD")" "$WORK/bin/pinfold-linked"
    PINFOLD=$WORK/bin/pinfold-linked run pf policy show
    ended 0 "pids: 222"
    contains "$output" "mode: none"
    contains "$output" "# /etc/pinfold/policy.yaml:2:17"
    PINFOLD=$WORK/bin/pinfold-linked POLICY=$WORK/flag.yaml run pf policy show
    ended 0 "pids: 333"
    POLICY=agent run pf policy show
    ended 0 "pids: 1024"
}

@test "extends joins, \"!x\" takes out, and no policy extends itself" {
    policy_file /etc/pinfold/policies/base.yaml 'filesystem: {writable: [/a, /b]}'
    policy_file "$WORK/p.yaml" 'extends: [base, ./q.yaml]' 'filesystem: {writable: ["!/a", /c]}'
    policy_file "$WORK/q.yaml" 'filesystem: {writable: [/q]}'
    run pf policy show "$WORK/p.yaml"
    ended 0 '"/q"'
    contains "$output" '"/b"'
    contains "$output" '"/c"'
    lacks "$output" '"/a"'
    policy_file "$WORK/q.yaml" 'extends: p.yaml'
    run pf policy show "$WORK/p.yaml"
    ended 1 "p.yaml extends itself"
    policy_file "$WORK/q.yaml" 'extends: unconfined'
    run pf policy show "$WORK/p.yaml"
    ended 1 "for --policy and the name of a link alone"
    policy_file "$WORK/q.yaml" 'extends: nosuch'
    run pf policy show "$WORK/p.yaml"
    ended 1 '"nosuch" is not known; the known policies are: agent, unconfined, base'
}

@test "an annotation that asks for more gets nothing, and that is recorded" {
    configure '.annotations = {"dev.pinfold.network.mode": "open", "dev.pinfold.policy": "unconfined",
      "dev.pinfold.filesystem.writable": "[/etc, \"@mounts\"]", "dev.pinfold.credentials.environment": "[\"*\"]"}
      | .process.env += ["GITHUB_TOKEN=secret"]'
    script_is 'touch /etc/x || echo denied; env'
    run pf_run
    ended 0 denied
    lacks "$output" secret
    has_record policy.annotation.ignored '.message | contains("dev.pinfold.network.mode")'
    has_record policy.annotation.ignored '.message | contains("\"unconfined\", which is not selectable")'
    has_record policy.annotation.ignored '.message | contains("\"/etc\"")'
    has_record policy.annotation.ignored '.message | contains("credentials.environment")'
}

@test "an annotation narrows, and one that is no key of a policy is an error" {
    configure '.annotations = {"dev.pinfold.filesystem.scratch": "[/tmp]", "dev.pinfold.limits.pids": "50"}'
    script_is 'touch /tmp/x && echo tmp; touch /var/tmp/x || echo denied'
    run pf_run
    ended 0 tmp
    contains "$output" denied
    configure '.annotations = {"dev.pinfold.netwrok.mode": "none"}'
    run pf_run
    ended 1 "annotation dev.pinfold.netwrok.mode: there is no such key"
}

@test "dev.pinfold.policy chooses among the selectable ones alone; annotations: full may widen" {
    policy_file /etc/pinfold/policies/wide.yaml 'filesystem: {writable: [/etc]}'
    configure '.annotations = {"dev.pinfold.policy": "wide"}'
    script_is 'touch /etc/x && echo written'
    run pf_run
    ended 1 "Read-only file system"
    policy_file /etc/pinfold/config.yaml 'selectable: [wide]'
    run pf_run
    ended 0 written
    configure '.annotations = {"dev.pinfold.filesystem.writable": "[/etc]"}'
    run pf_run
    ended 1 "Read-only file system"
    policy_file /etc/pinfold/config.yaml 'annotations: full'
    run pf_run
    ended 0 written
    policy_file /etc/pinfold/config.yaml 'anotations: full'
    run pf_run
    ended 1 "/etc/pinfold/config.yaml:1:1: unknown key"
}

@test "beyond the ceiling create fails and names both lines" {
    policy_file /etc/pinfold/ceiling.yaml 'network: {mode: allowlist, allowed_hosts: ["*.example.org"]}'
    run pf_run
    ended 0
    policy_file "$WORK/p.yaml" 'network:' '  mode: open'
    POLICY=$WORK/p.yaml run pf_run
    ended 1 "policy.ceiling.exceeded: network.mode: open, written in $WORK/p.yaml:2:9, is more than /etc/pinfold/ceiling.yaml:1:17 allows"
    [ ! -e "$STATE/$ID" ]
    has_record policy.ceiling.exceeded '.class_uid == 2004 and .action_id == 2 and (.message | contains("ceiling.yaml:1:17")) and .policy.name == "p"'
    is "$(denials policy.ceiling.exceeded)" 1
    POLICY=unconfined run pf_run
    ended 1 "policy.ceiling.exceeded: a policy that confines nothing"
    has_record policy.ceiling.exceeded '.policy.name == "unconfined"'
    # what is no container leaves no record
    run pf policy show "$WORK/p.yaml"
    is "$(denials policy.ceiling.exceeded)" 2
    check=${CHECK_OCSF:-$(readlink -f "$PINFOLD_TESTS/../../shared/bin/check-ocsf")}
    [ ! -x "$check" ] || "$check" "$LOG"
    policy_file "$WORK/p.yaml" 'network: {allowed_hosts: [example.net]}'
    POLICY=$WORK/p.yaml run pf_run
    ended 1 '"example.net"'
}

@test "exec and update keep the stored policy, whatever has become of its file" {
    policy_file "$WORK/p.yaml" 'credentials: {environment: [MY_TOKEN]}' 'limits: {pids: 77}'
    POLICY=$WORK/p.yaml start_sleeper
    policy_file "$WORK/p.yaml" 'network: ['
    run pf exec --env MY_TOKEN=let-through --env OTHER_TOKEN=removed "$ID" env
    ended 0 let-through
    lacks "$output" removed
    rm "$WORK/p.yaml"
    run pf exec --env MY_TOKEN=let-through "$ID" env
    ended 0 let-through
    run pf update --pids-limit 500 "$ID"
    ended 0
    run jq -r .linux.resources.pids.limit "$STATE/$ID/config.json"
    ended 0 77
    printf 'damaged' >"$STATE/$ID/policy"
    run pf exec "$ID" true
    [ "$status" != 0 ]
    contains "$output" "the stored policy is damaged"
}

@test "a project's .pinfold.yaml counts once it was trusted, and as it stood then" {
    mkdir "$WORK/project"
    policy_file "$WORK/project/.pinfold.yaml" 'filesystem: {writable: ["@mounts", /data]}'
    POLICY='' run pf sandbox -w "$WORK/project" -- sh -c 'touch /data/x && echo written'
    lacks "$output" written
    contains "$output" "pinfold policy trust $WORK/project/.pinfold.yaml"
    POLICY=$WORK/project/.pinfold.yaml run pf policy show
    ended 1 "pinfold policy trust"
    run pf policy trust "$WORK/project/.pinfold.yaml"
    ended 0 /etc/pinfold/trusted
    run pf sandbox -w "$WORK/project" -- sh -c 'touch /data/x && echo written'
    ended 0 written
    lacks "$output" "pinfold policy trust"
    echo 'network: {mode: open}' >>"$WORK/project/.pinfold.yaml"
    run pf sandbox -w "$WORK/project" -- sh -c 'touch /data/x && echo written'
    lacks "$output" written
    contains "$output" "pinfold policy trust"
}

@test "every preset is valid, and runs; the agent's file says what is built in" {
    local name
    for name in strict cluster github git-ssh claude codex gemini aider; do
        POLICY=$PRESETS/$name.yaml run pf_run
        ended 0
    done
    # as an engine has it: the root is a mount, whose own directories become writable
    mount --bind "$ROOT" "$ROOT"
    script_is 'touch /usr/x /etc/x /root/x && echo written; touch /sbin/x || echo denied'
    for name in build ci; do
        POLICY=$PRESETS/$name.yaml run pf_run
        ended 0 written
        contains "$output" denied
    done
    umount "$ROOT"
    diff <(pf policy show "$PRESETS/agent.yaml" | sed -n '/^version/,$s/ *#.*//p') <(pf policy show agent | sed -n '/^version/,$s/ *#.*//p')
    run pf policy check --strict "$PRESETS/claude.yaml"
    ended 0 "nothing to warn of"
}

@test "policy check --strict fails for what is wider than it looks" {
    policy_file "$WORK/p.yaml" 'network: {allowed_hosts: ["*.com"]}'
    run pf policy check "$WORK/p.yaml"
    ended 0 "p.yaml:1:27: \"*.com\" is every host of other people's domains"
    run pf policy check --strict "$WORK/p.yaml"
    ended 1 "1 warning"
}

@test "limits of memory and processors bound what the engine asks for; ~/x is below the home" {
    policy_file "$WORK/p.yaml" 'limits: {memory: 64MiB, cpus: 0.5}' 'filesystem: {scratch: ["~/.cache"]}'
    configure '.linux.resources.memory.limit = 1073741824 | .linux.resources.cpu = {quota: 30000, period: 100000}'
    script_is 'mkdir /root/.cache/x && echo written; mkdir /root/x || echo denied'
    run pf --policy "$WORK/p.yaml" explain --bundle "$BUNDLE" --json
    ended 0
    [ "$(jq .config.linux.resources.memory.limit <<<"$output")" = 67108864 ]
    [ "$(jq .config.linux.resources.cpu.quota <<<"$output")" = 30000 ] # less than the policy's half
    configure '.linux.resources.cpu.quota = 200000'
    run pf --policy "$WORK/p.yaml" explain --bundle "$BUNDLE" --json
    [ "$(jq .config.linux.resources.cpu.quota <<<"$output")" = 50000 ]
    configure 'del(.linux.resources)'
    policy_file "$WORK/p.yaml" 'filesystem: {scratch: ["~/.cache"]}'
    POLICY=$WORK/p.yaml run pf_run
    ended 0 written
    contains "$output" denied
}

@test "policy list and schema" {
    policy_file /etc/pinfold/policies/mine.yaml 'network: {mode: none}'
    run pf policy list
    ended 0 /etc/pinfold/policies/mine.yaml
    pf policy schema | jq -e '.properties.network.properties.mode.enum == ["none", "allowlist", "open"]
      and .properties.on_denied_action.enum[0] == "stop" and .additionalProperties == false'
}
