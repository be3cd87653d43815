#!/usr/bin/env bats
# Ways past a list of allowed hosts by what is said on a connection to an allowed one: TLS, HTTP, other protocols.
load egress_attacks

setup_file() {
    far_possible python3 || return 0
    # shellcheck disable=SC2086 # one word an address
    far_begin $FAR_PUBLIC 5.6.7.8
    far_resolver 127.0.0.1
    far_names --address=/{allowed,evil}.test/1.2.3.4 --address=/lenient.test/5.6.7.8
    far_sites "$FAR_PUBLIC"
    # P-384 alone: a client that has sent a share for another curve is asked again.
    nsenter -n -t "$FAR" openssl s_server -accept 8443 -tls1_3 -groups P-384 -cert allowed.crt -key allowed.key -www \
        -servername evil.test -cert2 evil.crt -key2 evil.key </dev/null >s_server.out 2>&1 3>&- &
    echo $! >s_server.pid
    wait_for grep -q ACCEPT s_server.out
    far_server lenient <<'PY'
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
}
teardown_file() { far_end; }
setup() {
    setup_container
    far_required
    POLICY=''
    hosts_are '{host: allowed.test, ports: [80, 443, 8443]}' lenient.test
}
teardown() { teardown_container; }

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
sni_control          -         alert-112  any:net.sni.mismatch:allowed.test
sni_last_dot         worked    alert-112  any:net.sni.mismatch:allowed.test
sni_address          worked    alert-112  any:net.sni.mismatch:allowed.test
sni_outer_other      worked    alert-112  any:net.sni.mismatch:evil.test  # with an encrypted ClientHello, whose outer name is seen
hello_of_ssl_2       worked    closed/ECONNRESET/alert-50  any:net.protocol.not_allowed:allowed.test
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
smuggled_two_codings         worked  403  any:net.protocol.not_allowed:lenient.test
smuggled_other_coding        worked  403  any:net.protocol.not_allowed:lenient.test
smuggled_coding_of_10        worked  403  any:net.protocol.not_allowed:lenient.test
smuggled_length_sign         worked  403  any:net.protocol.not_allowed:lenient.test
smuggled_chunk_length        worked  403/ECONNRESET/closed  any:net.protocol.not_allowed:lenient.test
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
