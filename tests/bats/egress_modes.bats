#!/usr/bin/env bats
# network.mode: none and open, network.inbound: what they let through, and what they record of it.
load helpers
load egress_world

setup() { setup_container; setup_world; }
teardown() { teardown_world; teardown_container; }

mode() { # MODE [MORE-LINES]
    printf 'version: 1\nnetwork:\n  mode: %s\n%s\n' "$1" "${2-}" >"$POLICY"
}
# A process that connects, sends a datagram, and stays until it has been looked at.
python_is() { # TEXT
    command_is /usr/bin/python3 -c "$1"
}

@test "network.mode: open: everything is reached, and each new flow is recorded once with its process" {
    world
    connected
    mode open
    python_is '
import socket, time
stream = socket.create_connection(("1.2.3.4", 80))
stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
print(stream.recv(9).decode())
again = socket.create_connection(("1.2.3.4", 80))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(5):
    datagrams.sendto(b"x", ("1.2.3.4", 9999))
inside = socket.create_server(("127.0.0.1", 9000))
socket.create_connection(("127.0.0.1", 9000))
time.sleep(1)'
    run pf_run
    is "$output" "HTTP/1.1 "
    has_record net.connection.opened '.action == "Allowed" and .activity_name == "Open" and .dst_endpoint.ip == "1.2.3.4"
        and .dst_endpoint.port == 80 and .connection_info.protocol_name == "tcp" and .firewall_rule.name == "network.mode: open"
        and .actor.process.file.name[0:6] == "python" and (.actor.process.cmd_line | contains("socket"))'
    has_record net.connection.opened '.dst_endpoint.port == 9999 and .connection_info.protocol_name == "udp" and (.count // 1) == 1'
    is "$(records '.status_detail == "net.connection.opened" and .dst_endpoint.port == 80' | jq -s 'map(.count // 1) | add')" 2
    is "$(records '.dst_endpoint.port == 9000' | wc -l)" 0
    is "$(records '.action == "Denied" and (.status_detail | startswith("net."))' | wc -l)" 0
}

@test "network.mode: open: what comes faster than it can be recorded is counted, and nothing is held up" {
    world
    connected
    mode open
    python_is '
import socket, time
datagrams = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for i in range(900)]
for datagram in datagrams:
    datagram.sendto(b"x", ("1.2.3.4", 9999))
print("sent", flush=True)
time.sleep(1)'
    run pf_run
    is "$output" sent
    is "$(records '.dst_endpoint.port == 9999 or .status_detail == "log.suppressed"' |
        jq -s 'map((if .dst_endpoint.port == 9999 then .count // 1 else 0 end) + (.unmapped.suppressed // 0)) | add')" 900
}

@test "observe.network: false: with network.mode: open nothing of it is recorded, and no rule stands" {
    world
    connected
    mode open 'observe: {network: false}'
    python_is '
import socket, time
print(socket.create_connection(("1.2.3.4", 80)) and "reached", flush=True)
time.sleep(0.3)'
    run pf_run
    is "$output" reached
    is "$(records '.class_uid == 4001' | wc -l)" 0
}

@test "network.mode: open on the host's network: no rule is put there, and a record says what is missing" {
    configure '.linux.namespaces |= map(select(.type != "network"))'
    mode open
    command_is true
    pf_run
    has_record mechanism.unavailable '.finding_info.title | contains("is not recorded: the container uses the host'"'"'s network")'
    is "$(jq -r '.mechanisms[] | select(.name == "reached hosts").state' <<<"$(pf explain --bundle "$BUNDLE" --json)")" unavailable
    if [ -x /usr/sbin/nft ]; then
        lacks "$(/usr/sbin/nft list tables)" pinfold
    fi
    pf delete "$ID" || :
    mode open 'observe: {network: true}'
    run pf_run
    [ "$status" = 1 ]
    contains "$output" "observe.network, written in $POLICY:4:"
    contains "$output" "best_effort: [observe.network]"
}

@test "network.mode: open: a container of another network policy does not join" {
    mode open
    command_is sleep 1000
    pf_create
    first=$ID
    pid=$(state_of .pid)
    new_bundle "$WORK/second"
    joins "$pid"
    ID=$first-b
    mode allowlist
    run pf_run
    contains "$output" net.namespace.shared
    mode open
    command_is true
    pf_run
}

