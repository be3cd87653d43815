#!/usr/bin/env bats
# The stand-alone hook: crun and runc, which know nothing of pinfold, give a container the network wall. The servers are in a
# network namespace of the test's, at the other end of a veth pair that an earlier hook gives the container, as an engine would.
load helpers
load ../engines/egress.bash

setup_file() {
    # crun refuses a hybrid layout of cgroups; this file has a mount namespace of its own.
    [ -n "${PINFOLD_TEST_PRIVATE-}" ] || return 0
    ! mountpoint -q /sys/fs/cgroup/unified || { umount /sys/fs/cgroup/unified && mount -t tmpfs tmpfs /sys/fs/cgroup/unified; }
}
setup() {
    setup_container
    HOOK=${PINFOLD%/*}/pinfold-egress-hook
    POLICY=$WORK/policy.yaml HOUSE=$WORK OUTSIDE='' MADE=()
    configure '.ociVersion = "1.0.2" | del(.linux.resources)'
}
teardown() {
    local made
    for made in "${MADE[@]}"; do
        rt_of "$made" delete --force "${made#* }" >/dev/null 2>&1 || :
    done
    world_end
    teardown_container
}

# -- the other runtime --------------------------------------------------------------------------------------------

runtime_is() { # crun|runc
    command -v "$1" >/dev/null || skip "$1 is not installed"
    RUNTIME=$1 ID=$PREFIX-$1
    LOG=$LOGS/$ID.jsonl
}
rt_of() { # "RUNTIME ID" WORD...
    local words=("${1%% *}" --root "$WORK/${1%% *}")
    # it would leave a directory in the place of the hierarchy that setup_file hides
    [ "${words[0]}" != crun ] || words+=(--cgroup-manager=disabled)
    : >"$WORK/nothing" # crun gives its standard streams to the container's user, and /dev/null is the machine's
    timeout -k 5 "${LIMIT:-30}" "${words[@]}" "${@:2}" <"$WORK/nothing" 3>&-
}
rt() {
    rt_of "$RUNTIME" "$@"
}
rt_run() {
    MADE+=("$RUNTIME $ID")
    rt run --bundle "$BUNDLE" "$ID"
}
# A container that sleeps; it keeps the standard streams.
rt_start() {
    command_is sleep 1000
    rt_create && rt start "$ID"
}
rt_create() {
    MADE+=("$RUNTIME $ID")
    rt create --bundle "$BUNDLE" "$ID" >"$WORK/stdout" 2>"$WORK/stderr" || { cat "$WORK/stderr" >&2; return 1; }
}
exec_in() { # ID COMMAND...
    rt exec "$@"
}

# -- the hook, and the world --------------------------------------------------------------------------------------

hooked() { # [OPTION...]
    local words
    words=$(jq -cn '$ARGS.positional' --args -- pinfold-egress-hook "$@")
    configure --arg hook "$HOOK" --argjson words "$words" '.hooks.createRuntime += [{path: $hook, args: $words}]'
}
inside() { # COMMAND...: at the far end
    nsenter -n -t "$OUTSIDE" timeout 250 "$@" 3>&-
}
world() {
    unshare -n sleep 300 3>&- >/dev/null 2>&1 &
    OUTSIDE=$!
    wait_for bash -c "[ \"\$(readlink /proc/$OUTSIDE/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]"
    inside ip link set lo up
    far_end
    cat >"$WORK/add-interface" <<'SH'
#!/bin/bash
pid=$(jq -r .pid)
set -e
ip link add "v$pid" type veth peer name eth0 netns "$pid"
ip link set "v$pid" netns "$1"
nsenter -n -t "$1" sh -c "ip addr add 10.77.0.1/24 dev v$pid; ip addr add 2001:db8:77::1/64 dev v$pid nodad; ip link set v$pid up"
nsenter -n -t "$pid" sh -c "ip link set lo up; ip addr add 10.77.0.2/24 dev eth0; ip addr add 2001:db8:77::2/64 dev eth0 nodad; ip link set eth0 up
    ip route replace default via 10.77.0.1; ip -6 route replace default via 2001:db8:77::1"
SH
    chmod 755 "$WORK/add-interface"
    echo "nameserver 10.77.0.1" >"$WORK/resolv.conf"
    chmod 644 "$WORK/resolv.conf"
    furnished
}
# Who is in the far end's namespace: the servers, and who holds it.
world_end() {
    local process pids=()
    [ -n "$OUTSIDE" ] || return 0
    for process in /proc/[0-9]*; do
        ! [ "$process/ns/net" -ef "/proc/$OUTSIDE/ns/net" ] || pids+=("${process#/proc/}")
    done
    kill "${pids[@]}" 2>/dev/null || :
}
# What `hosts` needs in the container.
furnished() {
    configure --arg resolver "$WORK/resolv.conf" '.mounts += [["/usr", "/usr"], ["/usr/lib", "/lib"], ["/usr/lib64", "/lib64"], [$resolver, "/etc/resolv.conf"]
      | {destination: .[1], type: "bind", source: .[0], options: ["rbind", "ro"]}]'
    mkdir -p "$ROOT/lib64"
    touch "$ROOT/etc/resolv.conf"
    install -m 755 "$PINFOLD_TESTS/engines/hosts" "$ROOT/bin/hosts"
}
# The container gets an interface, from a hook that comes before ours.
connected() {
    configure --arg path "$WORK/add-interface" --arg outside "$OUTSIDE" \
        '.hooks.createRuntime = [{path: $path, args: ["add-interface", $outside], env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]'
}
log_of() { # ID
    echo "$LOGS/$1.jsonl"
}
# What stays beside the container, by name.
companions() {
    local process name names=()
    for process in /proc/[0-9]*; do
        { read -r name <"$process/comm"; } 2>/dev/null || continue
        [[ $name != pinfold-* ]] || names+=("$name")
    done
    printf '%s\n' "${names[@]}" | sort | xargs
}
valid_records() {
    local check=${CHECK_OCSF:-$PINFOLD_TESTS/../../shared/bin/check-ocsf}
    [ ! -x "$check" ] || "$check" "$LOG"
}

script_of_hosts() { # RUNTIME
    runtime_is "$1"
    world
    connected
    rt_start
    all_hosts "$ID" # the control: without the hook all of it gets out
    rt delete --force "$ID"
    hooked --policy "$HOSTS_POLICY"
    rt_start
    the_hosts "$ID" "$ID"
    is "$(companions)" "pinfold-broker pinfold-guard pinfold-keeper pinfold-warden"
    valid_records
    is "$(records | jq -r '.actor.process.container.runtime // empty' | sort -u)" "$1"
    rt delete --force "$ID"
    has_record container.ended
}

@test "crun: the script of allowed and denied hosts" {
    script_of_hosts crun
}
@test "runc: the script of allowed and denied hosts" {
    script_of_hosts runc
}

# podman does so for --userns, after createRuntime: nobody calls the hook again.
@test "interfaces that come after the hook: the same script, and answers to who connects in" {
    runtime_is crun
    world
    hooked --policy "$HOSTS_POLICY"
    command_is /usr/bin/python3 -c '
import socket
listening = socket.create_server(("", 8080))
while True:
    connection, _ = listening.accept()
    with connection:
        connection.sendall(b"inside")'
    rt_create
    rt state "$ID" | "$WORK/add-interface" "$OUTSIDE"
    rt start "$ID"
    the_hosts "$ID" "$ID"
    is "$(inside python3 -c 'import socket; print(socket.create_connection(("10.77.0.2", 8080), 5).recv(20).decode())')" inside
}

@test "in a user namespace the same script" {
    runtime_is crun
    world
    user_namespace
    connected
    hooked --policy "$HOSTS_POLICY"
    rt_start
    the_hosts "$ID" "$ID"
}

@test "with loopback alone nothing leaves, the denial is immediate, and run returns when the program has ended" {
    local runtime
    for runtime in crun runc; do
        runtime_is "$runtime"
        [ "$runtime" = crun ] || { new_bundle "$WORK/second"; configure '.ociVersion = "1.0.2" | del(.linux.resources)'; }
        hooked --policy agent
        script_is 'nc -w 5 1.2.3.4 80 </dev/null; nc -w 5 169.254.169.254 80 </dev/null; exit 7'
        run rt_run
        ended 7
        contains "$output" "Connection refused"
        has_record net.address.literal '.dst_endpoint.ip == "1.2.3.4" and .actor.process.name == "nc"'
        has_record net.address.metadata
        has_record container.ended
        valid_records
    done
}

@test "a hook that cannot fails the container, says why, and leaves nothing" {
    local runtime
    command_is touch /tmp/ran
    for runtime in crun runc; do
        runtime_is "$runtime"
        configure 'del(.hooks)'
        hooked --policy no-such-policy
        run rt_run
        [ "$status" != 0 ]
        contains "$output" no-such-policy
        is "$(companions)" ''
        [ ! -e "$ROOT/tmp/ran" ]
    done
}

@test "a container that could take the wall down or pass by it is refused: capabilities, the host's network" {
    local name
    runtime_is runc
    hooked --policy agent
    command_is touch /tmp/ran
    for name in CAP_NET_RAW CAP_NET_ADMIN CAP_SYS_ADMIN; do
        configure --arg name $name '.process.capabilities = {bounding: [$name]}'
        run rt_run
        [ "$status" != 0 ]
        contains "$output" "capability.refused: process.capabilities has $name"
        contains "$output" "--cap-drop ${name#CAP_}"
        has_record capability.refused "(.message | contains(\"$name\"))"
    done
    configure '.process.capabilities = {bounding: ["CAP_KILL"]} | .linux.namespaces |= map(select(.type != "network"))'
    run rt_run
    [ "$status" != 0 ]
    contains "$output" namespace.host.refused
    configure '.linux.namespaces += [{type: "network", path: "/proc/self/ns/net"}]'
    run rt_run
    [ "$status" != 0 ]
    contains "$output" namespace.host.refused
    [ ! -e "$ROOT/tmp/ran" ]
    is "$(companions)" ''
    # the control
    configure '.linux.namespaces |= map(if .type == "network" then {type} else . end)'
    rt_run
    [ -e "$ROOT/tmp/ran" ]
}

# An image's annotations are the container's, under podman.
@test "an annotation chooses no policy and opens no host" {
    runtime_is runc
    hooked --policy agent
    configure '.annotations = {"dev.pinfold.egress": "on", "dev.pinfold.policy": "unconfined", "dev.pinfold.network.mode": "open",
      "dev.pinfold.network.allowed_hosts": "[\"1.2.3.4\"]"}'
    script_is 'nc -w 5 1.2.3.4 80 </dev/null'
    run rt_run
    ended 1
    has_record net.address.literal '.dst_endpoint.ip == "1.2.3.4" and .policy.name == "agent"'
    has_record policy.annotation.ignored '.message | contains("unconfined")'
    has_record policy.annotation.ignored '.message | contains("network.mode")'
}

@test "without its warden the container does not go on" {
    local process name
    runtime_is runc
    hooked --policy agent
    rt_start
    for process in /proc/[0-9]*; do
        { read -r name <"$process/comm"; } 2>/dev/null || continue
        [ "$name" != pinfold-warden ] || kill -9 "${process#/proc/}"
    done
    ends() { [ "$(rt state "$ID" | jq -r .status)" = stopped ]; }
    wait_for ends
    has_record warden.lost
}

@test "a policy without a wall: nothing is put up" {
    runtime_is runc
    hooked --policy unconfined
    rt_start
    is "$(companions)" ''
    [ ! -e "$LOG" ]
}
