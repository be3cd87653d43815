#!/usr/bin/env bats
# Ways past a list of allowed hosts by sockets, their options, and packets: from a sandbox with loopback alone, and from containers
# with an interface, as engines give them, whose other end sees every packet.
load egress_attacks

setup_file() {
    far_possible python3 || return 0
    # shellcheck disable=SC2086 # one word an address
    far_begin $FAR_PUBLIC 5.6.7.8 10.77.0.53
    far_resolver 10.77.0.53
    far_names --listen-address=10.77.0.53 --address=/allowed.test/5.6.7.8
    far_sites "$FAR_PUBLIC 5.6.7.8"
    far_server datagrams <<'PY'
import select, socket, threading
def welcome(listener):
    while True:
        with listener.accept()[0] as connection:
            connection.sendall(b"reached")
threading.Thread(target=welcome, args=(socket.create_server(("::", 7000), family=socket.AF_INET6, dualstack_ipv6=True),), daemon=True).start()
sockets = []
for family, address in (socket.AF_INET, "1.2.3.4"), (socket.AF_INET6, "2001:db8::1"):
    sockets.append(socket.socket(family, socket.SOCK_DGRAM))
    sockets[-1].bind((address, 443))
print("ready", flush=True)
while True:
    for s in select.select(sockets, [], [])[0]:
        s.sendto(b"reached", s.recvfrom(65536)[1])
PY
    # Every packet that comes in by an interface but for what the kernel itself sends (ARP, ICMPv6): where from, where to.
    far_server packets <<'PY'
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(3))
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)  # SO_RCVBUFFORCE
print("ready", flush=True)
while True:
    data, place = s.recvfrom(65536)
    if place[0] == "lo" and place[1] == 0x0800 and data[9] == 17 and data[20 + 2:20 + 4] == b"\0\x09" and place[2] != socket.PACKET_OUTGOING:
        print("sign", data[28:].decode(), flush=True)
    if place[0] == "lo" or place[2] == socket.PACKET_OUTGOING:
        continue
    if place[1] == 0x0800:
        length = (data[0] & 15) * 4
        first = not struct.unpack(">H", data[6:8])[0] & 0x1fff
        protocol, source, target, rest = data[9], data[12:16], data[16:20], data[length:]
    elif place[1] == 0x86dd:
        protocol, source, target, rest, first = data[6], data[8:24], data[24:40], data[40:], True
        if protocol == 58 or protocol == 0 and rest[0] == 58:
            continue
    else:
        continue
    family = socket.AF_INET if len(source) == 4 else socket.AF_INET6
    ports = struct.unpack(">2H", rest[:4]) if first and protocol in (6, 17) and len(rest) >= 4 else ("-", "-")
    print("packet", protocol, socket.inet_ntop(family, source), ports[0], socket.inet_ntop(family, target), ports[1], flush=True)
PY
}
teardown_file() { far_end; }
setup() {
    setup_container
    far_required
    POLICY=''
    hosts_are allowed.test
}
teardown() { teardown_container; }

# -- loopback alone ---------------------------------------------------------------------------------------------------

@test "attacks: sockets, from a sandbox with loopback alone" {
    check_rows <<'ROWS'
from_the_port_of_the_broker  worked  ECONNREFUSED/EADDRINUSE/EACCES  -
reused_port                  worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
mark                         worked  EPERM  -
device                       worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
ip_options                   worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
quic_literal                 worked  EPERM  any:net.protocol.not_allowed:1.2.3.4
quic_allowed                 -       EPERM  any:net.protocol.not_allowed:198.18.0.1
fragments                    worked  EPERM  any:net.protocol.not_allowed:1.2.3.4
fragments_v6                 worked  EPERM  any:net.protocol.not_allowed:2001:db8::1
extension_headers            worked  EPERM  -
packet_socket                worked  EAFNOSUPPORT/EPERM  -
raw_socket                   worked  EPERM  -
ROWS
}

# -- containers with an interface ---------------------------------------------------------------------------------------

