#!/usr/bin/env bats
# The network wall: everything out is denied at once, attributed and recorded, on loopback-only namespaces and on
# namespaces that an engine has given an interface (here: a veth pair that a hook adds after create).
load helpers

setup() {
    setup_container
    POLICY=''
}
teardown() { teardown_container; }

connect() { # ADDRESS PORT: prints the error and how long it took, in milliseconds
    script_is "start=\$(cut -d' ' -f1 /proc/uptime); nc -w 5 $1 $2 </dev/null 2>&1; echo code \$?; end=\$(cut -d' ' -f1 /proc/uptime)
      awk -v a=\$start -v b=\$end 'BEGIN { print \"took\", int((b - a) * 1000) }'"
    pf_run
}
quick() { # OUTPUT
    [ "$(sed -n 's/^took //p' <<<"$1")" -lt 500 ] || { echo "too slow: $1" >&2; return 1; }
}

@test "TCP to an address: refused within milliseconds, recorded with the process" {
    run connect 1.2.3.4 443
    contains "$output" "Connection refused"
    quick "$output"
    has_record net.address.literal '.dst_endpoint.ip == "1.2.3.4" and .dst_endpoint.port == 443'
    record=$(records '.dst_endpoint.ip == "1.2.3.4"' | head -n 1)
    is "$(jq -r '"\(.class_uid) \(.action_id) \(.actor.process.name)"' <<<"$record")" "4001 2 nc"
    contains "$(jq -r .actor.process.cmd_line <<<"$record")" "1.2.3.4"
}

@test "TCP over IPv6" {
    run connect 2001:db8::1 443
    contains "$output" "Connection refused"
    quick "$output"
    has_record net.address.literal '.dst_endpoint.ip == "2001:db8::1"'
}

@test "the metadata address, a private address" {
    run connect 169.254.169.254 80
    contains "$output" "Connection refused"
    has_record net.address.metadata
    run connect 10.0.0.1 22
    has_record net.address.private
}

@test "UDP: denied at once" {
    # TFTP: the one applet that sends to a UDP port of one's choice, and it shows the error of the call
    script_is 'timeout 5 tftp -g -r file 1.2.3.4 9999 2>&1; echo "code $?"'
    run pf_run
    lacks "$output" "code 124"
    lacks "$output" "code 143"
    has_record net.protocol.not_allowed '.dst_endpoint.ip == "1.2.3.4" and .dst_endpoint.port == 9999'
}

@test "DNS: no name leaves the container" {
    echo "nameserver 9.9.9.9" >"$ROOT/etc/resolv.conf"
    script_is 'nslookup secret-data.example.com 2>&1; exit 0'
    run pf_run
    lacks "$output" "Address: 93."
    [ -n "$(records '.class_uid == 4001 or .class_uid == 4003')" ]
}

@test "ping and raw sockets" {
    script_is 'ping -c 1 -W 1 1.2.3.4 2>&1; exit 0'
    run pf_run
    lacks "$output" "bytes from"
}

@test "loopback inside the container works" {
    script_is 'echo hello | nc -l -p 8080 127.0.0.1 & sleep 0.3; nc -w 2 127.0.0.1 8080 </dev/null'
    run pf_run
    is "$output" hello
}

@test "loopback of the host is another one" {
    timeout 20 busybox nc -l -p 47111 127.0.0.1 </dev/null >/dev/null 2>&1 3>&- &
    listener=$!
    run connect 127.0.0.1 47111
    kill $listener 2>/dev/null || :
    contains "$output" "Connection refused"
}

@test "abstract sockets of the host are not reached" {
    timeout 20 python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind("\0" + sys.argv[1]); s.listen(); time.sleep(15)' "$ID" >/dev/null 2>&1 3>&- &
    wait_for grep -q "$ID" /proc/net/unix
    command_is cat /proc/net/unix
    run pf_run
    lacks "$output" "@$ID"
}

@test "two hundred denials: each is counted" {
    script_is 'i=0; while [ $i -lt 200 ]; do nc -w 1 1.2.3.4 443 </dev/null 2>/dev/null; i=$((i + 1)); done'
    LIMIT=60 run pf_run
    is "$(denials net.address.literal)" 200
}

# -- a namespace with an interface, as an engine gives it -----------------------------------------------------------

# A hook that moves one end of a veth pair into the container and leaves the other in a namespace of the test's, where
# everything that arrives is counted.
with_interface() {
    cat >"$WORK/add-interface" <<'SH'
#!/bin/bash
pid=$(jq -r .pid)
set -e
ip link add "v$pid" type veth peer name eth0 netns "$pid"
ip link set "v$pid" netns "$1"
nsenter -n -t "$1" sh -c "ip addr add 10.77.0.1/24 dev v$pid; ip link set v$pid up; ip addr add 1.2.3.4/32 dev v$pid"
nsenter -n -t "$pid" sh -c "ip addr add 10.77.0.2/24 dev eth0; ip link set eth0 up; ip route replace default via 10.77.0.1"
SH
    chmod 755 "$WORK/add-interface"
    unshare -n sleep 100 3>&- >/dev/null 2>&1 &
    OUTSIDE=$!
    wait_for bash -c "[ \"\$(readlink /proc/$OUTSIDE/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]"
    nsenter -n -t $OUTSIDE ip link set lo up
    configure --arg path "$WORK/add-interface" --arg outside "$OUTSIDE" \
        '.hooks.createRuntime = [{path: $path, args: ["add-interface", $outside], env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]'
}

