#!/usr/bin/env bats
# Allowed hosts: a sandbox in a world with servers of its own (broker-world) reaches the hosts that its policy names, and
# nothing else. The broker dials from the world's network namespace, where pinfold is called (uplink: host).
load helpers

setup_file() {
    [ "$(id -u)" = 0 ] || skip "needs root"
    [ -n "${PINFOLD_TEST_PRIVATE-}" ] || skip "needs namespaces of its own: run it through tests/run"
    export WORLD=$BATS_FILE_TMPDIR/world
    mkdir "$WORLD"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$WORLD/key.pem" -out "$WORLD/cert.pem" \
        -days 30 -subj /CN=allowed.test -addext 'subjectAltName=DNS:allowed.test,DNS:*.wild.test' 2>"$WORLD/openssl"
    printf '%s\n' "allowed.test 203.0.113.5" "a.wild.test 203.0.113.5" "raw.test 203.0.113.5" "evil.test 203.0.113.5" \
        "private.test 10.9.9.9" "opened.test 10.9.9.9" "meta.test 169.254.169.254" "mapped.test 0.0.0.0" \
        "down.test 203.0.113.5" >"$WORLD/names"
    echo "nameserver 203.0.113.53" >"$WORLD/resolv.conf"
    touch "$WORLD/asked" "$WORLD/accepted"
    unshare -n -- "$BATS_TEST_DIRNAME/broker-world" "$WORLD" </dev/null >"$WORLD/output" 2>&1 3>&- &
    wait_for test -s "$WORLD/ready" || { cat "$WORLD/output" >&2; return 1; }
    mount --bind "$WORLD/resolv.conf" /etc/resolv.conf # in the mount namespace of tests/run
}
teardown_file() {
    [ ! -s "${WORLD-}/ready" ] || kill "$(cat "$WORLD/ready")"
    umount /etc/resolv.conf 2>/dev/null || :
}
setup() {
    setup_container
    POLICY=$WORK/policy.yaml
    PROJECT=$WORK/project
    mkdir "$PROJECT"
    cp "$WORLD/cert.pem" "$PROJECT"
    hosts_are allowed.test '*.wild.test' raw.test:7000,7001,7002 private.test '{host: opened.test, private: true}' meta.test \
        mapped.test down.test:81 203.0.113.5:7000
}
teardown() { teardown_container; }

hosts_are() { # ITEM...
    {
        echo 'network:'
        echo '  uplink: host'
        echo '  allowed_hosts:'
        local item
        for item; do case $item in '{'*) echo "    - $item" ;; *) echo "    - \"$item\"" ;; esac done
    } >"$POLICY"
}
world() { # WORD...
    nsenter --net="/proc/$(cat "$WORLD/ready")/ns/net" -- "$@"
}
# A shell script in a sandbox that is called from the world.
box() { # SCRIPT
    (cd "$PROJECT" && world timeout -k 5 60 "$PINFOLD" --root "$STATE" --policy "$POLICY" sandbox --id "$ID" -- sh -c "$1" \
        </dev/null 3>&-)
}
# The same, a program in Python.
box_python() { # PROGRAM
    printf '%s\n' 'import hashlib, os, socket, ssl, struct, sys, time' "$1" >"$PROJECT/program.py"
    box '/usr/bin/python3 program.py'
}
accepted() { # PORT: how often
    grep -cx "$1" "$WORLD/accepted" || :
}
# The process called NAME that runs for this test's container: there is only one at a time.
own_process() { # NAME
    local process name
    for process in $(own_processes); do
        { read -r name <"/proc/$process/comm"; } 2>/dev/null || continue
        [ "$name" != "$1" ] || { echo "$process"; return 0; }
    done
    return 1
}

