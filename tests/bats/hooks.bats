#!/usr/bin/env bats
# config.md "POSIX-platform Hooks", runtime.md "Lifecycle": where each hook runs, in which order, with which state.
load helpers

setup() {
    setup_container
    HOOKS=$WORK/hooks
    mkdir "$HOOKS"
    ORDER=$WORK/order
    # writes its name, the state's status and pid, and its own namespaces into a file of the host
    cat >"$HOOKS/note" <<'SH'
#!/bin/sh
read -r state
printf '%s' "$state" >"$1/$2.state"
readlink /proc/self/ns/mnt >"$1/$2.mnt"
readlink /proc/self/ns/pid >"$1/$2.pid"
env >"$1/$2.env"
echo "$2" >>"$1/order"
SH
    chmod 755 "$HOOKS/note"
}
teardown() { teardown_container; }

hook() { # KIND NAME
    configure --arg kind "$1" --arg path "$HOOKS/note" --arg dir "$WORK" --arg name "$2" \
        '.hooks[$kind] += [{path: $path, args: ["note", $dir, $name], env: ["PATH=/bin:/usr/bin", "HOOK=yes"]}]'
}

@test "prestart, createRuntime, poststart and poststop run in the runtime's namespaces, in order" {
    hook poststop five
    hook poststart four
    hook createRuntime two
    hook createRuntime three
    hook prestart one
    command_is sleep 1000
    pf_create
    is "$(xargs <"$ORDER")" "one two three"
    pf start "$ID"
    wait_for grep -q four "$ORDER"
    pf delete --force "$ID"
    is "$(xargs <"$ORDER")" "one two three four five"
    for name in one two four five; do
        is "$(cat "$WORK/$name.mnt")" "$(readlink /proc/self/ns/mnt)"
    done
}

@test "the state that a hook reads: one line of JSON with id, status, pid, bundle and annotations" {
    configure '.annotations = {"key": "a/b"}'
    hook createRuntime one
    hook poststart two
    hook poststop three
    command_is sleep 1000
    pf_create
    pid=$(state_of .pid)
    is "$(jq -r '[.id, .bundle, .annotations.key] | join(" ")' "$WORK/one.state")" "$ID $(realpath "$BUNDLE") a/b"
    is "$(jq -r .status "$WORK/one.state")" created
    is "$(jq -r .pid "$WORK/one.state")" "$pid"
    # consumers match the bytes: slashes are not escaped
    contains "$(cat "$WORK/one.state")" "a/b"
    pf start "$ID"
    wait_for test -s "$WORK/two.state"
    is "$(jq -r .status "$WORK/two.state")" running
    pf delete --force "$ID"
    is "$(jq -r .status "$WORK/three.state")" stopped
}

@test "createContainer runs in the container's mount namespace, before the root is changed" {
    hook createContainer one
    pf_create
    [ -s "$WORK/one.mnt" ]
    is "$(cat "$WORK/one.mnt")" "$(readlink "/proc/$(state_of .pid)/ns/mnt")"
    lacks "$(cat "$WORK/one.mnt")" "$(readlink /proc/self/ns/mnt)"
}

@test "startContainer runs inside the container, before the command" {
    mkdir "$ROOT/hook"
    printf '#!/bin/sh\nread -r state\necho "$state" >/hook/state\necho hook >>/hook/order\n' >"$ROOT/hook/note"
    chmod 755 "$ROOT/hook/note"
    configure '.hooks.startContainer = [{path: "/hook/note", args: ["note"], env: ["PATH=/bin"]}]'
    script_is 'echo command >>/hook/order'
    run pf_run
    ended 0
    is "$(xargs <"$ROOT/hook/order")" "hook command"
    is "$(jq -r .id "$ROOT/hook/state")" "$ID"
}

@test "the environment of a hook is what is written" {
    hook createRuntime one
    LEAKED=1 pf_create
    is "$(grep -vE '^(PWD|SHLVL|_)=' "$WORK/one.env" | sort | xargs)" "HOOK=yes PATH=/bin:/usr/bin"
}

@test "a hook that fails: createRuntime fails create and names the hook, nothing is left" {
    printf '#!/bin/sh\necho complaint >&2\nexit 9\n' >"$HOOKS/bad"
    chmod 755 "$HOOKS/bad"
    configure --arg path "$HOOKS/bad" '.hooks.createRuntime = [{path: $path}]'
    run pf create --bundle "$BUNDLE" "$ID"
    ended 1 "$HOOKS/bad"
    contains "$output" 9
    run pf state "$ID"
    ended 1 "container does not exist"
}

@test "a hook that fails: poststop does not keep delete from succeeding" {
    printf '#!/bin/sh\nexit 9\n' >"$HOOKS/bad"
    chmod 755 "$HOOKS/bad"
    configure --arg path "$HOOKS/bad" '.hooks.poststop = [{path: $path}]'
    hook poststop after
    start_sleeper
    run pf delete --force "$ID"
    ended 0
    is "$(cat "$ORDER")" after
}

@test "a hook that is not there is an error that names it" {
    configure '.hooks.createRuntime = [{path: "/no/such/hook"}]'
    run pf create --bundle "$BUNDLE" "$ID"
    ended 1 /no/such/hook
}

@test "a hook that takes longer than its timeout is ended" {
    printf '#!/bin/sh\nexec sleep 77\n' >"$HOOKS/slow"
    chmod 755 "$HOOKS/slow"
    configure --arg path "$HOOKS/slow" '.hooks.createRuntime = [{path: $path, timeout: 1}]'
    SECONDS=0
    run pf create --bundle "$BUNDLE" "$ID"
    ended 1
    [ $SECONDS -lt 10 ]
    [ -z "$(ps -eo args | grep '^sleep 77')" ]
}

@test "a hook that reads nothing of its input does not disturb (EPIPE)" {
    configure '.hooks.createRuntime = [{path: "/bin/true"}] | .annotations = {"long": ("x" * 200000)}'
    run pf_run
    ended 0
}

@test "a hook has no descriptor of the runtime" {
    printf '#!/bin/sh\nls -l /proc/self/fd >"%s"\n' "$WORK/descriptors" >"$HOOKS/list"
    chmod 755 "$HOOKS/list"
    configure --arg path "$HOOKS/list" '.hooks.createRuntime = [{path: $path}]'
    run pf_run
    ended 0
    # 0, 1, 2 and ls's own
    is "$(grep -c -- '->' "$WORK/descriptors")" 4
}

@test "a hook sees the network namespace that it is to configure" {
    printf '#!/bin/sh\npid=$(jq -r .pid)\nnsenter -n -t "$pid" ip link add hooked type bridge\n' >"$HOOKS/network"
    chmod 755 "$HOOKS/network"
    configure --arg path "$HOOKS/network" '.hooks.createRuntime = [{path: $path, env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]'
    command_is ls /sys/class/net
    run pf_run
    contains "$output" hooked
}
