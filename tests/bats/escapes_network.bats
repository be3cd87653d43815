#!/usr/bin/env bats
# Escapes by the network, from a namespace that has an interface and a far end that answers whatever arrives.
load helpers
load escapes

setup() {
    setup_container
    command -v gcc >/dev/null || skip "no C compiler"
}
teardown() {
    [ -z "${FAR-}" ] || kill "$FAR" 2>/dev/null || :
    [ -z "${SERVER-}" ] || kill "$SERVER" 2>/dev/null || :
    teardown_container
}

# A namespace with the far end in it ($FAR is a process there), and a hook that joins a container to it.
far_end() {
    cat >"$WORK/add-interface" <<'SH'
#!/bin/bash
pid=$(jq -r .pid)
set -e
ip link add "v$pid" type veth peer name eth0 netns "$pid"
ip link set "v$pid" netns "$1"
nsenter -n -t "$1" sh -c "ip link set v$pid up; ip -6 addr add 2001:db8::1/64 dev v$pid nodad
    for a in 10.77.0.1/24 1.2.3.4/32 169.254.169.254/32; do ip addr add \$a dev v$pid; done"
nsenter -n -t "$pid" sh -c "ip link set eth0 up; ip addr add 10.77.0.2/24 dev eth0; ip route replace default via 10.77.0.1
    ip -6 addr add 2001:db8::2/64 dev eth0 nodad; sysctl -qw net.ipv4.ping_group_range='0 0' || echo 0 0 >/proc/sys/net/ipv4/ping_group_range"
SH
    chmod 755 "$WORK/add-interface"
    cat >"$WORK/echo.py" <<'PY'
import select, socket, struct
def bound(family, kind, port, address="", protocol=0):
    s = socket.socket(family, kind, protocol)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND: the interface comes later
    s.bind((address, port))
    return s
datagrams, listeners = [], []
for family in socket.AF_INET, socket.AF_INET6:
    for port in 53, 54, 80, 443:
        listeners.append(bound(family, socket.SOCK_STREAM, port))
        listeners[-1].listen()
# An answer comes from the address that was asked.
for address in "1.2.3.4", "169.254.169.254", "2001:db8::1":
    for port in 53, 54, 443:
        datagrams.append(bound(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM, port, address))
datagrams.append(bound(socket.AF_INET, socket.SOCK_DGRAM, 54))  # broadcasts
print("ready", flush=True)
streams = []
while True:
    for s in select.select(datagrams + listeners + streams, [], [])[0]:
        try:
            if s in listeners:
                streams.append(s.accept()[0])
            elif s in datagrams:
                data, sender = s.recvfrom(2048)
                s.sendto(data, sender)
            else:
                data = s.recv(2048)
                if data:
                    s.send(data)
                else:
                    streams.remove(s)
                    s.close()
        except OSError:
            if s in streams:
                streams.remove(s)
PY
    unshare -n sh -c 'ip link set lo up; exec python3 "$1"' - "$WORK/echo.py" </dev/null >"$WORK/far" 2>&1 3>&- &
    FAR=$!
    wait_for grep -q ready "$WORK/far"
}
prepare() {
    privileged
    configure --arg path "$WORK/add-interface" --arg far "$FAR" \
        '.hooks.createRuntime = [{path: $path, args: ["add-interface", $far], env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]'
}

@test "escapes: TCP" {
    far_end
    check_rows <<'ROWS'
tcp_address          worked  ECONNREFUSED  net.address.literal
tcp_dns              worked  ECONNREFUSED  net.address.literal
tcp_metadata         worked  ECONNREFUSED  net.address.metadata
tcp_private          worked  ECONNREFUSED  net.address.private
tcp_six              worked  ECONNREFUSED  net.address.literal
tcp_mapped           worked  ECONNREFUSED  net.address.literal
tcp_fast_open        worked  ECONNREFUSED  net.address.literal
tcp_without_waiting  worked  ECONNREFUSED  net.address.literal
tcp_by_device        worked  ECONNREFUSED  net.address.literal
tcp_from_port        worked  ECONNREFUSED  net.address.literal
tcp_several_paths    -       ECONNREFUSED/EPROTONOSUPPORT/ENOPROTOOPT  -  # not every kernel has MPTCP
ROWS
}

@test "escapes: UDP and the rest" {
    far_end
    check_rows <<'ROWS'
udp_dns        worked  EPERM  any:dns.name.not_allowed:1.2.3.4:53
udp_quic       worked  EPERM  any:net.protocol.not_allowed:1.2.3.4:443
udp_six        worked  EPERM  any:dns.name.not_allowed:[2001:db8::1]:53
udp_metadata   worked  EPERM  any:net.address.metadata:169.254.169.254:53
udp_many       worked  EPERM  any:net.protocol.not_allowed:1.2.3.4:54
udp_broadcast  worked  EPERM  any:net.protocol.not_allowed:10.77.0.255:54
ping           worked  EPERM  any:net.protocol.not_allowed:1.2.3.4
udp_lite       -       EPERM/EPROTONOSUPPORT  -  # not every kernel has it
ROWS
}

@test "escapes: an abstract socket of the host" {
    python3 -c '
import socket
s = socket.socket(socket.AF_UNIX)
s.bind("\0escape-marker-4711")
s.listen()
print("ready", flush=True)
while True:
    s.accept()[0].send(b"escape-marker-4711")' </dev/null >"$WORK/server" 2>&1 3>&- &
    SERVER=$!
    wait_for grep -q ready "$WORK/server"
    # The host's network, which the policy refuses, is where it can be reached from: so the sandbox has one of its own.
    prepare() {
        [ "$POLICY" = agent ] || configure '.linux.namespaces |= map(select(.type != "network"))'
    }
    check_rows <<'ROWS'
abstract_socket  worked  ECONNREFUSED  -  # there is no such name in this namespace
ROWS
}
