#!/usr/bin/env bats
# pinfold update --policy: another list of allowed hosts for a container that runs. What it adds works at once, what it takes out
# ends at once, names keep their addresses, and the wall is there all the time. The world is broker-world's, as in broker.bats.
load helpers

setup_file() {
    [ "$(id -u)" = 0 ] || skip "needs root"
    [ -n "${PINFOLD_TEST_PRIVATE-}" ] || skip "needs namespaces of its own: run it through tests/run"
    export WORLD=$BATS_FILE_TMPDIR/world
    mkdir "$WORLD"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$WORLD/key.pem" -out "$WORLD/cert.pem" \
        -days 30 -subj /CN=allowed.test 2>"$WORLD/openssl"
    printf '%s 203.0.113.5\n' one.test two.test three.test kept.test x.wild.test y.wild.test z.wild.test >"$WORLD/names"
    echo "private.test 10.9.9.9" >>"$WORLD/names"
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
    configure '.mounts += [["/usr", "/usr"], ["/usr/lib", "/lib"], ["/usr/lib64", "/lib64"]
      | {destination: .[1], type: "bind", source: .[0], options: ["rbind", "ro"]}]'
}
teardown() { teardown_container; }

hosts_are() { # ITEM...
    {
        printf 'network:\n  uplink: host\n  allowed_hosts:\n'
        local item
        for item; do case $item in '{'*) echo "    - $item" ;; *) echo "    - \"$item\"" ;; esac done
    } >"$POLICY"
}
none_are() { printf 'network: {uplink: host}\n' >"$POLICY"; }
world() { # WORD...
    nsenter --net="/proc/$(cat "$WORLD/ready")/ns/net" -- "$@"
}
started() { # with the hosts of now
    command_is sleep 1000
    world timeout -k 5 30 "$PINFOLD" --root "$STATE" --policy "$POLICY" create --bundle "$BUNDLE" "$ID" </dev/null \
        >"$WORK/stdout" 2>"$WORK/stderr" 3>&-
    pf start "$ID"
}
update() { # [POLICY]
    world timeout -k 5 60 "$PINFOLD" --root "$STATE" update --policy "${1:-$POLICY}" "$ID" </dev/null 3>&-
}
inside() { # WORD...
    pf exec "$ID" "$@" 2>&1
}
fetch() { # NAME
    inside /usr/bin/curl -sS --max-time 10 "http://$1/"
}
address() { # NAME...: their IPv4 addresses in the container
    inside /usr/bin/python3 -c 'import socket, sys
for name in sys.argv[1:]:
    try:
        print(socket.gethostbyname(name))
    except OSError:
        print("none")' "$@" | xargs
}
reach() { # NAME...: of each whether it is reached
    # shellcheck disable=SC2016 # the container's shell
    inside sh -c 'for name; do /usr/bin/curl -s -o /dev/null --max-time 10 "http://$name/" && echo reached || echo none; done' sh "$@" | xargs
}
broker_of_test() {
    local process name
    for process in $(own_processes); do
        { read -r name <"/proc/$process/comm"; } 2>/dev/null || continue
        [ "$name" != pinfold-broker ] || echo "$process"
    done
}

@test "an added host is reached at once, without a restart; before, it did not exist" {
    hosts_are one.test
    started
    run fetch two.test
    contains "$output" "Could not resolve host"
    hosts_are one.test two.test
    run update
    ended 0
    run fetch two.test
    ended 0 "hello two.test"
    run fetch one.test
    ended 0 "hello one.test"
    run pf why --container "$ID" two.test
    is "$(pf state "$ID" | jq -r .status)" running
}

@test "from no host at all to one: the broker is started in the container that runs" {
    none_are
    started
    is "$(broker_of_test)" ""
    run fetch one.test
    contains "$output" "Could not resolve host"
    hosts_are one.test
    run update
    ended 0
    run fetch one.test
    ended 0 "hello one.test"
    has_record net.connection.opened '.dst_endpoint.hostname == "one.test" and (.firewall_rule.name | contains("one.test"))'
    run fetch two.test
    contains "$output" "Could not resolve host"
    none_are
    run update
    ended 0
    run fetch one.test
    contains "$output" "Could not resolve host"
    hosts_are two.test
    run update
    ended 0
    run fetch two.test
    ended 0 "hello two.test"
}