# The bundle gets what an engine gives: a veth pair whose other end is in the far end, addresses, routes, a resolv.conf. And the
# machine's /usr, for Python, and every capability, which the policy takes.
connected() {
    cat >"$WORK/join" <<'SH'
#!/bin/bash
set -e
pid=$(jq -r .pid)
ip link add "v$pid" address 02:00:00:00:00:01 type veth peer name eth0 netns "$pid"
ip link set "v$pid" netns "$1"
nsenter -n -t "$1" sh -ec "ip link set v$pid up; ip addr add 10.77.0.1/24 dev v$pid
    for a in 2001:db8:77::1 fe80::1; do ip -6 addr add \$a/64 dev v$pid nodad; done"
nsenter -n -t "$pid" sh -ec "ip link set eth0 up; ip addr add 10.77.0.2/24 dev eth0; ip -6 addr add 2001:db8:77::2/64 dev eth0 nodad
    ip -6 addr add fe80::2/64 dev eth0 nodad; ip route replace default via 10.77.0.1; ip -6 route replace default via 2001:db8:77::1"
SH
    chmod 755 "$WORK/join"
    echo "nameserver 10.77.0.53" >"$WORK/resolv.conf"
    cp "$PINFOLD_TESTS/attack/egress.py" "$ROOT/home/"
    privileged
    configure --arg path "$WORK/join" --arg far "$FAR" --arg resolver "$WORK/resolv.conf" \
        '.hooks.createRuntime = [{path: $path, args: ["join", $far], env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]
         | .mounts += [{destination: "/etc/resolv.conf", type: "bind", source: $resolver, options: ["bind", "ro"]}]
         | .mounts += [["/usr", "/usr"], ["/usr/lib", "/lib"], ["/usr/lib64", "/lib64"] | {destination: .[1], type: "bind", source: .[0], options: ["rbind", "ro"]}]'
    printf 'version: 1\nnetwork:\n  allowed_hosts:\n%s\n' "$HOSTS" >"$WORK/policy.yaml"
}
# In the place of the sandbox that has loopback alone.
attempt_in_container() { # POLICY NAME...
    local outside=''
    if [ "$1" = unconfined ]; then POLICY=unconfined outside=--outside; else POLICY=$WORK/policy.yaml; fi
    ID=$PREFIX-$1
    LOG=$LOGS/$ID.jsonl
    new_bundle "$WORK/$1"
    connected
    # shellcheck disable=SC2086 # a word or none
    command_is /usr/bin/python3 /home/egress.py $outside "${@:2}"
    far_packets >"$WORK/packets.before"
    LIMIT=100 pf_run 2>&1
}
# What has come to the far end that is neither for allowed.test nor a question of the broker's.
far_packets() { # [LINE]: after so many lines
    # loopback of the far end, which the listener sees too: what came before this has been read
    local word=$RANDOM$RANDOM
    in_far python3 -c 'import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"%d" % int(sys.argv[1]), ("127.0.0.1", 9))' "$word"
    wait_for grep -qx "sign $word" "$FAR_WORK/packets.out"
    grep '^packet' "$FAR_WORK/packets.out" | grep -vE ' (5.6.7.8 80|10.77.0.53 53)$' | tail -n "+$((${1-0} + 1))"
}

@test "attacks: sockets and packets, from a container with an interface" {
    attempt_under() { attempt_in_container "$@"; }
    check_rows <<'ROWS'
reused_port        worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
literal            worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
literal_v6         worked  ECONNREFUSED  any:net.address.literal:2001:db8::1
gateway            worked  ECONNREFUSED  any:net.address.private:10.77.0.1
link_local         worked  ECONNREFUSED  any:net.address.private:fe80::1
mark               worked  EPERM  -
device_eth0        worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
ip_options         worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
quic_literal       worked  EPERM  any:net.protocol.not_allowed:1.2.3.4
quic_allowed       -       EPERM  any:net.protocol.not_allowed:198.18.0.1  # nobody answers UDP there
fragments          worked  EPERM  any:net.protocol.not_allowed:1.2.3.4
fragments_v6       worked  EPERM  any:net.protocol.not_allowed:2001:db8::1
extension_headers  worked  EPERM  -
frame              worked  EAFNOSUPPORT/EPERM  -
raw                worked  EPERM  -
raw_fragments      worked  EPERM  -
raw_extension      worked  EPERM  -
ROWS
    # Without the policy they came; since then nothing did.
    contains "$(cat "$WORK/packets.before")" " 1.2.3.4 443"
    contains "$(cat "$WORK/packets.before")" " fe80::1 7000"
    run far_packets "$(wc -l <"$WORK/packets.before")"
    is "$output" ""
}

# A container that a test tries things in: it sleeps.
container() { # POLICY
    POLICY=$1
    connected
    command_is sleep 1000
    pf_create && pf start "$ID"
    PID=$(state_of .pid)
}
try() { # NAME...: in the container, by exec
    pf exec "$ID" /usr/bin/python3 /home/egress.py "$@" 2>&1
}
try_as_root() { # NAME...: in its network namespace, with every capability over it
    nsenter -n -t "$PID" env MARK="${MARK-1}" /usr/bin/python3 "$PINFOLD_TESTS/attack/egress.py" "$@" 2>&1
}

# What no workload has the capabilities for. The rules stand all the same, and what lets the broker's packets out is its mark alone.
@test "attacks: packets of who has every capability over the namespace" {
    local before attempts=(frame raw raw_fragments raw_extension mark)
    container unconfined
    is "$(try_as_root "${attempts[@]}")" "$(printf '%s worked\n' "${attempts[@]}")"
    pf delete --force "$ID"
    before=$(far_packets | wc -l)
    new_bundle "$WORK/behind"
    container "$WORK/policy.yaml"
    rules=$(nsenter -n -t "$PID" /usr/sbin/nft list ruleset)
    grep -q 'table netdev pinfold' <<<"$rules" || attempts=("${attempts[@]:1}") # Linux 5.16
    while read -r name result; do
        is_one_of "$result" EPERM/ENOBUFS/ECONNREFUSED || { echo "$name: $result"; return 1; }
    done < <(try_as_root "${attempts[@]}")
    is "$(far_packets "$before")" ""
    MARK=$(grep -oE 'meta mark 0x[0-9a-f]+' <<<"$rules" | grep -v 0x00000000 | head -n 1 | cut -d' ' -f3)
    is "$(try_as_root mark)" "mark worked"
}

