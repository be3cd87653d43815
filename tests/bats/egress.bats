#!/usr/bin/env bats
# Allowed hosts: the wall lets them through to the broker, and nothing else. The servers are in a network namespace of the
# test's, at the other end of a veth pair that a hook gives the container, as an engine would.
load helpers
load egress_world

setup() {
    setup_container
    setup_world
}
teardown() {
    teardown_world
    teardown_container
}

@test "an allowed name is reached, and the connection is recorded with the line that allowed it" {
    world allowed.test=1.2.3.4
    connected
    allow '[allowed.test]'
    script_is "$(fetch http://allowed.test/)"
    run pf_run
    is "$output" $'reached\ncode 0'
    has_record net.connection.opened '.action_id == 1 and .dst_endpoint.hostname == "allowed.test" and .dst_endpoint.port == 80'
    contains "$(records '.status_detail == "net.connection.opened"' | jq -r .firewall_rule.name)" allowed.test
    contains "$(cat "$WORK/seen")" "name allowed.test 1"
}

@test "a name that is not allowed is not found, is recorded, and no server is ever asked for it" {
    world allowed.test=1.2.3.4 denied.test=1.2.3.4
    connected
    allow '[allowed.test]'
    script_is "$(fetch http://denied.test/); $(fetch http://below.allowed.test/)"
    run pf_run
    is "$output" $'curl: (6) Could not resolve host: denied.test\ncode 6\ncurl: (6) Could not resolve host: below.allowed.test\ncode 6'
    has_record dns.name.not_allowed '.query.hostname == "denied.test"'
    is "$(cat "$WORK/seen")" ready
}

@test "names below a *.name line are reached, the name itself is not" {
    world a.wild.test=1.2.3.4 b.a.wild.test=1.2.3.4 wild.test=1.2.3.4
    connected
    allow '["*.wild.test:80"]'
    script_is "$(fetch http://a.wild.test/); $(fetch http://b.a.wild.test/); $(fetch http://wild.test/)"
    run pf_run
    is "$output" $'reached\ncode 0\nreached\ncode 0\ncurl: (6) Could not resolve host: wild.test\ncode 6'
}

@test "another port of an allowed host is refused at once, and recorded with its name" {
    world allowed.test=1.2.3.4
    connected
    allow '[allowed.test]'
    script_is "$(fetch --http0.9 http://allowed.test:7000/)"
    run pf_run
    contains "$output" "code 7"
    has_record net.port.not_allowed '.dst_endpoint.hostname == "allowed.test" and .dst_endpoint.port == 7000'
    contains "$(records '.status_detail == "net.port.not_allowed"' | jq -r .unmapped.remedy)" 'allowed.test:80,443,7000'
    lacks "$(cat "$WORK/seen")" request
}

@test "a port that is named: a protocol of any kind" {
    world allowed.test=1.2.3.4
    connected
    allow '["allowed.test:7000"]'
    script_is "$(fetch http://allowed.test:7000/)"
    run pf_run
    is "$output" $'reached\ncode 0'
}

@test "the address of an allowed name is not allowed; an address of the policy's own is" {
    world allowed.test=1.2.3.4
    connected
    allow '[allowed.test]'
    script_is "$(fetch http://1.2.3.4/)"
    run pf_run
    contains "$output" "code 7"
    has_record net.address.literal '.dst_endpoint.ip == "1.2.3.4"'
    pf delete "$ID" || :
    allow '["1.2.3.0/24:80"]'
    run pf_run
    is "$output" $'reached\ncode 0'
}

@test "in a user namespace the same" {
    user_namespace
    touch "$ROOT/etc/resolv.conf"
    mkdir "$ROOT/lib64"
    world allowed.test=1.2.3.4
    connected
    chmod 644 "$WORK/resolv.conf"
    allow '[allowed.test]'
    script_is "$(fetch http://allowed.test/); $(fetch http://denied.test/)"
    run pf_run
    is "$output" $'reached\ncode 0\ncurl: (6) Could not resolve host: denied.test\ncode 6'
    has_record net.connection.opened
    has_record dns.name.not_allowed '.query.hostname == "denied.test"'
}

