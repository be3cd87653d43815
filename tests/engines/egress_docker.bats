#!/usr/bin/env bats
# Allowed hosts in the networks that Docker gives.

load engine.bash
load docker.bash
load egress.bash

bats_require_minimum_version 1.5.0

setup_file() {
    engine_begin dockerd docker containerd jq python3 iptables openssl
    far_end
    dockerd_begin
}
teardown_file() {
    engine_end
}
setup() {
    NAME=t$BATS_TEST_NUMBER
    RUNTIME=pinfold-hosts
}
teardown() {
    local id
    id=$(of "$NAME" '{{.Id}}' 2>/dev/null) || return 0
    docker rm -f "$NAME" >/dev/null
    nothing_left_of "$id"
}
exec_in() { # NAME COMMAND...
    docker exec "$@"
}

# Without this one, the others could not fail.
@test "without the wall the whole script gets out" {
    RUNTIME=pinfold-unconfined
    sleeper "$NAME" "${far_options[@]}"
    all_hosts "$NAME"
}

@test "the default bridge" {
    sleeper "$NAME" "${far_options[@]}"
    the_hosts "$NAME" "$(of "$NAME" '{{.Id}}')"
}

@test "a user network" {
    docker network create --subnet 10.89.7.0/24 --gateway 10.89.7.1 field >/dev/null
    sleeper "$NAME" --network field "${far_options[@]}"
    the_hosts "$NAME" "$(of "$NAME" '{{.Id}}')"
}
