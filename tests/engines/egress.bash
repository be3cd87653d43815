# One script of allowed and denied hosts that has to pass in every network that an engine gives, and under the stand-alone hook:
# `hosts` beside this file runs in the container, what it has to find is here.
#
# To use it, load this file after one that has, as engine.bash has them,
#   $HOUSE                   a directory of the test's
#   inside COMMAND...        runs a command in the network namespace where the far end is, outside of every container
#   exec_in NAME COMMAND...  runs a command in a container
#   log_of LOG-ID            the file of records
# and the functions of assertions.bash. Then, once for a file, `far_end`; for each container one that has $HOSTS_POLICY, the
# program `hosts` as /bin/hosts (make_image_root of engine.bash puts it there), this machine's /usr as /usr, /lib and /lib64
# (far_options), and the name server 10.77.0.1; and then
#   the_hosts NAME LOG-ID    fails unless every line of it is allowed, denied and recorded as it has to be
#   all_hosts NAME           fails unless all of it gets out: for a container without a wall, so that the_hosts could fail
# It needs jq, python3, ip and openssl outside, and python3 in the container.

# At the far end: a name server at 10.77.0.1 who knows allowed.test and denied.test, and at ports 80, 443 (TLS), 7000 and 7001 of
# 1.2.3.4, of the metadata service's address and of an IPv6 address the same server; $HOUSE/seen has what they see. Further words
# are lines of the policy's list.
far_end() { # [LINE...]
    inside sh -ec 'for address in 1.2.3.4 10.77.0.1 169.254.169.254; do ip addr add $address/32 dev lo; done
        ip addr add 2001:db8::9/128 dev lo 2>/dev/null || :' # a machine without IPv6
    # The machine of tests/vm has no openssl.
    if [ -n "${FAR_END_PEM-}" ]; then cp "$FAR_END_PEM" "$HOUSE/certificate.pem"; else far_end_certificate "$HOUSE"; fi
    FINGERPRINT=$(sed -n '/BEGIN CERT/,/END CERT/{/-----/!p}' "$HOUSE/certificate.pem" | base64 -d | sha256sum | cut -d' ' -f1)
    inside "$PINFOLD_TESTS/bats/world" 10.77.0.1 "80,443=$HOUSE/certificate.pem,7000,7001" allowed.test=1.2.3.4 denied.test=1.2.3.4 \
        >"$HOUSE/seen" 2>&1 </dev/null 3>&- &
    FAR_END=$!
    wait_for grep -q ready "$HOUSE/seen" || { cat "$HOUSE/seen" >&2; return 1; }
    { printf 'version: 1\nnetwork:\n  allowed_hosts:\n'; printf '    - %s\n' '"allowed.test:80,443,7000"' "$@"; } >"$HOUSE/hosts-policy.yaml"
    chmod 644 "$HOUSE/hosts-policy.yaml"
    HOSTS_POLICY=$HOUSE/hosts-policy.yaml
    export HOSTS_POLICY FINGERPRINT FAR_END
}

# The certificate and the key of allowed.test in DIRECTORY/certificate.pem.
far_end_certificate() { # DIRECTORY
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=allowed.test \
        -addext subjectAltName=DNS:allowed.test -keyout "$1/key.pem" -out "$1/certificate.pem" 2>/dev/null
    cat "$1/key.pem" >>"$1/certificate.pem"
}

# The options by which podman and Docker give a container Python and what it is linked with, and the far end's name server.
far_options=(--dns 10.77.0.1 -v /usr:/usr:ro -v /usr/lib:/lib:ro -v /usr/lib64:/lib64:ro)

# What `hosts` prints in a container; $HOSTS_TAG is in the command line of that run and of no other.
run_hosts() { # NAME
    HOSTS_TAG=run-$BATS_TEST_NUMBER-$RANDOM$RANDOM
    run exec_in "$1" /bin/hosts "$HOSTS_TAG" "$FINGERPRINT"
}

the_hosts() { # NAME LOG-ID
    local before try owed
    before=$(grep -c . "$HOUSE/seen")
    run_hosts "$1"
    ended 0
    is "${output/%no IPv6/ECONNREFUSED}" "name allowed.test a synthetic address
http allowed.test reached
https allowed.test reached
raw allowed.test:7000 reached
name denied.test NXDOMAIN
http denied.test not found
https denied.test not found
datagram 1.2.3.4:7000 EPERM
raw allowed.test:7001 ECONNREFUSED
raw 1.2.3.4:80 ECONNREFUSED
raw 10.77.0.1:80 ECONNREFUSED
raw 169.254.169.254:80 ECONNREFUSED
raw [2001:db8::9]:80 ECONNREFUSED"
    # outside nobody has heard of anything else
    is "$(tail -n "+$((before + 1))" "$HOUSE/seen" | grep -v '^name allowed.test ')" "request 80 GET / HTTP/1.1
request 443 GET / HTTP/1.1
request 7000 hello"
    for try in $(seq 100); do
        owed=$(hosts_owed "$2") || owed='records that can be read'
        [ -n "$owed" ] || return 0
        sleep 0.1
    done
    printf 'of process "%s" there is no record of:\n%s\nbut of:\n' "$HOSTS_TAG" "$owed" >&2
    jq -c '[.status_detail, .message, .actor.process.cmd_line]' "$(log_of "$2")" >&2
    return 1
}

