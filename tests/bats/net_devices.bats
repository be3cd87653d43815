#!/usr/bin/env bats
# linux.netDevices: devices that move from the runtime's network namespace into the container's. The runtime's namespace
# is one of the test's own here ($HOST), and so are a namespace to join or to reach ($OUTSIDE) and one for ends of veth
# pairs ($FAR).
load helpers

setup() {
    setup_container
    unshare -n sleep 100 3>&- >/dev/null 2>&1 &
    HOST=$!
    unshare -n sleep 100 3>&- >/dev/null 2>&1 &
    OUTSIDE=$!
    unshare -n sleep 100 3>&- >/dev/null 2>&1 &
    FAR=$!
    for pid in $HOST $OUTSIDE $FAR; do wait_for bash -c "! [ /proc/$pid/ns/net -ef /proc/self/ns/net ]"; done
}
teardown() {
    teardown_container
    local code=$?
    kill "$HOST" "$OUTSIDE" "$FAR" 2>/dev/null || :
    return $code
}

on() { # PID COMMAND...: in the network namespace of a process
    local pid=$1
    shift
    nsenter -n -t "$pid" "$@"
}
pf() {
    on "$HOST" timeout -k 5 "${LIMIT:-30}" "$PINFOLD" --root "$STATE" ${POLICY:+--policy "$POLICY"} "$@" 3>&-
}
# The other ends of these are in $FAR, for those that need none: not every kernel has dummy devices.
add_device() { # PID NAME [OPTION...]
    on "$1" ip link add "${@:2}" type veth peer netns "$FAR"
}
inside() { on "$(state_of .pid)" "$@"; }
devices() { # JSON: linux.netDevices
    configure --argjson devices "$1" '.linux.netDevices = $devices'
}
# "eth0 up 10.9.0.1/24 fd00::1/64": of what is not lo, in the namespace of a process; kernel-made addresses left out
shown() { # PID
    on "$1" ip -j -d addr show | jq -r '.[] | select(.ifname != "lo")
      | [.ifname, (if (.flags | index("UP")) then "up" else "down" end)] + [.addr_info[] | select(.local | startswith("fe80") | not) | "\(.local)/\(.prefixlen)"] | join(" ")'
}

@test "a device moves: name, addresses, MTU and hardware address as they are; up whatever it was" {
    add_device "$HOST" dev0 mtu 1444 address 02:00:00:00:00:77
    on "$HOST" ip link set dev0 alias "the first" multicast off
    on "$HOST" ip addr add 10.9.0.1/24 brd 10.9.0.255 dev dev0
    on "$HOST" ip addr add 10.9.0.2/24 dev dev0 metric 7
    on "$HOST" ip addr add fd00:9::1/64 dev dev0 nodad
    devices '{"dev0": {}}'
    start_sleeper
    is "$(shown "$HOST")" ""
    is "$(inside ip -j link show dev0 | jq -rc '.[0] | [.mtu, .address, .ifalias, (.flags | index("MULTICAST"))]')" '[1444,"02:00:00:00:00:77","the first",null]'
    is "$(shown "$(state_of .pid)")" "dev0 up 10.9.0.1/24 10.9.0.2/24 fd00:9::1/64"
    is "$(inside ip -j addr show dev0 | jq -rc '.[0].addr_info[0:2] | map([.broadcast, .label, .metric])')" '[["10.9.0.255","dev0",null],[null,"dev0",7]]'
    contains "$(inside ip route)" "10.9.0.0/24 dev dev0"
}

@test "several devices, renamed, with labels after the new name; a template takes the next free name" {
    for i in 0 1 2; do add_device "$HOST" "dev$i"; done
    on "$HOST" ip addr add 10.9.0.1/24 dev dev0 label dev0:blue
    on "$HOST" ip addr add 10.9.1.1/32 peer 10.9.1.2/32 dev dev1
    devices '{"dev0": {"name": "blue0"}, "dev1": {"name": "net%d"}, "dev2": {"name": "net%d"}}'
    start_sleeper
    is "$(shown "$(state_of .pid)" | sort | xargs)" "blue0 up 10.9.0.1/24 net0 up 10.9.1.1/32 net1 up"
    is "$(inside ip -j addr show blue0 | jq -r '.[0].addr_info[0].label')" blue0:blue
    is "$(inside ip -j addr show net0 | jq -r '.[0].addr_info[0].address')" 10.9.1.2
}

@test "two devices that exchange their names, and one whose name and index are taken inside" {
    for i in 0 1; do add_device "$HOST" "dev$i"; on "$HOST" ip addr add "10.9.$i.1/24" dev "dev$i"; done
    add_device "$OUTSIDE" dev0
    devices '{"dev0": {"name": "dev1"}, "dev1": {"name": "dev2"}}'
    configure --arg path "/proc/$OUTSIDE/ns/net" '.linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
    start_sleeper
    is "$(shown "$OUTSIDE" | sort | xargs)" "dev0 down dev1 up 10.9.0.1/24 dev2 up 10.9.1.1/24"
}