@test "a host that is taken out: its connection is reset and recorded with why, a transfer from another goes on whole" {
    hosts_are one.test:7000 kept.test:7002
    started
    cat >"$ROOT/work/program.py" <<'PY'
import socket
cut = socket.create_connection(("one.test", 7000))
cut.recv(6)
kept = socket.create_connection(("kept.test", 7002))
got = len(kept.recv(65536))
print("ready", flush=True)
try:
    print("data", cut.recv(1))
except ConnectionResetError:
    print("reset")
while part := kept.recv(1 << 20):
    got += len(part)
print(got, flush=True)
PY
    pf exec "$ID" /usr/bin/python3 /work/program.py >"$WORK/output" 2>&1 </dev/null &
    program=$!
    wait_for grep -q ready "$WORK/output"
    hosts_are kept.test:7002
    run update
    ended 0
    wait "$program"
    is "$(cat "$WORK/output")" "$(printf '%s\n' ready reset 67108864)"
    has_record net.connection.closed '.dst_endpoint.hostname == "one.test" and (.message | contains("the policy that was put in force does not allow it"))'
    contains "$(records '.status_detail == "net.connection.closed" and .dst_endpoint.hostname == "one.test"' | jq -r .firewall_rule.name)" one.test:7000
    has_record net.connection.closed '.dst_endpoint.hostname == "kept.test" and .traffic.bytes_in == 67108864'
    run inside /usr/bin/python3 -c 'import socket; socket.create_connection(("198.18.0.1", 7000))'
    contains "$output" ConnectionRefusedError
    has_record net.host.not_allowed '.dst_endpoint.hostname == "one.test"'
}

@test "a connection to a private address ends where its line is not private any more" {
    hosts_are '{host: private.test, private: true}'
    started
    cat >"$ROOT/work/program.py" <<'PY'
import socket
s = socket.create_connection(("private.test", 80))
s.sendall(b"GET / HTTP/1.1\r\nHost: private.test\r\n\r\n")
s.recv(1)
print("ready", flush=True)
try:
    while s.recv(65536):
        pass
    print("end", flush=True)
except ConnectionResetError:
    print("reset", flush=True)
PY
    pf exec "$ID" /usr/bin/python3 /work/program.py >"$WORK/output" 2>&1 </dev/null &
    program=$!
    wait_for grep -q ready "$WORK/output"
    hosts_are private.test
    run update
    ended 0
    wait "$program"
    is "$(cat "$WORK/output")" "$(printf '%s\n' ready reset)"
}

@test "names keep their addresses through updates and through the death of the broker, and no other name gets one" {
    hosts_are one.test two.test '*.wild.test'
    started
    read -r x y <<<"$(address x.wild.test y.wild.test)"
    is "$(address one.test two.test)" "198.18.0.1 198.18.0.2"
    hosts_are three.test two.test
    run update
    ended 0
    is "$(address one.test x.wild.test two.test three.test)" "none none 198.18.0.2 198.18.0.3"
    hosts_are '*.wild.test' kept.test three.test one.test
    run update
    ended 0
    is "$(address one.test three.test kept.test y.wild.test x.wild.test)" "198.18.0.1 198.18.0.3 198.18.0.4 $y $x"
    kill -9 "$(broker_of_test)"
    has_record broker.lost
    is "$(address one.test three.test kept.test x.wild.test two.test)" "198.18.0.1 198.18.0.3 198.18.0.4 $x none"
    run fetch x.wild.test
    ended 0 "hello x.wild.test"
    run fetch one.test
    ended 0 "hello one.test"
    run fetch two.test
    contains "$output" "Could not resolve host"
}