@test "an allowed host by TLS and by HTTP, with records of the line that allowed it and of the bytes" {
    run box 'curl -sS --cacert cert.pem https://allowed.test/ https://a.wild.test/ && curl -sS http://allowed.test/'
    ended 0
    is "$output" "$(printf 'hello %s\n' allowed.test a.wild.test allowed.test)"
    has_record net.connection.closed '.dst_endpoint.hostname == "allowed.test" and .dst_endpoint.port == 80'
    is "$(records '.status_detail == "net.connection.opened" and .dst_endpoint.port == 80' |
        jq -r '"\(.class_uid) \(.activity_id) \(.action_id) \(.dst_endpoint.ip) \(.firewall_rule.name) \(.actor.process.name)"')" \
        "4001 1 1 203.0.113.5 network.allowed_hosts: allowed.test curl"
    is "$(records '.status_detail == "net.connection.opened" and .dst_endpoint.hostname == "a.wild.test"' |
        jq -r .firewall_rule.name)" "network.allowed_hosts: *.wild.test"
    contains "$(records '.status_detail == "net.connection.opened"' | jq -r .firewall_rule.desc)" "$POLICY:"
    closed=$(records '.status_detail == "net.connection.closed" and .dst_endpoint.port == 80')
    is "$(jq -r '.traffic.bytes == .traffic.bytes_in + .traffic.bytes_out' <<<"$closed")" true
    more_than "$(jq -r .traffic.bytes_out <<<"$closed")" 40
    more_than "$(jq -r .traffic.bytes_in <<<"$closed")" 60
}

@test "a name that is not allowed does not exist, and nobody is asked" {
    : >"$WORLD/asked"
    run box 'getent hosts evil.test; echo code $?; getent hosts allowed.test; getent hosts secret.allowed.test; echo code $?'
    ended 0 "code 2"
    contains "$output" "allowed.test"
    contains "$output" "fd00:9800::1"
    has_record dns.name.not_allowed '.query.hostname == "evil.test" and .rcode_id == 3 and .actor.process.name == "getent"'
    has_record dns.name.not_allowed '.query.hostname == "secret.allowed.test"'
    is "$(cat "$WORLD/asked")" ""
}

@test "a question is told of the process that asked, whatever else has the same port or many sockets" {
    run box_python '
import subprocess
others = []
for port in range(5000, 5020):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.2", port)); others.append(s)
many = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for i in range(900)]
for s in many: s.bind(("127.0.0.1", 0))
subprocess.run(["perl", "-MSocket", "-e", """
for $port (5000 .. 5019) {
    socket(S, AF_INET, SOCK_DGRAM, 0); bind(S, sockaddr_in($port, inet_aton("127.0.0.1"))) or die;
    $question = pack("nnnnnn", $port, 256, 1, 0, 0, 0) . pack("(C/a*)*", "n$port", "asked", "test", "") . pack("nn", 1, 1);
    send(S, $question, 0, sockaddr_in(53, inet_aton("127.0.0.1"))); recv(S, $answer, 512, 0); close(S);
}"""], check=True)
print("asked")'
    ended 0 asked
    is "$(jq -r 'select(.status_detail == "dns.name.not_allowed") | .actor.process.name' "$LOGS/$ID.jsonl" | sort | uniq -c | tr -s ' ')" " 20 perl"
}

@test "questions: NODATA, PTR, Extended DNS Error 15, FORMERR, over UDP and TCP" {
    run box_python '
def name(n): return b"".join(bytes([len(l)]) + l.encode() for l in n.split(".")) + b"\0"
def query(n, kind, extra=b"", additional=0): return struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, additional) + name(n) + struct.pack("!HH", kind, 1) + extra
OPT = b"\0" + struct.pack("!HHIH", 41, 1232, 0, 0)
def udp(message):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(10); s.connect(("9.9.9.9", 53)); s.send(message); return s.recv(4096)
def tcp(message):
    s = socket.create_connection(("8.8.8.8", 53), 10)
    for b in struct.pack("!H", len(message)) + message: s.send(bytes([b]))
    n = struct.unpack("!H", s.recv(2, socket.MSG_WAITALL))[0]; return s.recv(n, socket.MSG_WAITALL)
for ask in udp, tcp:
    for n, kind in ("allowed.test", 1), ("ALLOWED.test", 28), ("allowed.test", 65), ("allowed.test", 16), ("evil.test", 1), ("1.0.18.198.in-addr.arpa", 12):
        a = ask(query(n, kind, OPT, 1)); print(ask.__name__, n, kind, "rcode", a[3] & 15, "answers", a[7], "ede15", b"\0\x0f\0" in a and a[-60:].find(b"pinfold") >= 0, b"allowed\4test" in a[40:])
    print(ask.__name__, "faulty", ask(query("allowed.test", 1) + b"x")[3] & 15)