@test "addresses that are temporary or of link scope stay behind" {
    add_device "$HOST" dev0
    on "$HOST" ip link set dev0 up
    on "$HOST" ip addr add 10.9.0.1/24 dev dev0
    on "$HOST" ip addr add 10.9.0.2/24 dev dev0 valid_lft 1000 preferred_lft 1000
    on "$HOST" ip addr add 169.254.7.7/16 scope link dev dev0
    devices '{"dev0": {}}'
    start_sleeper
    is "$(shown "$(state_of .pid)")" "dev0 up 10.9.0.1/24"
}

@test "a namespace that is joined keeps the device when the container goes; one of its own takes it along" {
    add_device "$HOST" dev0
    add_device "$HOST" dev1
    devices '{"dev0": {"name": "kept"}}'
    configure --arg path "/proc/$OUTSIDE/ns/net" '.linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
    run pf_run
    ended 0
    is "$(shown "$OUTSIDE")" "kept up"
    is "$(shown "$HOST")" "dev1 down"
    configure '.linux.namespaces |= map(if .type == "network" then del(.path) else . end)'
    devices '{"dev1": {}}'
    run pf_run
    ended 0
    is "$(shown "$HOST")" ""
}

@test "in a user namespace, and sysctls of the device by its new name" {
    user_namespace
    add_device "$HOST" dev0
    on "$HOST" ip addr add 10.9.0.1/24 dev dev0
    configure '.linux.sysctl = {"net.ipv4.conf.inside.rp_filter": "2"}'
    devices '{"dev0": {"name": "inside"}}'
    command_is sh -c 'cat /proc/sys/net/ipv4/conf/inside/rp_filter; ip -4 addr show inside'
    run pf_run
    ended 0
    is "${lines[0]}" 2
    contains "$output" "inet 10.9.0.1/24"
}

@test "hooks see the device, from createRuntime on" {
    add_device "$HOST" dev0
    printf '#!/bin/bash\nnsenter -n -t "$(jq .pid)" ip -o link show inside >%s\n' "$WORK/seen" >"$WORK/hook"
    chmod 755 "$WORK/hook"
    configure --arg path "$WORK/hook" '.hooks.createRuntime = [{path: $path, env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]'
    devices '{"dev0": {"name": "inside"}}'
    run pf_run
    ended 0
    matches "$(cat "$WORK/seen")" "inside@.*[<,]UP[,>]"
}

# -- failures ---------------------------------------------------------------------------------------------------------

@test "a name that is taken inside is an error that names the field, and the devices are back as they were" {
    add_device "$HOST" dev0
    add_device "$HOST" dev1 mtu 1444
    for i in 0 1; do on "$HOST" ip addr add "10.9.$i.1/24" dev "dev$i" label "dev$i:x"; done
    on "$HOST" ip addr add fd00:9::1/64 dev dev0 nodad
    on "$HOST" ip link set dev0 up
    before=$(shown "$HOST")
    add_device "$OUTSIDE" taken
    devices '{"dev0": {"name": "other"}, "dev1": {"name": "taken"}}'
    configure --arg path "/proc/$OUTSIDE/ns/net" '.linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
    run pf_run
    ended 1 "linux.netDevices.dev1: the container's network namespace has a network device taken already"
    is "$(shown "$HOST")" "$before"
    is "$(on "$HOST" ip -j addr show dev1 | jq -rc '.[0] | [.mtu, .addr_info[0].label]')" '[1444,"dev1:x"]'
    is "$(shown "$OUTSIDE")" "taken down"
}

@test "an address that cannot be kept is an error, and the device is back" {
    add_device "$HOST" dev0
    on "$HOST" ip addr add fd00:9::1/64 dev dev0 nodad
    on "$OUTSIDE" sh -c 'mount -t sysfs sysfs /sys 2>/dev/null; echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
    devices '{"dev0": {}}'
    configure --arg path "/proc/$OUTSIDE/ns/net" '.linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
    run pf_run
    ended 1 "linux.netDevices.dev0: add an IPv6 address of the device"
    is "$(shown "$HOST")" "dev0 down fd00:9::1/64"
}

@test "when a hook fails, outside or inside, the device is back though its new namespace is gone" {
    add_device "$HOST" dev0
    on "$HOST" ip addr add 10.9.0.1/24 dev dev0
    on "$HOST" ip link set dev0 up
    devices '{"dev0": {"name": "inside"}}'
    for point in createRuntime createContainer; do
        configure --arg point $point '.hooks = {($point): [{path: "/bin/false"}]}'
        run pf_run
        ended 1 "$point"
        is "$(shown "$HOST")" "dev0 up 10.9.0.1/24"
    done
}

