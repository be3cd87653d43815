# A network namespace with what a container may want to reach, at the other end of a veth pair that a hook gives the container,
# as an engine would. For tests of allowed hosts and of the modes.

setup_world() {
    POLICY=$WORK/policy.yaml
    OUTSIDE='' WORLD=''
}
teardown_world() {
    [ -z "$OUTSIDE" ] || kill $OUTSIDE $WORLD 2>/dev/null || :
}

allow() { # YAML-LIST [MORE-LINES]: the policy
    printf 'version: 1\nnetwork:\n  allowed_hosts: %s\n%s\n' "$1" "${2-}" >"$POLICY"
}

# The world: a name server at 10.77.0.1, and servers that answer "reached" at ports 80 and 7000 of 1.2.3.4.
world() { # NAME=ADDRESS...
    unshare -n sleep 300 3>&- >/dev/null 2>&1 &
    OUTSIDE=$!
    wait_for bash -c "[ \"\$(readlink /proc/$OUTSIDE/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]"
    nsenter -n -t "$OUTSIDE" sh -c 'ip link set lo up; ip addr add 1.2.3.4/32 dev lo; ip addr add 10.77.0.1/32 dev lo'
    nsenter -n -t "$OUTSIDE" timeout 250 "$BATS_TEST_DIRNAME/world" 10.77.0.1 80,7000 "$@" </dev/null >"$WORK/seen" 2>&1 3>&- &
    WORLD=$!
    wait_for grep -q ready "$WORK/seen"
}

# The container gets an interface, a route and a resolv.conf, as from an engine.
connected() {
    cat >"$WORK/add-interface" <<'SH'
#!/bin/bash
pid=$(jq -r .pid)
set -e
ip link add "v$pid" type veth peer name eth0 netns "$pid"
ip link set "v$pid" netns "$1"
nsenter -n -t "$1" sh -c "ip addr add 10.77.0.1/24 dev v$pid; ip link set v$pid up"
nsenter -n -t "$pid" sh -c "ip addr add 10.77.0.2/24 dev eth0; ip link set eth0 up; ip route replace default via 10.77.0.1"
SH
    chmod 755 "$WORK/add-interface"
    echo "nameserver 10.77.0.1" >"$WORK/resolv.conf"
    configure --arg path "$WORK/add-interface" --arg outside "$OUTSIDE" --arg resolver "$WORK/resolv.conf" \
        '.hooks.createRuntime = [{path: $path, args: ["add-interface", $outside], env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]
         | .mounts += [{destination: "/etc/resolv.conf", type: "bind", source: $resolver, options: ["bind", "ro"]}]'
    machine_programs
}
# curl and what it is linked with: a static busybox has no resolver.
machine_programs() {
    configure '.mounts += [["/usr", "/usr"], ["/usr/lib", "/lib"], ["/usr/lib64", "/lib64"]
      | {destination: .[1], type: "bind", source: .[0], options: ["rbind", "ro"]}]'
}

fetch() { # URL [OPTION...]: what the container does
    printf '/usr/bin/curl -sS --max-time 8 %s 2>&1; echo code $?\n' "$*"
}

# A container that a test looks into: it sleeps, and `inside` runs a shell in it.
inside() { # TEXT
    pf exec "$ID" sh -c "$1" 2>&1
}
joins() { # PID: the container is in the network namespace of this process
    configure --arg path "/proc/$1/ns/net" 'del(.hooks) | .linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
}