'
    ended 0
    for way in udp tcp; do
        contains "$output" "$way allowed.test 1 rcode 0 answers 1 ede15 False"
        contains "$output" "$way ALLOWED.test 28 rcode 0 answers 1"
        contains "$output" "$way allowed.test 65 rcode 0 answers 0"
        contains "$output" "$way allowed.test 16 rcode 0 answers 0"
        contains "$output" "$way evil.test 1 rcode 3 answers 0 ede15 True"
        contains "$output" "$way 1.0.18.198.in-addr.arpa 12 rcode 0 answers 1 ede15 False True"
        contains "$output" "$way faulty 1"
    done
}

@test "TLS for another name, or for none: an alert, a record, and no connection to the host" {
    before=$(accepted 443)
    run box 'curl -sSk --connect-to evil.test:443:allowed.test:443 https://evil.test/; echo code $?
        curl -sSk --connect-to 203.0.113.9:443:allowed.test:443 https://203.0.113.9/; echo code $?'
    ended 0 "unrecognized name"
    is "$(grep -c 'code 35' <<<"$output")" 2
    has_record net.sni.mismatch '.class_uid == 4002 and .http_request.url.hostname == "evil.test" and .dst_endpoint.hostname == "allowed.test"
        and .actor.process.name == "curl" and .action_id == 2'
    is "$(denials net.sni.mismatch)" 2
    is "$(accepted 443)" "$before"
}

@test "an HTTP request for another host: 403 and a record, also as the second one of a connection" {
    run box 'curl -sS -H "Host: evil.test" http://allowed.test/; echo; curl -sS http://allowed.test/ -: -H "Host: evil.test" http://allowed.test/'
    ended 0
    is "$(grep -c 'this connection was made to allowed.test, and the request is for evil.test' <<<"$output")" 2
    is "$(grep -c '^hello allowed.test' <<<"$output")" 1
    lacks "$output" "hello evil.test"
    is "$(denials net.http.host_mismatch)" 2
    has_record net.http.host_mismatch '.class_uid == 4002 and .activity_id == 3 and .http_request.url.hostname == "evil.test"
        and .http_request.http_method == "GET"'
}

@test "another port of an allowed host is refused" {
    run box 'curl -sS http://allowed.test:8080/'
    ended 7
    has_record net.port.not_allowed '.dst_endpoint.port == 8080 and .actor.process.name == "curl"'
}

@test "raw TCP by name and by address, where the host speaks first; one side may end before the other" {
    run box_python '
for place in ("raw.test", 7000), ("203.0.113.5", 7000):
    s = socket.create_connection(place, 20)
    print(s.recv(100)); s.sendall(b"to and fro"); s.shutdown(socket.SHUT_WR)
    rest = b""
    while (d := s.recv(100)): rest += d
    print(rest)'
    ended 0
    is "$output" "$(printf "b'hello\\\\n'\nb'to and frobye\\\\n'\nb'hello\\\\n'\nb'to and frobye\\\\n'")"
    has_record net.connection.opened '.firewall_rule.name == "network.allowed_hosts: 203.0.113.5:7000"'
}

@test "TLS for another name at a port of raw TCP" {
    run box 'curl -sSk --connect-to evil.test:443:raw.test:7000 https://evil.test/'
    ended 35
    has_record net.sni.mismatch '.dst_endpoint.port == 7000'
}

@test "64 MiB each way, whole" {
    run box_python '
s = socket.create_connection(("raw.test", 7001), 60); h = hashlib.sha256()
for i in range(1024):
    block = bytes([i & 255]) * 65536; h.update(block); s.sendall(block)
s.shutdown(socket.SHUT_WR)
print(s.makefile().readline().split() == ["67108864", h.hexdigest()])
s = socket.create_connection(("raw.test", 7002), 60); n = 0
while (d := s.recv(65536)): n += len(d)
print(n)'
    ended 0
    is "$output" "$(printf 'True\n67108864')"
    has_record net.connection.closed '.traffic.bytes_out == 67108864'
    has_record net.connection.closed '.traffic.bytes_in == 67108864'
}

@test "a reader that stops makes the host wait, and costs no memory" {
    [ -z "${PINFOLD_SANITIZED-}" ] || skip "AddressSanitizer's own memory counts too"
    box_python '
held = []
for i in range(20):
    s = socket.create_connection(("raw.test", 7002), 60); held.append(s)
open("stalled", "w").close()
while not os.path.exists("go"): time.sleep(0.05)
n = 0
while (d := held[0].recv(65536)): n += len(d)
print(n)' >"$WORK/output" 2>&1 &
    background=$!
    wait_for test -e "$PROJECT/stalled"
    sleep 1 # for what would be read meanwhile: 1,280 MiB are offered
    broker=$(own_process pinfold-broker)
    memory=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$broker/status")
    touch "$PROJECT/go"
    wait "$background"
    is "$(cat "$WORK/output")" 67108864
    [ "$memory" -lt 8192 ] || { echo "the broker holds $memory KiB" >&2; return 1; }
}