@test "with loopback alone there is no uplink: a connection to an allowed host fails at once" {
    machine_programs
    allow '["allowed.test", "1.2.3.4"]'
    script_is "$(fetch http://1.2.3.4/)"
    run pf_run
    lacks "$output" reached
    lacks "$output" "code 28"
    contains "$(jq -r 'select(.status_detail == "net.connection.failed").message' "$LOGS/$ID.jsonl")" "no interface but loopback; network.uplink: host"
}

@test "uplink: host: with loopback alone, allowed hosts are reached from the runtime's namespace" {
    ip link set lo up
    ip addr add 1.2.3.4/32 dev lo
    timeout 60 "$BATS_TEST_DIRNAME/world" 127.0.0.1 80 </dev/null >"$WORK/seen" 2>&1 3>&- &
    world=$!
    wait_for grep -q ready "$WORK/seen"
    machine_programs
    allow '["1.2.3.4"]' '  uplink: host'
    script_is "$(fetch http://1.2.3.4/); $(fetch http://1.2.3.4:8080/)"
    run pf_run
    kill "$world"
    ip addr del 1.2.3.4/32 dev lo
    contains "$output" $'reached\ncode 0'
    contains "$output" "code 7"
}

# The container's hosts file opens the address that it names, and no other that the name may have.
@test "uplink: host: a name that the engine's hosts file gives an address is not to be found on loopback of the host" {
    world
    machine_programs
    allow '[allowed.test]' '  uplink: host'
    echo "127.0.0.1 allowed.test" >"$WORK/hosts"
    mount --bind "$WORK/hosts" "$(realpath /etc/hosts)"
    echo "10.77.0.1 allowed.test" >"$WORK/hosts-inside"
    configure --arg hosts "$WORK/hosts-inside" '.mounts += [{destination: "/etc/hosts", type: "bind", source: $hosts, options: ["bind", "ro"]}]'
    script_is "$(fetch --resolve allowed.test:80:198.18.0.1 http://allowed.test/); $(fetch http://allowed.test/)"
    printf '#!/bin/sh\nexec nsenter -n -t %s %s "$@"\n' "$OUTSIDE" "$PINFOLD" >"$WORK/pinfold"
    chmod 755 "$WORK/pinfold"
    PINFOLD=$WORK/pinfold run pf_run
    umount "$(realpath /etc/hosts)"
    is "$(grep -c reached <<<"$output")" 1
    has_record net.address.private '.dst_endpoint.ip == "127.0.0.1"'
}