@test "what cannot be moved is an error that names it, and nothing is left behind" {
    add_device "$HOST" dev0
    on "$HOST" ip link property add dev dev0 altname alternative
    refused() { # DEVICES MESSAGE
        devices "$1"
        run pf_run
        ended 1 "$2"
        is "$(shown "$HOST")" "dev0 down"
    }
    refused '{"absent": {}}' "linux.netDevices.absent: no network device has this name"
    refused '{"alternative": {}}' "linux.netDevices.alternative: this is an alternative name of the network device dev0"
    refused '{"lo": {}}' "linux.netDevices: expected names of network interfaces other than lo as keys, found \"lo\""
    refused '{"dev0": {"name": "0123456789abcdef"}}' "linux.netDevices.dev0.name: expected the name of a network interface"
    refused '{"dev0": {"name": "a/b"}}' "linux.netDevices.dev0.name: expected the name"
    refused '{"dev0": {"name": "a%s"}}' "linux.netDevices.dev0.name: expected the name"
    refused '{"dev0": {"name": "x"}, "dev1": {"name": "x"}}' "linux.netDevices.dev1.name: x is the name of linux.netDevices.dev0 already"
    configure --arg path "/proc/$HOST/ns/net" '.linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
    refused '{"dev0": {"name": "x"}}' "linux.netDevices: needs an entry of type \"network\" in linux.namespaces that is not the runtime's own"
    configure '.linux.namespaces |= map(select(.type != "network"))'
    refused '{"dev0": {"name": "x"}}' "linux.netDevices: needs an entry of type \"network\" in linux.namespaces"
}

@test "a runtime without rights over its network namespace says so, and the device stays" {
    add_device "$HOST" dev0
    devices '{"dev0": {}}'
    # so that the container's namespace is the runtime's to configure, and its own is not
    user_namespace
    run nsenter -n -t "$HOST" setpriv --bounding-set -net_admin "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID"
    ended 1 "linux.netDevices.dev0: move dev0: not allowed by the system (EPERM)"
    is "$(shown "$HOST")" "dev0 down"
}

# -- the wall ---------------------------------------------------------------------------------------------------------

# A veth pair from $HOST to $OUTSIDE, where whatever arrives is written down, but for what the kernel itself sends.
with_peer() {
    on "$HOST" ip link add dev0 type veth peer name peer netns "$OUTSIDE"
    on "$HOST" ip addr add 10.77.0.2/24 dev dev0
    on "$OUTSIDE" sh -c 'ip link set lo up; ip addr add 10.77.0.1/24 dev peer; ip link set peer up'
    timeout 20 nsenter -n -t "$OUTSIDE" busybox nc -l -p 443 </dev/null >"$WORK/outside" 2>&1 3>&- &
    timeout 20 nsenter -n -t "$OUTSIDE" python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(3))
print("ready", flush=True)
while True:
    data, address = s.recvfrom(4096)
    kernel = address[1] == 0x86dd and (data[6] == 58 or (data[6] == 0 and data[40] == 58))
    if address[2] != 4 and address[0] != "lo" and address[1] in (0x0800, 0x86dd) and not kernel:
        print(address, data.hex(), flush=True)' </dev/null >"$WORK/packets" 2>&1 3>&- &
    wait_for on "$OUTSIDE" grep -q :01BB /proc/net/tcp6 /proc/net/tcp
    wait_for grep -q ready "$WORK/packets"
    devices '{"dev0": {"name": "eth0"}}'
    script_is 'ip addr show eth0; echo secret | nc -w 3 10.77.0.1 443; timeout 3 tftp -g -r file 10.77.0.1 53; ping -c 1 -W 1 10.77.0.1; exit 0'
}

@test "the control: unconfined reaches the other end of a moved device" {
    with_peer
    run pf_run
    contains "$output" "inet 10.77.0.2/24"
    wait_for grep -q secret "$WORK/outside"
    wait_for grep -q 736563726574 "$WORK/packets"
}

@test "agent: not a byte gets out through a moved device, TCP, UDP and ping; denials are recorded" {
    POLICY=agent
    with_peer
    run pf_run
    contains "$output" "inet 10.77.0.2/24"
    is "$(cat "$WORK/outside")" ""
    is "$(cat "$WORK/packets")" ready
    has_record net.address.private '.dst_endpoint.ip == "10.77.0.1" and .dst_endpoint.port == 443'
}

@test "agent: a device that comes into a walled namespace with a second container is behind the same wall" {
    POLICY=agent
    start_sleeper
    pid=$(state_of .pid)
    first=$ID
    new_bundle "$WORK/second"
    ID=$first-b
    configure --arg path "/proc/$pid/ns/net" '.linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
    with_peer
    run pf_run
    ID=$first
    contains "$output" "inet 10.77.0.2/24"
    is "$(cat "$WORK/outside" "$WORK/packets")" ready
    contains "$(on "$pid" nft list ruleset)" eth0
}

@test "agent: explain says what becomes of the device" {
    POLICY=agent
    devices '{"dev0": {"name": "eth0"}}'
    run pf explain --bundle "$BUNDLE"
    contains "$output" "linux.netDevices dev0"
    contains "$output" "moved behind the network wall"
}

@test "features: netDevices" {
    is "$("$PINFOLD" features | jq .linux.netDevices.enabled)" true
}