@test "with an interface: the control: unconfined reaches the other end" {
    POLICY=unconfined
    with_interface
    timeout 20 nsenter -n -t $OUTSIDE busybox nc -l -p 443 </dev/null >"$WORK/outside" 2>&1 3>&- &
    sleep 0.3
    script_is 'echo reached | nc -w 3 1.2.3.4 443'
    run pf_run
    wait_for grep -q reached "$WORK/outside"
    kill $OUTSIDE
}

@test "with an interface: not a byte gets out, TCP, UDP and ping; denials are recorded" {
    with_interface
    timeout 20 nsenter -n -t $OUTSIDE busybox nc -l -p 443 </dev/null >"$WORK/outside" 2>&1 3>&- &
    # whatever arrives at the other end of the interface, but for address resolution
    timeout 20 nsenter -n -t $OUTSIDE python3 -c '
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(3))
while True:
    data, address = s.recvfrom(4096)
    # not ICMPv6, which the kernel itself sends, multicast reports with a hop-by-hop header before it
    kernel = address[1] == 0x86dd and (data[6] == 58 or (data[6] == 0 and data[40] == 58))
    if address[1] in (0x0800, 0x86dd) and not kernel:
        print(address, data.hex(), flush=True)' </dev/null >"$WORK/outside-packets" 2>&1 3>&- &
    sleep 0.3
    script_is 'echo secret | nc -w 3 1.2.3.4 443; echo secret | nc -w 3 10.77.0.1 443; timeout 3 tftp -g -r file 1.2.3.4 53; ping -c 1 -W 1 10.77.0.1; exit 0'
    run pf_run
    is "$(cat "$WORK/outside")" ""
    is "$(grep -v 'lo' "$WORK/outside-packets" || :)" ""
    has_record net.address.literal
    kill $OUTSIDE
}

@test "the wall is there before the command runs, and cannot be taken down" {
    configure '["CAP_NET_ADMIN", "CAP_NET_RAW"] as $c | .process.capabilities = {bounding: $c, effective: $c, permitted: $c}'
    script_is 'ip route del default 2>&1; ip route flush table all 2>&1; ip link set lo down 2>&1; nc -w 2 1.2.3.4 443 </dev/null 2>&1'
    run pf_run
    contains "$output" "Connection refused"
}

@test "a container that joins the namespace of another with the same policy works, and both are walled" {
    start_sleeper
    pid=$(state_of .pid)
    first=$ID
    bundle=$BUNDLE
    new_bundle "$WORK/second"
    ID=$first-b
    LOG=$LOGS/$ID.jsonl
    configure --arg path "/proc/$pid/ns/net" '.linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
    run connect 1.2.3.4 443
    contains "$output" "Connection refused"
    # one process listens to the kernel's log of a network namespace: the record is in that container's file
    wait_for grep -q net.address.literal "$LOGS/$first.jsonl" "$LOG"
    ID=$first
}

@test "a network namespace that outlives the container has no wall left" {
    name=$ID-ns
    ip netns add "$name"
    configure --arg path "/run/netns/$name" '.linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
    run pf_run
    code=$status
    left=$(ip netns exec "$name" nft list ruleset)
    ip netns del "$name"
    is "$code" 0
    is "$left" ""
}

@test "the wall of a network namespace is not taken down from under who has just joined it" {
    [ -x "${PINFOLD_FAULTS-}" ] || skip "no build with fault points (make pinfold-faults)"
    name=$ID-ns
    ip netns add "$name"
    configure --arg path "/run/netns/$name" '.linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
    command_is sleep 1000
    pf_create
    # delete has seen that nobody is in the namespace any more, and waits
    PINFOLD_PAUSE=wall-unused timeout 60 "$PINFOLD_FAULTS" --root "$STATE" delete --force "$ID" >"$WORK/deleted" 2>&1 3>&- &
    deleting=$!
    paused() { delete=$(pgrep -P "$deleting") && grep -q '^State:.T' "/proc/$delete/status"; }
    wait_for paused
    first=$ID ID=$ID-second LOG=$LOGS/$ID-second.jsonl
    pf_create &
    joining=$!
    # it waits for the delete to be done, or (which it must not) has joined what is about to go
    settled() { grep -q -- '-> FLOCK' /proc/locks || [ ! -d "/proc/$joining" ] || ip netns pids "$name" | grep -q .; }
    wait_for settled
    kill -CONT "$delete"
    wait "$deleting"
    wait "$joining"
    pf start "$ID"
    rules=$(ip netns exec "$name" nft list ruleset)
    pf delete --force "$ID"
    left=$(ip netns exec "$name" nft list ruleset)
    ip netns del "$name"
    rm -f "$LOGS/$first.jsonl"
    contains "$rules" "table inet pinfold"
    is "$left" ""
}