# Records that the last run_hosts owes and that are not there: each with that run's process.
hosts_owed() { # LOG-ID
    local ipv6=true
    [[ $output != *"no IPv6" ]] || ipv6=false
    jq -rs --arg tag " $HOSTS_TAG " --argjson ipv6 $ipv6 '
        [.[] | select((.actor.process.cmd_line // "") | contains($tag))] as $run |
        def owed(what; record): if any($run[]; record) then empty else what end;
        def reached(port): .dst_endpoint.hostname == "allowed.test" and .dst_endpoint.ip == "1.2.3.4" and .dst_endpoint.port == port;
        def denied(reason): .action_id == 2 and .status_detail == reason;
        (80, 443, 7000) as $port |
            owed("allowed.test:\($port) opened"; .action_id == 1 and .status_detail == "net.connection.opened" and reached($port)),
            owed("allowed.test:\($port) closed, with bytes"; .status_detail == "net.connection.closed" and reached($port)
                and .traffic.bytes_out > 0 and .traffic.bytes_in > 0 and .traffic.bytes == .traffic.bytes_in + .traffic.bytes_out)
        # all that was said at this port: "hello" and an answer
        , owed("allowed.test:7000 closed, 6 bytes out, 65 in"; .status_detail == "net.connection.closed" and reached(7000)
            and .traffic.bytes_out == 6 and .traffic.bytes_in == 65)
        , owed("denied.test"; denied("dns.name.not_allowed") and .query.hostname == "denied.test")
        , owed("allowed.test:7001"; denied("net.port.not_allowed") and .dst_endpoint.hostname == "allowed.test" and .dst_endpoint.port == 7001)
        , owed("1.2.3.4:80"; denied("net.address.literal") and .dst_endpoint.ip == "1.2.3.4" and .dst_endpoint.port == 80)
        , owed("10.77.0.1:80"; denied("net.address.private") and .dst_endpoint.ip == "10.77.0.1")
        , owed("169.254.169.254:80"; denied("net.address.metadata") and .dst_endpoint.ip == "169.254.169.254")
        , owed("datagram 1.2.3.4:7000"; denied("net.protocol.not_allowed") and .dst_endpoint.ip == "1.2.3.4" and .dst_endpoint.port == 7000)
        , if $ipv6 then owed("[2001:db8::9]:80"; denied("net.address.literal") and .dst_endpoint.ip == "2001:db8::9") else empty end
        ' "$(log_of "$1")"
}

all_hosts() { # NAME
    run_hosts "$1"
    ended 0
    is "${output/%no IPv6/reached}" "name allowed.test 1.2.3.4
http allowed.test reached
https allowed.test reached
raw allowed.test:7000 reached
name denied.test 1.2.3.4
http denied.test reached
https denied.test reached
datagram 1.2.3.4:7000 sent
raw allowed.test:7001 reached
raw 1.2.3.4:80 reached
raw 10.77.0.1:80 reached
raw 169.254.169.254:80 reached
raw [2001:db8::9]:80 reached"
    wait_for grep -qx 'datagram 7000' "$HOUSE/seen"
}

# -- names of the engine's own network ------------------------------------------------------------------------------

# The lines of the policy for the services web and api of one network, which the engine's name server knows, and for one more
# name of api's, whose address is as private but not called so. db is a name of api's that the policy does not have.
service_lines=('{host: web, ports: [8080], private: true}' '{host: api, ports: [8080], private: true}' '"bare:8080"')

# A service: what it runs.
# shellcheck disable=SC2016 # for the container
serving=(sh -c 'mkdir /tmp/www && echo "this is $0" >/tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www')

# With the containers NAME-web and NAME-api, and NAME-plain without a wall, in one network.
the_services() { # NAME WEB-LOG-ID API-LOG-ID
    local get=/bin/hosts\ get record
    # without the wall every name leads to its service
    wait_for answers "$1-plain" api 8080
    wait_for answers "$1-plain" web 8080
    is "$(exec_in "$1-plain" $get bare 8080), $(exec_in "$1-plain" $get db 8080)" "get this is api, get this is api"

    is "$(exec_in "$1-web" $get api 8080)" "get this is api"
    is "$(exec_in "$1-api" $get web 8080)" "get this is web"
    is "$(exec_in "$1-web" $get db 8080)" "get not found"
    is "$(exec_in "$1-web" $get bare 8080)" "get ECONNRESET"
    is "$(exec_in "$1-web" $get api 8081)" "get ECONNREFUSED"
    record=$(records_of "$2" '.status_detail == "net.connection.closed" and .dst_endpoint.hostname == "api"')
    is "$(jq -r '"\(.dst_endpoint.port) \(.traffic.bytes_in > 0)"' <<<"$record")" "8080 true"
    records_of "$3" '.status_detail == "net.connection.closed" and .dst_endpoint.hostname == "web"' >/dev/null
    records_of "$2" '.status_detail == "dns.name.not_allowed" and .query.hostname == "db"' >/dev/null
    records_of "$2" '.status_detail == "net.address.private" and .dst_endpoint.hostname == "bare"' >/dev/null
    records_of "$2" '.status_detail == "net.port.not_allowed" and .dst_endpoint.hostname == "api" and .dst_endpoint.port == 8081' >/dev/null
}
answers() { # NAME HOST PORT
    matches "$(exec_in "$1" /bin/hosts get "$2" "$3")" '^get this is '
}