@test "requests that never end do not fill the machine: beyond 64 MiB the next one is refused, and then all is well" {
    [ -z "${PINFOLD_SANITIZED-}" ] || skip "64 MiB byte by byte take longer under AddressSanitizer than the test waits"
    box_python '
head = b"GET / HTTP/1.1\r\nHost: allowed.test\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"x" * 1000) for i in range(60))
child, held = os.fork(), []  # two processes: each may have no more than 1,024 descriptors
for i in range(700):
    s = socket.create_connection(("allowed.test", 80), 60); held.append(s)
    try: s.sendall(head)
    except OSError: pass
open("stalled" if child else "stalled too", "w").close()
while not os.path.exists("go"): time.sleep(0.05)
for s in held: s.close()
if not child: os._exit(0)
os.waitpid(child, 0)
for attempt in range(100):
    s = socket.create_connection(("allowed.test", 80), 60)
    try:
        s.sendall(b"GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n")
        word = s.recv(12)
    except OSError: word = b""
    if word: break
    time.sleep(0.05)
print(word)' >"$WORK/output" 2>&1 &
    background=$!
    wait_for test -e "$PROJECT/stalled"
    wait_for test -e "$PROJECT/stalled too"
    broker=$(own_process pinfold-broker)
    memory=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$broker/status")
    touch "$PROJECT/go"
    wait "$background"
    is "$(cat "$WORK/output")" "b'HTTP/1.1 200'"
    [ "$memory" -lt $((96 * 1024)) ] || { echo "the broker holds $memory KiB" >&2; return 1; }
    has_record limit.connections
}

@test "a host that does not answer: a reset, and a record that it was allowed" {
    run box_python '
s = socket.create_connection(("down.test", 81), 20)
try: print(s.recv(1))
except ConnectionResetError: print("reset")'
    ended 0 reset
    has_record net.connection.failed '.dst_endpoint.hostname == "down.test" and .activity_id == 4 and .actor.process.name == "python3"'
    is "$(denials net.host.not_allowed)" 0
}

@test "an allowed name that leads to a private or metadata address is refused, unless its line says private" {
    run box 'curl -sS http://private.test/; echo private $?; curl -sS http://meta.test/; echo meta $?
        curl -sS http://mapped.test/; echo mapped $?; curl -sS http://opened.test/'
    ended 0 "private 56"
    contains "$output" "meta 56"
    contains "$output" "mapped 56"
    contains "$output" "hello opened.test"
    has_record net.address.private '.dst_endpoint.hostname == "private.test" and .dst_endpoint.ip == "10.9.9.9" and .actor.process.name == "curl"'
    has_record net.address.metadata '.dst_endpoint.hostname == "meta.test"'
    has_record net.address.private '.dst_endpoint.hostname == "mapped.test"'
}

@test "the broker is killed in the middle: another one serves, with the same addresses" {
    box_python '
before = socket.getaddrinfo("a.wild.test", 80, socket.AF_INET)[0][4]
s = socket.create_connection(("raw.test", 7000), 20); s.recv(100)
open("connected", "w").close()
try:
    while s.recv(100): pass
    print("ended")
except OSError: print("ended")
for attempt in range(400):
    try:
        t = socket.create_connection(("raw.test", 7000), 20)
        if t.recv(100): break
    except OSError: pass
    time.sleep(0.05)
print("again", socket.getaddrinfo("a.wild.test", 80, socket.AF_INET)[0][4] == before)' >"$WORK/output" 2>&1 &
    background=$!
    wait_for test -e "$PROJECT/connected"
    kill -9 "$(own_process pinfold-broker)"
    wait "$background"
    is "$(cat "$WORK/output")" "$(printf 'ended\nagain True')"
    has_record broker.lost '.message | contains("another one serves")'
}

