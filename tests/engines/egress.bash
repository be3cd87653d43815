# What the engines' files about allowed hosts load after engine.bash: a far end in the house, and one script of allowed and
# denied hosts that has to pass in every network that an engine gives.

# In the house: a name server at 10.77.0.1 and servers at ports 80 and 7000 of 1.2.3.4, all of which say what they see.
far_end() {
    inside sh -c 'ip addr add 1.2.3.4/32 dev lo; ip addr add 10.77.0.1/32 dev lo'
    inside "$PINFOLD_TESTS/bats/world" 10.77.0.1 80,7000 allowed.test=1.2.3.4 denied.test=1.2.3.4 >"$HOUSE/seen" 2>&1 </dev/null &
    wait_for grep -q ready "$HOUSE/seen"
    printf 'version: 1\nnetwork:\n  allowed_hosts: [allowed.test]\n' >"$HOUSE/etc/hosts-policy.yaml"
    chmod 644 "$HOUSE/etc/hosts-policy.yaml"
    HOSTS_POLICY=$HOUSE/etc/hosts-policy.yaml
    export HOSTS_POLICY
}

# The options by which podman and Docker give a container curl and what it is linked with, and the far end's name server.
far_options=(--dns 10.77.0.1 -v /usr:/usr:ro -v /usr/lib:/lib:ro -v /usr/lib64:/lib64:ro)

# NAME: a container that exec_in knows; `log` is where its records are (or those of its pod's first container).
the_hosts() { # NAME LOG-ID
    local curl=(/usr/bin/curl -sS --max-time 10) before
    run exec_in "$1" "${curl[@]}" http://allowed.test/
    ended 0 reached
    before=$(grep -c . "$HOUSE/seen")
    run exec_in "$1" "${curl[@]}" http://denied.test/
    ended 6
    run exec_in "$1" "${curl[@]}" --http0.9 http://allowed.test:7000/
    ended 7
    run exec_in "$1" "${curl[@]}" http://1.2.3.4/
    ended 7
    run exec_in "$1" "${curl[@]}" http://10.77.0.1/
    ended 7
    run exec_in "$1" "${curl[@]}" http://169.254.169.254/
    ended 7
    # nobody outside has heard of any of it
    is "$(grep -c . "$HOUSE/seen")" "$before"
    records_of "$2" '.status_detail == "net.connection.opened" and .dst_endpoint.hostname == "allowed.test"' >/dev/null
    records_of "$2" '.status_detail == "dns.name.not_allowed" and .query.hostname == "denied.test"' >/dev/null
    records_of "$2" '.status_detail == "net.port.not_allowed" and .dst_endpoint.hostname == "allowed.test"' >/dev/null
    records_of "$2" '.status_detail == "net.address.literal" and .dst_endpoint.ip == "1.2.3.4"' >/dev/null
    records_of "$2" '.status_detail == "net.address.private"' >/dev/null
    records_of "$2" '.status_detail == "net.address.metadata"' >/dev/null
}