@test "what is stored, explained and recorded is the policy that is in force" {
    hosts_are one.test
    started
    before=$(jq -r .policyDigest "$STATE/$ID/state.json")
    POLICY=$WORK/wider.yaml
    printf 'network:\n  uplink: host\n  allowed_hosts: [one.test, two.test]\n' >"$POLICY"
    run update
    ended 0
    after=$(jq -r .policyDigest "$STATE/$ID/state.json")
    [ "$before" != "$after" ]
    is "$(jq -r .policy "$STATE/$ID/state.json")" wider
    is "$(pf explain --json "$ID" | jq -r '.policy.name, .policy.digest, (.lines[] | select(.key == "network.allowed_hosts").value)')" \
        "$(printf '%s\n' wider "$after" one.test two.test)"
    more_than 3 "$(find "$STATE/$ID" -name 'policy*' | wc -l)"
    has_record policy.applied ".class_uid == 5019 and .policy.uid == \"$after\" and .unmapped.previous_policy_digest == \"$before\""
    contains "$(records '.status_detail == "policy.applied"' | jq -r .message)" "Policy wider (digest ${after:0:12}) is in force, in place of policy (digest ${before:0:12})"
    run inside sh -c 'echo exec'
    ended 0 exec
    run fetch three.test
    has_record dns.name.not_allowed ".query.hostname == \"three.test\" and .policy.uid == \"$after\""
    check=${CHECK_OCSF:-$(cd "$BATS_TEST_DIRNAME/../../.." && pwd)/shared/bin/check-ocsf}
    if [ -x "$check" ]; then
        run "$check" "$LOG"
        ended 0
    fi
}

@test "trust is that of create: a policy file that the container can write to, the ceiling, unconfined, annotations" {
    mkdir "$WORK/project"
    configure --arg project "$WORK/project" '.mounts += [{destination: "/work", type: "bind", source: $project, options: ["bind"]}]
      | .annotations["dev.pinfold.network.allowed_hosts"] = "[one.test, two.test]"'
    hosts_are one.test two.test
    started
    cp "$POLICY" "$WORK/project/policy.yaml"
    run update "$WORK/project/policy.yaml"
    ended 1 "policy.file.writable: the policy $WORK/project/policy.yaml lies inside the mount at /work"
    run update unconfined
    ended 1 "policy unconfined cannot be put in force while a container runs"
    run update nowhere
    ended 1 'policy "nowhere" is not known'
    hosts_are one.test three.test
    run update
    ended 0
    has_record policy.annotation.ignored '.message | contains("two.test")'
    run fetch one.test
    ended 0 "hello one.test"
    run fetch three.test # the annotation does not ask for it
    contains "$output" "Could not resolve host"
    cp -a /etc "$WORK/etc"
    mkdir -p "$WORK/etc/pinfold"
    echo 'network: {allowed_hosts: [one.test]}' >"$WORK/etc/pinfold/ceiling.yaml"
    hosts_are one.test two.test
    mount --bind "$WORK/etc" /etc
    run update
    umount /etc
    ended 1 policy.ceiling.exceeded
    contains "$output" two.test
    run fetch two.test
    contains "$output" "Could not resolve host"
}

@test "keys that cannot change while a container runs are named, and nothing is changed" {
    hosts_are one.test
    started
    cp "$STATE/$ID/state.json" "$WORK/state.json"
    hosts_are one.test two.test
    printf 'filesystem: {writable: ["@mounts", /opt]}\nlimits: {pids: 77}\n' >>"$POLICY"
    run update
    ended 1 "only network.allowed_hosts can change, and network.mode between allowlist and none; this needs a new container"
    contains "$output" "filesystem.writable: [@mounts, /opt] (written in $POLICY:"
    contains "$output" "limits.pids: 77 (written in $POLICY:"
    printf 'network: {uplink: host, inbound: deny, allowed_hosts: [one.test]}\n' >"$POLICY"
    run update
    ended 1 "network.inbound: deny"
    printf 'network: {uplink: host, mode: open}\n' >"$POLICY"
    run update
    ended 1 "network.mode: open"
    run update --pids-limit
    ended 1
    is "$(cat "$STATE/$ID/state.json")" "$(cat "$WORK/state.json")"
    run fetch two.test
    contains "$output" "Could not resolve host"
}

@test "the engine's hosts file counts as it was at create, not as the workload has written it" {
    printf '10.9.9.9 private.test\n' >"$WORK/hosts"
    configure --arg hosts "$WORK/hosts" '.mounts += [{destination: "/etc/hosts", type: "bind", source: $hosts, options: ["bind", "rw"]}]'
    none_are
    started
    inside sh -c 'echo "10.9.9.8 two.test" >>/etc/hosts'
    hosts_are two.test private.test
    run update
    ended 0
    run fetch private.test
    ended 0 "hello private.test"
    run fetch two.test
    contains "$output" "curl: (7)"
    is "$(jq -c .hostAliases "$STATE/$ID/state.json")" '["10.9.9.9 private.test"]'
}