@test "a broker that has no descriptor left waits for one, and does not spin" {
    machine_programs
    allow '[allowed.test]' '  uplink: host'
    script_is '/usr/bin/python3 -c "
import os, socket, time
child = os.fork()  # the limit is its own, too
relayed = [socket.create_connection((\"198.18.0.1\", 80)) for i in range(80)]
time.sleep(1 if child else 60)
asking = [socket.create_connection((\"1.1.1.1\", 53)) for i in range(4)]
print(\"held\", flush=True)
time.sleep(60)"'
    configure "del(.process.rlimits)"
    (ulimit -n 128 && pf_create)
    pf start "$ID"
    wait_for grep -q held "$WORK/stdout"
    broker=$(grep -l pinfold-broker /proc/[0-9]*/comm)
    before=$(awk '{print $14 + $15}' "${broker%comm}stat")
    sleep 2
    used=$(($(awk '{print $14 + $15}' "${broker%comm}stat") - before))
    [ "$used" -lt 60 ] || { echo "$used hundredths of two seconds" >&2; false; }
}

@test "a workload cannot set the mark that lets the broker's packets out" {
    world
    connected
    allow '[allowed.test]'
    configure '["CAP_NET_ADMIN", "CAP_NET_RAW"] as $c | .process.capabilities = {bounding: $c, effective: $c, permitted: $c}'
    script_is '/usr/bin/python3 -c "
import socket
s = socket.socket()
for option in (36, 25):  # SO_MARK, SO_BINDTODEVICE to lo
    try:
        s.setsockopt(socket.SOL_SOCKET, option, 1 if option == 36 else b\"lo\")
        print(option, \"set\")
    except PermissionError:
        print(option, \"denied\")
"'
    run pf_run
    contains "$output" "36 denied"
    # the control: who has the capability can
    POLICY=unconfined
    pf delete "$ID" || :
    run pf_run
    contains "$output" "36 set"
}

@test "a workload cannot answer in the place of the engine's resolver on loopback, nor have the broker's questions" {
    [ -x /usr/sbin/nft ] || skip "needs nft"
    world allowed.test=5.6.7.8
    connected
    allow '[allowed.test]'
    echo "nameserver 127.0.0.11" >"$WORK/resolv.conf"
    # as Docker has it: its resolver listens at another port of this address, to which a rule of its own leads
    cat >>"$WORK/add-interface" <<'SH'
nsenter -n -t "$pid" /usr/sbin/nft -f - <<'NFT'
table ip docker {
chain output {
type nat hook output priority -100;
ip daddr 127.0.0.11 udp dport 53 dnat to 127.0.0.11:45353
}
}
NFT
SH
    # The workload's packets come first: what the broker then sends would be the other direction of theirs.
    script_is '/usr/bin/python3 -c "
import select, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((\"127.0.0.11\", 53))
sent = 0
for port in range(32768, 61000):
    try:
        sent += s.sendto(b\"x\", (\"127.0.0.1\", port)) and 1
    except OSError:
        pass
print(\"sent\", sent)
client = socket.socket()
client.settimeout(1)
try:
    client.connect((\"198.18.0.1\", 80))
    client.send(b\"GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n\")
except OSError:
    pass
print(\"asked\", bool(select.select([s], [], [], 3)[0]))
"'
    LIMIT=60 run pf_run
    is "$output" $'sent 0\nasked False'
}

@test "what is sent from an address of somebody outside brings him nothing: no reset, no answer of the broker's" {
    [ -e /proc/net/if_inet6 ] || skip "needs IPv6"
    world allowed.test=1.2.3.4
    connected
    allow '[allowed.test]'
    cat >>"$WORK/add-interface" <<'SH'
nsenter -n -t "$1" ip addr add 2001:db8:9::1/64 dev "v$pid" nodad
nsenter -n -t "$pid" sh -c "ip addr add 2001:db8:9::2/64 dev eth0 nodad; ip -6 route replace default via 2001:db8:9::1"
SH
    timeout 60 nsenter -n -t "$OUTSIDE" python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(3))
print("ready", flush=True)
while True:
    data, address = s.recvfrom(4096)
    if address[1] == 0x86dd and data[24:40] == socket.inet_pton(socket.AF_INET6, "2001:db8:1::1"):
        print("got", data.hex(), flush=True)
    if b"the last one" in data:
        print("end", flush=True)' </dev/null >"$WORK/outside" 2>&1 3>&- &
    wait_for grep -q ready "$WORK/outside"
    script_is '/usr/bin/python3 -c "
import socket
def attempt(kind, port, to, word=None):
    s = socket.socket(socket.AF_INET6, kind)
    s.setsockopt(socket.IPPROTO_IPV6, 78, 1)  # IPV6_FREEBIND
    s.bind((\"2001:db8:1::1\", port))
    s.settimeout(1.5)  # a SYN is sent again after a second, and is then reset by the kernel
    try:
        s.connect(to)
        s.send(word)
    except OSError:
        pass
attempt(socket.SOCK_STREAM, 7001, (\"2001:db8:7::7\", 443))
attempt(socket.SOCK_STREAM, 7002, (\"fd00:9800::1\", 80))
attempt(socket.SOCK_DGRAM, 7003, (\"2001:db8:7::7\", 443), b\"secret\")
attempt(socket.SOCK_DGRAM, 7004, (\"2001:db8:7::7\", 53), bytes.fromhex(\"123401000001000000000000\") + b\"\\6secret\\4test\\0\\0\\1\\0\\1\")
print(\"done\")
"'
    LIMIT=60 run pf_run
    is "$output" "done"
    # on loopback of the other side, which the listener sees too: what came before it has been read
    nsenter -n -t "$OUTSIDE" python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"the last one", ("10.77.0.1", 9))'
    wait_for grep -q end "$WORK/outside"
    is "$(grep -c got "$WORK/outside" || :)" 0
}

# What an engine has mounted writable, as they do, the next start of the container would believe.
@test "a workload cannot write the name server or the addresses that the next broker believes" {
    world
    connected
    allow '[allowed.test]'
    echo "127.0.0.1 localhost" >"$WORK/hosts"
    configure --arg hosts "$WORK/hosts" '.mounts |= map(if .destination == "/etc/resolv.conf" then .options = ["bind", "rw"] else . end)
        | .mounts += [{destination: "/etc//hosts", type: "bind", source: $hosts, options: ["rbind"]}]'
    script_is 'echo "nameserver 6.6.6.6" >/etc/resolv.conf; echo "10.0.0.1 allowed.test" >>/etc/hosts; umount /etc/hosts; true'
    pf_run
    is "$(cat "$WORK/resolv.conf" "$WORK/hosts")" $'nameserver 10.77.0.1\n127.0.0.1 localhost'
    pf delete "$ID" || :
    POLICY=unconfined pf_run
    is "$(cat "$WORK/resolv.conf" "$WORK/hosts")" $'nameserver 6.6.6.6\n127.0.0.1 localhost\n10.0.0.1 allowed.test'
}

@test "a container that joins has the same hosts, and when the first one ends its broker is followed by the other's" {
    world allowed.test=1.2.3.4
    connected
    allow '[allowed.test]'
    command_is sleep 1000
    pf_create && pf start "$ID"
    first=$ID
    pid=$(state_of .pid)
    sleep 1000 3>&- & # keeps the namespace, as a pod's does
    new_bundle "$WORK/second"
    ID=$first-b
    LOG=$LOGS/$ID.jsonl
    joins "$pid"
    configure --arg resolver "$WORK/resolv.conf" '.mounts += [{destination: "/etc/resolv.conf", type: "bind", source: $resolver, options: ["bind", "ro"]}]'
    machine_programs
    command_is sleep 1000
    pf_create && pf start "$ID"
    run inside "$(fetch http://allowed.test/)"
    is "$output" $'reached\ncode 0'
    pf delete --force "$first"
    reaches() { [ "$(inside "$(fetch http://allowed.test/)")" = $'reached\ncode 0' ]; }
    wait_for reaches
    run inside "$(fetch http://denied.test/)"
    contains "$output" "code 6"
}

@test "the wall is known by the network section alone: other lines may differ, hosts may not" {
    allow '[allowed.test]'
    command_is sleep 1000
    pf_create
    first=$ID
    pid=$(state_of .pid)
    new_bundle "$WORK/second"
    joins "$pid"
    ID=$first-b
    allow '[allowed.test]' 'limits: {pids: 100}'
    command_is true
    pf_run
    ID=$first-c
    allow '[other.test]'
    run pf_run
    contains "$output" net.namespace.shared
}

@test "inbound: deny: nobody outside reaches a listener; loopback and answers go on" {
    world allowed.test=1.2.3.4
    connected
    reach() { # whether the container's listener is reached from outside
        pf_create && pf start "$ID"
        wait_for inside 'grep -q :1F90 /proc/net/tcp'
        nsenter -n -t "$OUTSIDE" timeout 3 /usr/bin/python3 -c '
import socket
try:
    print(socket.create_connection(("10.77.0.2", 8080), 1).recv(20))
except OSError as error:
    print(type(error).__name__)'
        within=$(inside '/bin/busybox nc -w 2 127.0.0.1 8080 </dev/null')
        answered=$(inside "$(fetch http://allowed.test/)")
        pf delete --force "$ID"
    }
    command_is /usr/bin/python3 -c '
import socket
listening = socket.create_server(("", 8080))
while True:
    connection, _ = listening.accept()
    with connection:
        connection.sendall(b"inside")'
    allow '[allowed.test]'
    contains "$(reach)" inside
    allow '[allowed.test]' '  inbound: deny'
    reach >"$WORK/reached"
    lacks "$(cat "$WORK/reached")" inside
    is "$within" inside
    is "$answered" $'reached\ncode 0'
}

@test "a broker that is killed: connections fail at once, nobody else answers, and it comes back" {
    world allowed.test=1.2.3.4
    connected
    allow '[allowed.test]'
    command_is sleep 1000
    pf_create && pf start "$ID"
    is "$(inside "$(fetch http://allowed.test/)")" $'reached\ncode 0'
    keeper=$(jq -r .broker.pid "$STATE/$ID/state.json")
    broker=$(pgrep -P "$keeper")
    kill -9 "$broker"
    reaches() { [ "$(inside "$(fetch http://allowed.test/)")" = $'reached\ncode 0' ]; }
    wait_for reaches
    lacks "$(pgrep -P "$keeper")" "$broker"
    has_record broker.lost
    # with its keeper gone as well, nothing listens, and nothing gets out
    kill -9 "$keeper"
    wait_for bash -c "! pgrep -P $keeper"
    run inside "$(fetch http://allowed.test/)"
    lacks "$output" reached
    lacks "$output" "code 28"
}

# podman 5 names the name server of pasta once its network is there: after create.
@test "what the engine writes into resolv.conf and hosts between create and start counts" {
    world allowed.test=1.2.3.4
    connected
    allow '[allowed.test, other.test]'
    echo "nameserver 10.77.0.9" >"$WORK/resolv.conf" # nobody answers there
    command_is sleep 1000
    pf_create
    echo "nameserver 10.77.0.1" >"$WORK/resolv.conf"
    pf start "$ID"
    is "$(inside "$(fetch http://allowed.test/)")" $'reached\ncode 0'
    is "$(cat "$STATE/$ID/resolv.conf")" "nameserver 10.77.0.1"
    # what is written once the workload runs does not: it could be the workload's
    echo "nameserver 10.77.0.9" >"$WORK/resolv.conf"
    kill -9 "$(pgrep -P "$(jq -r .broker.pid "$STATE/$ID/state.json")")"
    reaches() { [ "$(inside "$(fetch http://allowed.test/)")" = $'reached\ncode 0' ]; }
    wait_for reaches
}

@test "a resolv.conf of the image is not read at start either: its symlink to a file that is mounted, nor a file in its place" {
    world allowed.test=1.2.3.4
    connected
    # the engine mounts none: the runtime's own counts, which leads nowhere from here
    configure '.mounts |= map(select(.destination != "/etc/resolv.conf"))'
    echo "nameserver 10.77.0.1" >"$WORK/theirs"
    configure --arg source "$WORK/theirs" '.mounts += [{destination: "/data", type: "bind", source: $source, options: ["bind", "ro"]}]'
    touch "$ROOT/data"
    ln -sf /data "$ROOT/etc/resolv.conf"
    allow '[allowed.test]'
    command_is sleep 1000
    pf_create && pf start "$ID"
    lacks "$(inside "$(fetch http://allowed.test/)")" reached
    is "$(grep -c "^name allowed.test" "$WORK/seen")" 0
}

@test "Docker's own name server, which Docker writes after create: where it does not answer, the servers of create are asked" {
    world allowed.test=1.2.3.4
    connected
    allow '[allowed.test]'
    command_is sleep 1000
    pf_create
    echo "nameserver 127.0.0.11" >"$WORK/resolv.conf"
    pf start "$ID"
    is "$(inside "$(fetch http://allowed.test/)")" $'reached\ncode 0'
    is "$(cat "$STATE/$ID/resolv.conf")" $'nameserver 127.0.0.11\nnameserver 10.77.0.1'
}

# Docker's rules lead its address to a port of dockerd's; while dockerd is down anybody can have that.
@test "a workload that takes the place of Docker's own name server leads an allowed name to no other network" {
    [ -x /usr/sbin/nft ] || skip "needs nft"
    world allowed.test=1.2.3.4
    nsenter -n -t "$OUTSIDE" ip addr add 6.6.6.6/32 dev lo
    connected
    allow '[allowed.test, {host: near.test, private: true}]'
    printf 'nameserver 127.0.0.11\nnameserver 10.77.0.1\n' >"$WORK/resolv.conf"
    cat >>"$WORK/add-interface" <<'SH'
nsenter -n -t "$pid" /usr/sbin/nft add table ip docker
nsenter -n -t "$pid" /usr/sbin/nft add chain ip docker output '{ type nat hook output priority -100; }'
nsenter -n -t "$pid" /usr/sbin/nft add rule ip docker output ip daddr 127.0.0.11 udp dport 53 dnat to 127.0.0.11:45353
SH
    cat >"$ROOT/feigned.py" <<'PY'
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.11", 45353))
print("ready", flush=True)
while True:
    question, client = s.recvfrom(4096)
    end = 12 + question[12:].index(b"\0") + 5
    address = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton("10.77.0.1" if b"near" in question else "6.6.6.6")
    a = question[end - 4:end - 2] == b"\0\1"
    s.sendto(question[:2] + struct.pack(">5H", 0x8180, 1, a, 0, 0) + question[12:end] + (address if a else b""), client)
PY
    command_is sleep 1000
    pf_create && pf start "$ID"
    pf exec "$ID" /usr/bin/python3 /feigned.py >"$WORK/feigned" 2>&1 3>&- &
    wait_for grep -q ready "$WORK/feigned"
    # it is heard: where the container's own network is meant, it is believed
    is "$(inside "$(fetch http://near.test/)")" $'reached\ncode 0'
    is "$(inside "$(fetch http://allowed.test/)")" $'reached\ncode 0'
    has_record net.connection.opened '.dst_endpoint.hostname == "near.test" and .dst_endpoint.ip == "10.77.0.1"'
    has_record net.connection.opened '.dst_endpoint.hostname == "allowed.test" and .dst_endpoint.ip == "1.2.3.4"'
    is "$(records '.dst_endpoint.ip == "6.6.6.6"')" ''
}

# The container's own resolver comes to the broker by the other one, at which nobody answers: a socket that is bound to an interface
# is not redirected to loopback.
@test "a link-local name server is asked at the interface that resolv.conf names with it" {
    [ -e /proc/net/if_inet6 ] || skip "needs IPv6"
    world allowed.test=1.2.3.4
    connected
    printf 'nameserver fe80::7%%eth0\nnameserver 10.77.0.9\n' >"$WORK/resolv.conf"
    allow '[allowed.test]'
    command_is sleep 1000
    pf_create
    link=v$(jq -r .init.pid "$STATE/$ID/state.json")
    nsenter -n -t "$OUTSIDE" ip addr add fe80::7/64 dev "$link" nodad
    nsenter -n -t "$OUTSIDE" timeout 250 "$BATS_TEST_DIRNAME/world" "fe80::7%$link" 7001 allowed.test=1.2.3.4 \
        </dev/null >"$WORK/seen6" 2>&1 3>&- &
    WORLD="$WORLD $!"
    wait_for grep -q ready "$WORK/seen6"
    # the kernel asks whether anybody else has the container's own address, for a second or two
    settled() { [ -z "$(nsenter -n -t "${link#v}" ip -6 -o addr show tentative)" ]; }
    wait_for settled
    pf start "$ID"
    is "$(inside "$(fetch http://allowed.test/)")" $'reached\ncode 0'
    contains "$(cat "$WORK/seen6")" "name allowed.test 1"
    lacks "$(cat "$WORK/seen")" "name allowed.test"
}