@test "the keeper is killed: nobody serves, and nothing opens" {
    box_python '
socket.create_connection(("raw.test", 7000), 20).recv(100)
open("connected", "w").close()
while not os.path.exists("go"): time.sleep(0.05)
def refused():
    try: return not socket.create_connection(("198.18.0.2", 7000), 20).recv(100)
    except OSError: return True
for attempt in range(400):
    if refused(): break
    time.sleep(0.05)
print(refused())
try: socket.create_connection(("203.0.113.5", 80), 20)
except OSError as e: print(e.strerror)' >"$WORK/output" 2>&1 &
    background=$!
    wait_for test -e "$PROJECT/connected"
    kill -9 "$(own_process pinfold-keeper)"
    touch "$PROJECT/go"
    wait "$background"
    is "$(cat "$WORK/output")" "$(printf 'True\nConnection refused')"
    has_record broker.lost
}

# KILLS=200 for the whole of it.
@test "the broker, its keeper or the warden is killed at any moment under load: nothing denied gets out, and no connect waits" {
    hosts_are raw.test:7000
    : >"$WORLD/accepted"
    for round in $(seq "${KILLS:-12}"); do
        ID=$PREFIX-$round
        rm -f "$PROJECT"/{begun,longest,end}
        box_python '
import threading
longest, end = [0.0], time.time() + 30
def hammer(place):
    while not os.path.exists("end") and time.time() < end:
        begun = time.time()
        try:
            s = socket.create_connection(place, 20)
            took = time.time() - begun
            s.settimeout(5); s.sendall(b"x"); s.recv(100); s.close()
        except OSError as error:
            took = time.time() - begun if not isinstance(error, TimeoutError) or time.time() - begun > 19 else 0
        if took > longest[0]:
            longest[0] = took
            open("longest.new", "w").write(str(took)); os.rename("longest.new", "longest")
        open("begun", "w").close()
for place in (("raw.test", 7000), ("203.0.113.5", 7001), ("203.0.113.5", 7002)):
    threading.Thread(target=hammer, args=(place,), daemon=True).start()
while not os.path.exists("end") and time.time() < end: time.sleep(0.02)' >/dev/null 2>&1 &
        background=$!
        wait_for test -e "$PROJECT/begun"
        sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
        case $((round % 3)) in 0) who=pinfold-broker ;; 1) who=pinfold-keeper ;; *) who=pinfold-warden ;; esac
        victim=$(own_process $who)
        kill -9 "$victim"
        sleep 0.3
        touch "$PROJECT/end"
        wait "$background" || :
        # a connect that begins as the broker ends is refused, or sent again after a second
        [ -z "${KILLS_LONGEST-}" ] || { cat "$PROJECT/longest"; echo; } >>"$KILLS_LONGEST"
        awk '{ exit !($1 < 4) }' "$PROJECT/longest" || { echo "round $round, $who: a connect took $(cat "$PROJECT/longest") s" >&2; return 1; }
        pf delete --force "$ID" 2>/dev/null || :
    done
    is "$(grep -cvx 7000 "$WORLD/accepted" || :)" 0
    more_than "$(accepted 7000)" 0
}

@test "the broker is nobody, without a capability, a file or a directory, and under a filter" {
    box 'touch running; while [ ! -e go ]; do sleep 0.05; done' &
    background=$!
    wait_for test -e "$PROJECT/running"
    status=$(cat "/proc/$(own_process pinfold-broker)/status")
    open=$(find "/proc/$(own_process pinfold-broker)/fd" -type l -printf '%l\n' | sed 's/[0-9[].*//' | sort -u)
    touch "$PROJECT/go"
    wait "$background"
    for line in 'Uid:.65534.65534' 'Gid:.65534.65534' 'CapEff:.0000000000000000' 'CapPrm:.0000000000000000' 'NoNewPrivs:.1' \
        'Seccomp:.2'; do
        matches "$status" "$line"
    done
    # of a file system it has nothing open either
    is "$(grep -vxE 'socket:|anon_inode:|/dev/null' <<<"$open")" ''
}

@test "the records are valid and tell every attempt" {
    check=${CHECK_OCSF:-$BATS_TEST_DIRNAME/../../../shared/bin/check-ocsf}
    [ -x "$check" ] || skip "CHECK_OCSF does not name a validator"
    run box 'curl -sS http://allowed.test/; curl -sSk --connect-to evil.test:443:allowed.test:443 https://evil.test/
        curl -sS -H "Host: evil.test" http://allowed.test/; curl -sS http://evil.test/; curl -sS http://private.test/; true'
    ended 0
    run "$check" "$LOG"
    ended 0 ", 0 faults"
}