@test "in a user namespace the same: the first host, another one, none" {
    user_namespace
    mkdir "$ROOT/lib64"
    none_are
    started
    hosts_are one.test
    run update
    ended 0
    run fetch one.test
    ended 0 "hello one.test"
    hosts_are two.test
    run update
    ended 0
    run fetch two.test
    ended 0 "hello two.test"
    run fetch one.test
    contains "$output" "Could not resolve host"
    none_are
    run update
    ended 0
    run fetch two.test
    contains "$output" "Could not resolve host"
}

@test "a container that has the broker's ports taken gets no broker, and is told why" {
    none_are
    started
    pf exec --detach "$ID" /usr/bin/python3 -c 'import socket, time
s = socket.socket(); s.bind(("127.0.0.1", 19)); s.listen(); open("/tmp/bound", "w"); time.sleep(1000)' 3>&-
    wait_for pf exec "$ID" test -e /tmp/bound
    hosts_are one.test
    run update
    ended 1 "ports 18 and 19 of loopback, which the broker needs, are taken by a process of the container"
    is "$(broker_of_test)" ""
    run fetch one.test
    contains "$output" "Could not resolve host"
}

@test "mode: none closes everything, and the way back is open" {
    hosts_are one.test
    started
    run fetch one.test
    ended 0 "hello one.test"
    printf 'network: {uplink: host, mode: none}\n' >"$POLICY"
    run update
    ended 0
    run fetch one.test
    contains "$output" "Could not resolve host"
    run inside /usr/bin/curl -sS --max-time 10 --resolve one.test:80:198.18.0.1 http://one.test/
    contains "$output" "curl: (7)"
    hosts_are one.test
    run update
    ended 0
    run fetch one.test
    ended 0 "hello one.test"
}

@test "a network namespace of several containers keeps its policy until there is only one" {
    hosts_are one.test
    started
    first=$ID
    init=$(state_of .pid)
    new_bundle "$WORK/second"
    command_is sleep 1000
    configure --arg path "/proc/$init/ns/net" '.linux.namespaces |= map(if .type == "network" then .path = $path else . end)'
    ID=$PREFIX-second
    world timeout 30 "$PINFOLD" --root "$STATE" --policy "$POLICY" create --bundle "$BUNDLE" "$ID" </dev/null >"$WORK/stdout" 2>"$WORK/stderr" 3>&-
    pf start "$ID"
    hosts_are one.test two.test
    ID=$first run update
    ended 1 "net.namespace.shared: container $first shares its network namespace with container $PREFIX-second"
    run update
    ended 1 "net.namespace.shared"
    pf delete --force "$ID"
    ID=$first run update
    ended 0
    # whoever joins now needs the policy of now
    hosts_are one.test
    run timeout 30 "$PINFOLD" --root "$STATE" --policy "$POLICY" create --bundle "$BUNDLE" "$ID" </dev/null 3>&-
    ended 1 net.namespace.shared
    hosts_are one.test two.test
    world timeout 30 "$PINFOLD" --root "$STATE" --policy "$POLICY" create --bundle "$BUNDLE" "$ID" </dev/null >"$WORK/stdout" 2>"$WORK/stderr" 3>&-
    pf start "$ID"
    pf delete --force "$ID"
    ID=$first
    run fetch two.test
    ended 0 "hello two.test"
}

@test "a container that was created, not started, takes another policy as well" {
    hosts_are one.test
    command_is sh -c '/usr/bin/curl -sS --max-time 10 http://two.test/ >/tmp/answer 2>&1; echo done >>/tmp/answer; sleep 1000'
    world timeout -k 5 30 "$PINFOLD" --root "$STATE" --policy "$POLICY" create --bundle "$BUNDLE" "$ID" </dev/null \
        >"$WORK/stdout" 2>"$WORK/stderr" 3>&-
    hosts_are two.test
    run update
    ended 0
    run pf start "$ID"
    ended 0
    wait_for pf exec "$ID" grep -q done /tmp/answer
    is "$(pf exec "$ID" cat /tmp/answer)" "$(printf '%s\n' "hello two.test" done)"
}