@test "attacks: a listener on the broker's ports when the broker is dead" {
    local keeper broker before
    container "$WORK/policy.yaml"
    is "$(try ports_of_the_broker)" "ports_of_the_broker EADDRINUSE"
    keeper=$(jq -r .broker.pid "$STATE/$ID/state.json")
    broker=$(pgrep -P "$keeper")
    # Nobody listens, and nobody starts another one.
    kill -STOP "$keeper"
    kill -KILL "$broker"
    wait_for grep -q '^State:.Z' "/proc/$broker/status"
    is "$(try ports_of_the_broker)" "ports_of_the_broker EADDRINUSE"
    kill -CONT "$keeper"
    serves() { is "$(try good_request)" "good_request worked"; }
    wait_for serves
    # With the keeper dead as well somebody else may listen, and hears what is said in the container.
    kill -KILL "$keeper"
    wait_for bash -c "[ ! -d /proc/$keeper ]"
    wait_for bash -c '! pgrep -x pinfold-broker'
    far_packets >/dev/null # all that came has been read
    before=$(grep -c '^packet' "$FAR_WORK/packets.out")
    is "$(try in_place_of_the_broker literal)" $'in_place_of_the_broker to-myself\nliteral ECONNREFUSED'
    far_packets >/dev/null
    is "$(grep -c '^packet' "$FAR_WORK/packets.out")" "$before"
}

# Of a pod's containers one could keep the others from every host.
@test "attacks: the source ports of the broker's questions" {
    container "$WORK/policy.yaml"
    nsenter -n -t "$PID" sh -c 'echo 40000 40050 >/proc/sys/net/ipv4/ip_local_port_range'
    is "$(try source_ports_of_the_broker)" "source_ports_of_the_broker worked"
    # without the zone that the broker's packets are tracked in
    nsenter -n -t "$PID" /usr/sbin/nft flush chain inet pinfold untracked
    run try source_ports_of_the_broker
    is_one_of "${output#* }" ECONNRESET/closed
}

# -- two sandboxes on one bridge, which allow each other's address ----------------------------------------------------

# A container that answers at port 7000, with an interface on the bridge of the far end.
on_bridge() { # NAME ADDRESS INBOUND
    ID=$PREFIX-$1-$3
    new_bundle "$WORK/$1-$3"
    cat >"$WORK/$3.yaml" <<YAML
version: 1
network:
  mode: allowlist
  inbound: $3
  allowed_hosts: [{host: 10.88.0.0/24, ports: [7000], private: true}]
YAML
    cat >"$WORK/join-bridge" <<'SH'
#!/bin/bash
set -e
pid=$(jq -r .pid)
ip link add "v$pid" type veth peer name eth0 netns "$pid"
ip link set "v$pid" netns "$1"
nsenter -n -t "$1" ip link set "v$pid" master br0 up
nsenter -n -t "$pid" sh -c "ip addr add $2/24 dev eth0; ip link set eth0 up"
SH
    chmod 755 "$WORK/join-bridge"
    configure --arg path "$WORK/join-bridge" --arg far "$FAR" --arg address "$2" \
        '.hooks.createRuntime = [{path: $path, args: ["join-bridge", $far, $address], env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]'
    command_is nc -ll -p 7000 -e /bin/echo reached
    POLICY=$WORK/$3.yaml
    pf_create
    pf start "$ID"
    wait_for grep -q ':1B58 ' "/proc/$(state_of .pid)/net/tcp" "/proc/$(state_of .pid)/net/tcp6"
}
# What the one hears from the other.
heard() { # NAME INBOUND ADDRESS
    pf exec "$PREFIX-$1-$2" nc -w 5 "$3" 7000 </dev/null 2>&1 || :
}

@test "attacks: two sandboxes on one bridge, both directions, with inbound: deny" {
    in_far ip link add br0 type bridge
    in_far ip link set br0 up
    local inbound
    for inbound in allow deny; do
        on_bridge one 10.88.0.2 $inbound
        on_bridge two 10.88.0.3 $inbound
        run heard one $inbound 10.88.0.3
        if [ $inbound = allow ]; then contains "$output" reached; else lacks "$output" reached; fi
        run heard two $inbound 10.88.0.2
        if [ $inbound = allow ]; then contains "$output" reached; else lacks "$output" reached; fi
        # on its own loopback each goes on
        run heard one $inbound 127.0.0.1
        contains "$output" reached
        pf delete --force "$PREFIX-one-$inbound"
        pf delete --force "$PREFIX-two-$inbound"
    done
    in_far ip link del br0
}
