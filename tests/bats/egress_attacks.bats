#!/usr/bin/env bats
# Ways past a list of allowed hosts (tests/attack/egress.py), each tried twice: where no wall is, to show that the far end
# does what the attempt asks for, and in a sandbox. The far end is a network namespace with nginx, dnsmasq, an
# `openssl s_server` that asks for a second ClientHello, and a lenient HTTP server: what the broker of the sandbox dials
# from (uplink: host) and what the attempts without the sandbox run in.
load helpers
load escapes

setup_file() {
    [ "$(id -u)" = 0 ] && [ -n "${PINFOLD_TEST_PRIVATE-}" ] || return 0
    local program
    for program in nginx dnsmasq openssl python3; do
        PATH=$PATH:/usr/sbin command -v $program >/dev/null || return 0
    done
    export FAR_WORK=$BATS_FILE_TMPDIR
    far_end
}
teardown_file() {
    local process
    # only what this file has started: by its id
    [ -z "${FAR-}" ] || for process in $(cat "$FAR_WORK"/*.pid 2>/dev/null) "$FAR"; do kill "$process" 2>/dev/null || :; done
}
setup() {
    setup_container
    [ -n "${FAR-}" ] || skip "needs nginx, dnsmasq, openssl and python3"
    POLICY=''
}
teardown() { teardown_container; }

in_far() { nsenter -n -t "$FAR" "$@"; }

# 1.2.3.4 is the server of allowed.test and, as servers of many sites are, of evil.test too.
far_end() {
    local name
    unshare -n sleep 1000 </dev/null >/dev/null 2>&1 3>&- &
    export FAR=$!
    wait_for bash -c "[ \"\$(readlink /proc/$FAR/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]"
    in_far sh -ec 'ip link set lo up
      for a in 1.2.3.4 5.6.7.8 10.0.0.1 169.254.169.254; do ip addr add $a/32 dev lo; done
      for a in 2001:db8::1 fd12::1; do ip -6 addr add $a/128 dev lo nodad; done'
    cd "$FAR_WORK" || return
    for name in allowed evil; do
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$name.test" \
            -keyout $name.key -out $name.crt 2>/dev/null
    done
    echo "nameserver 127.0.0.1" >resolv.conf
    mount --bind resolv.conf "$(realpath /etc/resolv.conf)"
    start_dnsmasq
    start_nginx
    start_second_hello
    start_lenient
}
start_dnsmasq() {
    PATH=$PATH:/usr/sbin in_far dnsmasq --conf-file=/dev/null --no-hosts --no-resolv --user=root --bind-interfaces --pid-file="$FAR_WORK/dnsmasq.pid" \
        --log-queries --log-facility="$FAR_WORK/queries" --no-negcache \
        --address=/{allowed,evil}.test/1.2.3.4 --address=/{allowed,evil}.test/2001:db8::1 --address=/{,evil}wild.test/1.2.3.4 \
        --address=/lenient.test/5.6.7.8 --address=/private.test/10.0.0.1 --address=/loopback.test/127.0.0.1 \
        --address=/metadata.test/169.254.169.254 --address=/mapped.test/::ffff:10.0.0.1 --address=/nat64.test/64:ff9b::a9fe:a9fe \
        --address=/zero.test/0.0.0.0 --address=/uniquelocal.test/fd12::1 --address=/private.wild.test/10.0.0.1 \
        --txt-record=c2VjcmV0.evil.test,told --txt-record=c2VjcmV0.allowed.test,told \
        --dns-rr=allowed.test,65,000100000100030268320005000401020304 </dev/null >/dev/null 2>&1 3>&-
    wait_for test -s "$FAR_WORK/dnsmasq.pid"
}
site() { # NAME CERTIFICATE [default_server]: on every address but the lenient server's
    local address
    echo "server { server_name $1.test; ssl_certificate $FAR_WORK/$2.crt; ssl_certificate_key $FAR_WORK/$2.key;"
    for address in 1.2.3.4 10.0.0.1 169.254.169.254 127.0.0.1 '[2001:db8::1]' '[fd12::1]'; do
        echo "listen $address:80 ${3-}; listen $address:81 ${3-}; listen $address:443 ssl ${3-};"
    done
    echo "location / { return 200 'reached $1.test'; } }"
}
start_nginx() {
    cat >nginx.conf <<CONF
pid $FAR_WORK/nginx.pid; error_log $FAR_WORK/nginx.log; worker_processes 1; user root;
events { worker_connections 512; }
http {
    access_log off; default_type text/plain;
    client_body_temp_path $FAR_WORK/body; proxy_temp_path $FAR_WORK/proxy; fastcgi_temp_path $FAR_WORK/fastcgi;
    uwsgi_temp_path $FAR_WORK/uwsgi; scgi_temp_path $FAR_WORK/scgi;
    $(site other allowed default_server) $(site allowed allowed) $(site evil evil)
}
CONF
    PATH=$PATH:/usr/sbin in_far nginx -c "$FAR_WORK/nginx.conf" </dev/null >"$FAR_WORK/nginx.out" 2>&1 3>&-
    wait_for test -s "$FAR_WORK/nginx.pid"
}
# P-384 alone: a client that has sent a share for another curve is asked again.
start_second_hello() {
    nsenter -n -t "$FAR" openssl s_server -accept 8443 -tls1_3 -groups P-384 -cert allowed.crt -key allowed.key -www \
        -servername evil.test -cert2 evil.crt -key2 evil.key </dev/null >s_server.out 2>&1 3>&- &
    echo $! >s_server.pid
    wait_for grep -q ACCEPT s_server.out
}
start_lenient() {
    cat >lenient.py <<'PY'
# A server as lenient as there are: the last of several Hosts, blanks before a colon, bare LF, and of two lengths the one that
# it likes better.
import socket, threading
def lines_of(reader):
    while True:
        line = reader.readline()
        if not line.strip(b"\r\n"):
            return
        yield line.strip(b"\r\n")
def body_of(reader, fields):
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        while size := int(reader.readline().split(b";")[0], 16):
            reader.read(size)
            reader.readline()
        list(lines_of(reader))
    else:
        reader.read(int(fields.get(b"content-length-first", b"0")))
def serve(connection):
    with connection, connection.makefile("rb") as reader:
        while line := reader.readline():
            fields = {}
            for field in lines_of(reader):
                name, _, value = field.partition(b":")
                name = name.strip().lower()
                fields.setdefault(name + b"-first", value.strip())
                fields[name] = value.strip()
            body_of(reader, fields)
            words = b"reached " + fields.get(b"host", b"nobody") + b" by " + line.split()[0]
            if fields.get(b"upgrade") == b"h2c":
                words = b"switched"
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(words) + words)
listener = socket.create_server(("5.6.7.8", 80))
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
PY
    nsenter -n -t "$FAR" python3 lenient.py </dev/null >lenient.out 2>lenient.err 3>&- &
    echo $! >lenient.pid
    cat >datagrams.py <<'PY'
import select, socket
sockets = []
for family, address in (socket.AF_INET, "1.2.3.4"), (socket.AF_INET6, "2001:db8::1"):
    sockets.append(socket.socket(family, socket.SOCK_DGRAM))
    sockets[-1].bind((address, 443))
print("ready", flush=True)
while True:
    for s in select.select(sockets, [], [])[0]:
        s.sendto(b"reached", s.recvfrom(65536)[1])
PY
    nsenter -n -t "$FAR" python3 datagrams.py </dev/null >datagrams.out 2>&1 3>&- &
    echo $! >datagrams.pid
    wait_for grep -q ready lenient.out
    wait_for grep -q ready datagrams.out
}

# What check_rows calls, twice.
attempt_under() { # POLICY NAME...
    local policy=$1
    shift
    mkdir -p "$WORK/project"
    cp "$PINFOLD_TESTS/attack/egress.py" "$WORK/project/egress.py"
    if [ "$policy" = unconfined ]; then
        in_far timeout -k 5 100 /usr/bin/python3 "$WORK/project/egress.py" --outside "$@" 2>&1 3>&-
        return
    fi
    ID=$PREFIX-agent
    LOG=$LOGS/$ID.jsonl
    : >"$FAR_WORK/queries"
    box /usr/bin/python3 "$WORK/project/egress.py" "$@" 2>&1
}
box() { # WORD...
    cat >"$WORK/policy.yaml" <<'YAML'
version: 1
network:
  mode: allowlist
  uplink: host
  allowed_hosts:
    - {host: allowed.test, ports: [80, 443, 8443]}
    - lenient.test
    - "*.wild.test"
    - private.test
    - loopback.test
    - metadata.test
    - mapped.test
    - nat64.test
    - zero.test
    - uniquelocal.test
YAML
    in_far timeout -k 5 100 "$PINFOLD" --root "$STATE" sandbox --id "$ID" --policy "$WORK/policy.yaml" -w "$WORK/project" -- "$@" </dev/null 3>&-
}

@test "attacks: names" {
    check_rows <<'ROWS'
name_denied                 worked  nxdomain  any:dns.name.not_allowed:evil.test
name_denied_aaaa            worked  nxdomain  any:dns.name.not_allowed:evil.test
name_denied_case            worked  nxdomain  any:dns.name.not_allowed:evil.test
name_denied_tcp             worked  nxdomain  any:dns.name.not_allowed:evil.test
name_of_another_server      worked  nxdomain  any:dns.name.not_allowed:evil.test
name_of_another_server_tcp  worked  nxdomain  any:dns.name.not_allowed:evil.test
text_of_denied              worked  nxdomain  any:dns.name.not_allowed:c2vjcmv0.evil.test
text_below_allowed          worked  nxdomain  any:dns.name.not_allowed:c2vjcmv0.allowed.test
address_below_allowed       worked  nxdomain  any:dns.name.not_allowed:c2vjcmv0.allowed.test
wildcard_itself             worked  nxdomain  any:dns.name.not_allowed:wild.test
wildcard_as_a_tail          worked  nxdomain  any:dns.name.not_allowed:evilwild.test
keys_of_allowed             worked  nodata    -
nul_in_a_name               -       nxdomain  -  # dnsmasq answers or not, as it likes
dot_in_a_label              -       nxdomain  -
control_in_a_name           -       nxdomain  -
pointer_to_itself           -       formerr   -
pointer_loop                -       formerr   -
two_questions               -       formerr   -
ROWS
    # Nothing of it went on to a name server.
    run cat "$FAR_WORK/queries"
    lacks "$output" evil
    lacks "$output" c2VjcmV0
}

@test "attacks: addresses, and what names resolve to" {
    check_rows <<'ROWS'
literal                      worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
literal_v6                   worked  ECONNREFUSED  any:net.address.literal:2001:db8::1
private                      worked  ECONNREFUSED  any:net.address.private:10.0.0.1
metadata                     worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_number              worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_hexadecimal         worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_octal               worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_two_parts           worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_mapped              worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_mapped_hexadecimal  worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
another_port                 worked  ECONNREFUSED  any:net.port.not_allowed:allowed.test
another_port_below_wildcard  worked  ECONNREFUSED  any:net.port.not_allowed:a.wild.test
resolves_to_private          worked  ECONNRESET/closed  any:net.address.private:private.test
resolves_to_loopback         worked  ECONNRESET/closed  any:net.address.private:loopback.test
resolves_to_metadata         worked  ECONNRESET/closed  any:net.address.metadata:metadata.test
resolves_to_mapped           worked  ECONNRESET/closed  any:net.address.private:mapped.test
resolves_to_nat64            -       ECONNRESET/closed  any:net.address.metadata:nat64.test  # there is no NAT64 here
resolves_to_zero             worked  ECONNRESET/closed  any:net.address.private:zero.test
resolves_to_unique_local     worked  ECONNRESET/closed  any:net.address.private:uniquelocal.test
resolves_below_wildcard      worked  ECONNRESET/closed  any:net.address.private:private.wild.test
synthetic_of_nobody          -       ECONNREFUSED  any:net.address.literal:198.18.200.1  # an address of our own
ROWS
}

@test "attacks: sockets" {
    check_rows <<'ROWS'
from_the_port_of_the_broker  worked  ECONNREFUSED/EADDRINUSE/EACCES  -
reused_port                  worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
mark                         worked  EPERM  -
device                       worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
ip_options                   worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
quic_literal                 worked  EPERM  any:net.protocol.not_allowed:1.2.3.4
quic_allowed                 worked  EPERM  any:net.protocol.not_allowed:198.18.0.1
fragments                    worked  EPERM  any:net.protocol.not_allowed:1.2.3.4
fragments_v6                 worked  EPERM  any:net.protocol.not_allowed:2001:db8::1
extension_headers            worked  EPERM  -
packet_socket                worked  EAFNOSUPPORT/EPERM  -
raw_socket                   worked  EPERM  -
ROWS
}

@test "attacks: TLS" {
    check_rows <<'ROWS'
sni_other            worked    alert-112  any:net.sni.mismatch:evil.test
sni_absent           worked    alert-112  any:net.sni.mismatch:allowed.test
sni_below            worked    alert-112  any:net.sni.mismatch:x.allowed.test
sni_split            worked    alert-112  any:net.sni.mismatch:evil.test
sni_by_bytes         worked    alert-112  any:net.sni.mismatch:evil.test
sni_64_kib_by_bytes  worked    alert-112  any:net.sni.mismatch:evil.test
sni_two              -         alert-112  any:net.sni.mismatch:allowed.test  # servers differ
sni_twice            -         alert-112  any:net.sni.mismatch:allowed.test
sni_nul              -         alert-112  any:net.sni.mismatch:allowed.test
sni_last_dot         worked    alert-112  any:net.sni.mismatch:allowed.test
sni_address          worked    alert-112  any:net.sni.mismatch:allowed.test
no_tls_at_443        worked    closed/ECONNRESET/alert-50  any:net.protocol.not_allowed:allowed.test
second_hello_other   worked    closed  any:net.sni.mismatch:evil.test
ROWS
}

@test "attacks: HTTP, the host of a request" {
    check_rows <<'ROWS'
host_other            worked  403  any:net.http.host_mismatch:evil.test
host_other_10         worked  403  any:net.http.host_mismatch:evil.test
host_absent           worked  403  any:net.http.host_mismatch:allowed.test
host_kept_connection  worked  403/closed/ECONNRESET  any:net.http.host_mismatch:evil.test
host_pipelined        worked  403/200/closed/ECONNRESET  any:net.http.host_mismatch:evil.test
host_behind_a_body    worked  403/200/closed/ECONNRESET  any:net.http.host_mismatch:evil.test
host_behind_chunks    worked  403/200/closed/ECONNRESET  any:net.http.host_mismatch:evil.test
host_absolute         worked  403  any:net.http.host_mismatch:allowed.test
host_twice            worked  403  any:net.http.host_mismatch:lenient.test
host_userinfo         worked  403  any:net.http.host_mismatch:lenient.test
host_nul              worked  403  any:net.http.host_mismatch:lenient.test
ROWS
}

@test "attacks: HTTP, smuggled requests and other protocols" {
    check_rows <<'ROWS'
smuggled_cl_te               worked  403  any:net.protocol.not_allowed:lenient.test
smuggled_two_lengths         worked  403  any:net.protocol.not_allowed:lenient.test
smuggled_bare_lf             worked  403  any:net.protocol.not_allowed:lenient.test
smuggled_blank_before_colon  worked  403  any:net.protocol.not_allowed:lenient.test
smuggled_fold                worked  403  any:net.protocol.not_allowed:lenient.test
connect_method               worked  403  any:net.protocol.not_allowed:lenient.test
h2_preface                   worked  403  any:net.protocol.not_allowed:lenient.test
h2c_upgrade                  worked  ignored  -  # the request is answered, and the protocol is not changed
websocket                    worked  403  any:net.protocol.not_allowed:lenient.test
ROWS
}

@test "what is allowed works, cut as it may be" {
    check_rows <<'ROWS'
good_split            worked  worked  -
good_by_bytes         worked  worked  -
good_64_kib_by_bytes  worked  worked  -
good_second_hello     worked  worked  -
good_request          worked  worked  -
good_kept_connection  worked  worked  -
ROWS
}

# docs/egress.md says so: what is inside of TLS is between the program and an allowed host.
@test "not stopped: another name inside of TLS (fronting)" {
    check_rows <<'ROWS'
fronting  worked  worked  -
ROWS
}
