#!/usr/bin/env bats
# `pinfold explain` and `pinfold why`: what they say is what holds.
load helpers

setup() {
    setup_container
    POLICY=''
}
teardown() { teardown_container; }

@test "explain: every line of the policy with its origin, each change with its rule, mechanisms, limits, volumes, hooks" {
    mkdir "$WORK/volume"
    configure --arg volume "$WORK/volume" '.process.env += ["GITHUB_TOKEN=value4711"]
      | .mounts += [{destination: "/data", type: "bind", source: $volume, options: ["rbind", "rw"]},
                    {destination: "/fixed", type: "bind", source: $volume, options: ["rbind", "ro"]}]
      | .hooks = {createRuntime: [{path: "/bin/true"}], startContainer: [{path: "/bin/false"}]}'
    pf explain --bundle "$BUNDLE" --json >"$WORK/explained"
    is "$(jq -c '.lines[] | select(.key == "network.mode")' "$WORK/explained")" '{"key":"network.mode","value":"allowlist","origin":"built-in agent"}'
    is "$(jq '[.lines[] | select(.origin == null)] | length' "$WORK/explained")" 0
    is "$(jq -r '.changes[] | select(.subject == "GITHUB_TOKEN") | .kind + " " + .rule' "$WORK/explained")" "removed credentials.inherit_user_credentials: false"
    is "$(jq -r '.mechanisms[] | select(.name == "network wall") | .state' "$WORK/explained")" enforced
    is "$(jq -r '.mechanisms[] | select(.how == null) | .name' "$WORK/explained")" ""
    is "$(jq -c '.unlimited | contains(["limits.memory", "limits.time"]), index("limits.pids")' "$WORK/explained" | xargs)" "true null"
    is "$(jq -c .persistent "$WORK/explained")" "[{\"path\":\"/data\",\"kind\":\"$WORK/volume\"}]"
    is "$(jq -c .hooks "$WORK/explained")" '[{"kind":"createRuntime","path":"/bin/true"}]'
    run pf explain --bundle "$BUNDLE"
    ended 0 "built-in agent"
    contains "$output" "createRuntime    /bin/true"
    contains "$output" "/data  ($WORK/volume)"
    contains "$output" "Without a limit"
    lacks "$output" value4711
}

@test "explain ID: what create has left says the same as before, also when the bundle has changed since" {
    configure '.process.env += ["GITHUB_TOKEN=value4711"]'
    command_is sleep 1000
    pf explain --bundle "$BUNDLE" --json | jq -S 'del(.config)' >"$WORK/before"
    pf_create
    configure '.process.env += ["NPM_TOKEN=fake"]'
    pf explain --json "$ID" | jq -S . >"$WORK/stored"
    jq -S . "$STATE/$ID/enforcement.json" | diff - "$WORK/stored"
    diff "$WORK/before" "$WORK/stored"
    contains "$(pf explain "$ID")" GITHUB_TOKEN
    ! grep -r value4711 "$STATE/$ID/enforcement.json"
    is "$(stat -c %a "$STATE/$ID/enforcement.json")" 600
}

@test "explain ID: a mechanism that this machine lacks is not called enforced" {
    grep -q ':pids:' /proc/self/cgroup || skip "this machine has no v1 pids controller"
    command_is sleep 1000
    pf --cgroup-manager disabled create --bundle "$BUNDLE" "$ID" </dev/null >"$WORK/stdout" 2>"$WORK/stderr"
    is "$(pf explain --json "$ID" | jq -r '.mechanisms[] | select(.name == "number of processes") | .state')" unavailable
    contains "$(pf explain --json "$ID" | jq -c .unlimited)" limits.pids
}

@test "explain: a policy that confines nothing, both an ID and a bundle, an ID that is none" {
    run pf explain --bundle "$BUNDLE" --policy unconfined
    ended 0 "confines nothing"
    run pf explain --bundle "$BUNDLE" "$ID"
    ended 1 "not both"
    run pf explain "$ID"
    ended 1 "does not exist"
    POLICY=unconfined
    start_sleeper
    run pf explain "$ID"
    ended 1 "confines nothing"
}
