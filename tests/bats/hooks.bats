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

@test "crun #1551: a hook that reads nothing of its input does not disturb (EPIPE)" {
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

@test "hooks inside: the state has the pid that they see, and status created" {
    mkdir "$ROOT/hook"
    printf '#!/bin/sh\nread -r state\necho "$state" >/hook/state\nenv >/hook/env\n' >"$ROOT/hook/note"
    chmod 755 "$ROOT/hook/note"
    hook createContainer one
    configure '.hooks.startContainer = [{path: "/hook/note"}] | .process.env += ["FROM=process"]'
    pf_create
    is "$(jq -c '[.status, .pid]' "$WORK/one.state")" '["created",1]'
    pf start "$ID"
    is "$(jq -c '[.status, .pid]' "$ROOT/hook/state")" '["created",1]'
    # without an environment of its own it has the process's
    is "$(grep -c FROM=process "$ROOT/hook/env")" 1
}

@test "crun #906: a hook without an environment has the runtime's; it runs in the bundle and in the runtime's cgroup" {
    printf '#!/bin/sh\nenv >"%s/e"\npwd >"%s/d"\ncat /proc/self/cgroup >"%s/c"\n' "$WORK" "$WORK" "$WORK" >"$HOOKS/look"
    chmod 755 "$HOOKS/look"
    configure --arg path "$HOOKS/look" '.hooks.createRuntime = [{path: $path}]'
    LEAKED=1 pf_create
    is "$(grep -c LEAKED=1 "$WORK/e")" 1
    is "$(cat "$WORK/d")" "$BUNDLE"
    is "$(cat "$WORK/c")" "$(cat /proc/self/cgroup)"
    is "$(tr '\0' '\n' <"/proc/$(state_of .pid)/environ" | grep -c LEAKED || :)" 0
}

@test "a timeout ends a hook's children too, and whoever holds its output" {
    printf '#!/bin/sh\nsleep 78\nsleep 79\n' >"$HOOKS/slow"
    chmod 755 "$HOOKS/slow"
    configure --arg path "$HOOKS/slow" '.hooks.prestart = [{path: $path, timeout: 1}]'
    SECONDS=0
    run pf create --bundle "$BUNDLE" "$ID"
    ended 1 "hooks.prestart[0]: $HOOKS/slow ran longer than its timeout of 1 s"
    [ $SECONDS -lt 20 ]
    [ -z "$(ps -eo args | grep '^sleep 7[89]')" ]
}

@test "a timeout of the largest number is a long one; zero is an error that names it" {
    hook createRuntime one
    configure '.hooks.createRuntime[0].timeout = 2147483647'
    run pf_run
    ended 0
    configure '.hooks.createRuntime[0].timeout = 0'
    run pf_run
    ended 1 "hooks.createRuntime[0].timeout: expected more than 0"
}

@test "runc #4347: poststart that fails stops and deletes the container, and start says so" {
    printf '#!/bin/sh\nexit 9\n' >"$HOOKS/bad"
    chmod 755 "$HOOKS/bad"
    configure --arg path "$HOOKS/bad" '.hooks.poststart = [{path: $path}]'
    hook poststop two
    command_is sleep 1000
    pf_create
    run pf start "$ID"
    ended 1 "hooks.poststart[0]: $HOOKS/bad ended with exit status 9"
    run pf state "$ID"
    ended 1 "container does not exist"
    is "$(jq -r .status "$WORK/two.state")" stopped
}

@test "startContainer that fails ends the container before its program" {
    mkdir "$ROOT/hook"
    printf '#!/bin/sh\nexit 8\n' >"$ROOT/hook/bad"
    chmod 755 "$ROOT/hook/bad"
    configure '.hooks.startContainer = [{path: "/hook/bad"}]'
    script_is 'echo ran >/hook/proof'
    pf_create
    run pf start "$ID"
    ended 1 "hooks.startContainer[0]: /hook/bad ended with exit status 8"
    wait_status stopped
    [ ! -e "$ROOT/hook/proof" ]
}

# runtime.md, "Lifecycle": a hook of create that fails leads to the end of the life, where poststop is.
@test "poststop runs after a create whose hook failed, and not after one that came to no hook" {
    printf '#!/bin/sh\nexit 9\n' >"$HOOKS/bad"
    chmod 755 "$HOOKS/bad"
    hook poststop last
    configure '.mounts += [{destination: "/x", type: "bind", source: "/no/such", options: ["bind"]}]'
    run pf create --bundle "$BUNDLE" "$ID"
    ended 1 /no/such
    [ ! -e "$ORDER" ]
    configure --arg path "$HOOKS/bad" 'del(.mounts[-1]) | .hooks.createContainer = [{path: $path}]'
    run pf create --bundle "$BUNDLE" "$ID"
    ended 1 "hooks.createContainer[0]"
    is "$(cat "$ORDER")" last
}

@test "crun #1924, #2167: createContainer runs after the mounts and before the root is read-only" {
    mkdir "$ROOT/mark"
    printf '#!/bin/sh\ngrep -c " %s/rootfs/proc " /proc/self/mountinfo >"%s/rootfs/mark/proc"\n' "$BUNDLE" "$BUNDLE" >"$HOOKS/write"
    chmod 755 "$HOOKS/write"
    configure --arg path "$HOOKS/write" '.root.readonly = true | .hooks.createContainer = [{path: $path, env: ["PATH=/bin:/usr/bin"]}]'
    script_is 'cat /mark/proc; touch /mark/x 2>/dev/null || echo read-only'
    run pf_run
    ended 0
    is "$(xargs <<<"$output")" "1 read-only"
}

@test "youki #3256: all six hooks in the order of the life cycle, round the command" {
    mkdir "$ROOT/hook"
    printf '#!/bin/sh\necho "$2" >>"$1/order"\n' >"$HOOKS/add"
    printf '#!/bin/sh\necho startContainer >>/hook/order\n' >"$ROOT/hook/inside"
    chmod 755 "$HOOKS/add" "$ROOT/hook/inside"
    for kind in poststop poststart createContainer createRuntime prestart; do
        configure --arg kind $kind --arg path "$HOOKS/add" --arg dir "$ROOT/hook" '.hooks[$kind] = [{path: $path, args: ["add", $dir, $kind], env: ["PATH=/bin:/usr/bin"]}]'
    done
    configure '.hooks.startContainer = [{path: "/hook/inside"}]'
    script_is 'echo command >>/hook/order; exec sleep 1000'
    pf_create
    is "$(xargs <"$ROOT/hook/order")" "prestart createRuntime createContainer"
    pf start "$ID"
    wait_for grep -q poststart "$ROOT/hook/order"
    wait_for grep -q command "$ROOT/hook/order"
    pf delete --force "$ID"
    # poststart and the command run side by side
    is "$(grep -v -e command -e poststart "$ROOT/hook/order" | xargs)" "prestart createRuntime createContainer startContainer poststop"
    is "$(sed -n '5,6p' "$ROOT/hook/order" | sort | xargs)" "command poststart"
}

@test "crun #667: prestart and createRuntime hooks may still write to a root that becomes read-only" {
    mkdir "$ROOT/mark"
    # as GPU hooks do it: through the mount namespace of the process that the state names
    printf '#!/bin/sh\nnsenter -m -t "$(jq -r .pid)" touch "%s/mark/$1"\n' "$ROOT" >"$HOOKS/touch"
    chmod 755 "$HOOKS/touch"
    configure --arg path "$HOOKS/touch" '.root.readonly = true
      | .hooks.prestart = [{path: $path, args: ["touch", "prestart"], env: ["PATH=/usr/bin:/bin"]}]
      | .hooks.createRuntime = [{path: $path, args: ["touch", "createRuntime"], env: ["PATH=/usr/bin:/bin"]}]'
    script_is 'ls /mark; touch /mark/x 2>/dev/null || echo read-only'
    for POLICY in unconfined agent; do
        rm -f "$ROOT"/mark/*
        run pf_run
        is "$(xargs <<<"$output")" "createRuntime prestart read-only"
    done
}

@test "crun #2115, #2025: the state for hooks is one line of compact JSON without escaped slashes, with the bundle" {
    configure '.annotations = {"a/b": "c/d"}'
    hook prestart one
    pf_create
    lacks "$(cat "$WORK/one.state")" '\/'
    lacks "$(cat "$WORK/one.state")" '": '
    contains "$(cat "$WORK/one.state")" "\"bundle\":\"$BUNDLE\""
    is "$(jq -c . "$WORK/one.state")" "$(cat "$WORK/one.state")"
}