@test "an update that is killed at any of its steps leaves one policy or the other, and the next one puts all right" {
    [ -n "${PINFOLD_FAULTS-}" ] || skip "needs the build of make pinfold-faults"
    hosts_are one.test kept.test
    started
    now=kept.test next=two.test
    for step in update-names update-broker update-warden update-wall update-told update-stored; do
        hosts_are one.test "$next"
        PINFOLD_FAULT=$step PINFOLD=$PINFOLD_FAULTS run update
        ended 137
        is "$(reach one.test three.test)" "reached none" # what both allow, and neither
        run pf explain "$ID"
        ended 0
        run update
        ended 0
        is "$(reach one.test "$next" "$now")" "reached reached none"
        read -r now next <<<"$next $now"
    done
    is "$(address kept.test two.test)" "198.18.0.2 none"
}

@test "an update that is killed as it starts the first broker leaves none, and the next one starts it" {
    [ -n "${PINFOLD_FAULTS-}" ] || skip "needs the build of make pinfold-faults"
    none_are
    started
    hosts_are one.test
    PINFOLD_FAULT=update-keeper PINFOLD=$PINFOLD_FAULTS run update
    ended 137
    run fetch one.test
    contains "$output" "Could not resolve host"
    run update
    ended 0
    is "$(fetch one.test)" "hello one.test"
}

@test "a broker that does not answer an update is replaced by one that has the new policy" {
    hosts_are one.test two.test
    started
    broker=$(broker_of_test)
    kill -STOP "$broker"
    hosts_are two.test
    run update
    ended 0
    [ ! -e "/proc/$broker" ]
    run fetch two.test
    ended 0 "hello two.test"
    run fetch one.test
    contains "$output" "Could not resolve host"
}

# With interfaces, the rules alone are the wall: an update that took them away for a moment would let some of these through.
@test "a host that is not allowed is never reached while the policy is updated fifty times" {
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
    configure --arg path "$WORK/add-interface" --arg outside "$(cat "$WORLD/ready")" --arg resolver "$WORLD/resolv.conf" \
        '.hooks.createRuntime = [{path: $path, args: ["add-interface", $outside], env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]
         | .mounts += [{destination: "/etc/resolv.conf", type: "bind", source: $resolver, options: ["bind", "ro"]}]'
    printf 'network: {allowed_hosts: [one.test]}\n' >"$POLICY"
    started
    run fetch one.test
    ended 0 "hello one.test"
    : >"$WORLD/accepted"
    cat >"$ROOT/work/program.py" <<'PY'
import os, socket
reached = tried = 0
print("ready", flush=True)
while not os.path.exists("/tmp/enough"):
    for place in ("203.0.113.5", 7000), ("203.0.113.5", 7001), ("198.18.0.9", 7000):
        tried += 1
        s = socket.socket()
        s.settimeout(20)
        try:
            s.connect(place)
            reached += 1
        except OSError:
            pass
        s.close()
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            u.sendto(b"escaped", ("203.0.113.53", 5353))
            reached += 1
        except OSError:
            pass
        u.close()
print(reached, tried > 50, flush=True)
PY
    LIMIT=110 pf exec "$ID" /usr/bin/python3 /work/program.py >"$WORK/output" 2>&1 </dev/null &
    program=$!
    wait_for grep -q ready "$WORK/output"
    for i in $(seq 25); do
        printf 'network: {allowed_hosts: [one.test, "n%d.test", {host: "10.1.%d.0/24", private: true}]}\n' "$i" "$i" >"$POLICY"
        "$PINFOLD" --root "$STATE" update --policy "$POLICY" "$ID" 3>&-
        printf 'network: {allowed_hosts: [one.test]}\n' >"$POLICY"
        "$PINFOLD" --root "$STATE" update --policy "$POLICY" "$ID" 3>&-
    done
    pf exec "$ID" touch /tmp/enough
    wait "$program"
    is "$(cat "$WORK/output")" "$(printf '%s\n' ready "0 True")"
    is "$(cat "$WORLD/accepted")" ""
    run fetch one.test
    ended 0 "hello one.test"
}