@test "network.mode: open: what shows the flows goes with the last container of a namespace that stays" {
    [ -x /usr/sbin/nft ] || skip "needs nft"
    unshare -n sleep 300 3>&- >/dev/null 2>&1 &
    OUTSIDE=$!
    wait_for bash -c "[ \"\$(readlink /proc/$OUTSIDE/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]"
    touch "$WORK/net"
    mount --bind "/proc/$OUTSIDE/ns/net" "$WORK/net"
    kill "$OUTSIDE"
    wait "$OUTSIDE" || :
    OUTSIDE=''
    configure --arg path "$WORK/net" '.linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
    mode open
    start_sleeper
    nsenter --net="$WORK/net" nft list table inet pinfold >"$WORK/rules"
    contains "$(cat "$WORK/rules")" "let out"
    pf delete --force "$ID"
    is "$(nsenter --net="$WORK/net" nft list tables)" ""
    umount "$WORK/net"
}

@test "network.mode: none: no broker runs, nothing leaves whatever the engine adds, and each attempt is recorded" {
    world
    connected
    comms() { cat /proc/[0-9]*/comm 2>/dev/null | sort; }
    mode allowlist '  allowed_hosts: ["1.2.3.4"]'
    start_sleeper
    contains "$(comms)" pinfold-broker # the control
    pf delete --force "$ID"
    mode none
    start_sleeper
    lacks "$(comms)" pinfold-broker
    is "$(comms | grep -c ^pinfold-)" 2 # warden and guardian
    is "$(jq '.broker.pid // 0' "$STATE/$ID/state.json")" 0
    run inside "$(fetch http://1.2.3.4/); $(fetch http://allowed.test/)"
    contains "$output" "code 7"
    contains "$output" "code 6"
    has_record net.address.literal '.dst_endpoint.ip == "1.2.3.4"'
    has_record dns.name.not_allowed '.query.hostname == "allowed.test"'
    is "$(cat "$WORK/seen")" ready
}

@test "network.mode: none with hosts in the same file is an error that names both lines; hosts of other files are closed" {
    mode none '  allowed_hosts: [allowed.test]'
    command_is true
    run pf_run
    [ "$status" = 1 ]
    contains "$output" "$POLICY:3:"
    contains "$output" "network.mode: none lets nothing out, and $POLICY:4:"
    contains "$output" "allows allowed.test"
    printf 'version: 1\nnetwork: {allowed_hosts: [allowed.test]}\n' >"$WORK/hosts.yaml"
    printf 'version: 1\nextends: [./hosts.yaml]\nnetwork: {mode: none}\n' >"$POLICY"
    command_is true
    pf_run
}

@test "inbound: deny: a connection from outside is refused at once and recorded with who listens; datagrams are dropped and recorded" {
    world
    connected
    command_is /usr/bin/python3 -c '
import socket
listening = socket.create_server(("", 8080))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("", 8081))
while True:
    print("got", datagrams.recv(10), flush=True)'
    dial() { # from outside, with 10 seconds of patience
        nsenter -n -t "$OUTSIDE" timeout 20 /usr/bin/python3 -c '
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("10.77.0.2", 8081))
for port in (8080, 8082):
    try:
        socket.create_connection(("10.77.0.2", port), 10)
        print("connected")
    except OSError as error:
        print(type(error).__name__)'
    }
    mode allowlist '  inbound: deny
on_denied_action: stop'
    pf_create && pf start "$ID"
    wait_for inside 'grep -q :1F90 /proc/net/tcp && grep -q :1F91 /proc/net/udp'
    is "$(dial)" $'ConnectionRefusedError\nConnectionRefusedError'
    has_record net.inbound.not_allowed '.dst_endpoint.port == 8080 and .dst_endpoint.ip == "10.77.0.2" and .src_endpoint.ip == "10.77.0.1"
        and .connection_info.direction_id == 1 and .action == "Denied" and .firewall_rule.name == "network.inbound: deny"
        and (.actor.process.cmd_line | contains("create_server"))'
    has_record net.inbound.not_allowed '.dst_endpoint.port == 8082 and .actor.process.pid == null'
    has_record net.inbound.not_allowed '.dst_endpoint.port == 8081 and .connection_info.protocol_name == "udp"'
    is "$(state_of .status)" running # nobody outside can end it
    lacks "$(cat "$WORK/stdout")" got
    pf delete --force "$ID"
    # the control: without the line it is reached
    mode allowlist
    pf_create && pf start "$ID"
    wait_for inside 'grep -q :1F90 /proc/net/tcp && grep -q :1F91 /proc/net/udp'
    is "$(dial)" $'connected\nConnectionRefusedError'
    wait_for grep -q got "$WORK/stdout"
}
