#!/usr/bin/env bats
# Allowed hosts in the networks that Docker gives.

load engine.bash
load docker.bash
load egress.bash

bats_require_minimum_version 1.5.0

setup_file() {
    engine_begin dockerd docker containerd jq python3 iptables openssl
    far_end "${service_lines[@]}"
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
    local id ids
    ids=$(docker ps -aq --no-trunc)
    [ -n "$ids" ] || return 0
    docker rm -f $ids >/dev/null
    for id in $ids; do
        nothing_left_of "$id" || return 1
    done
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

@test "two services of a user network reach each other by the names that Docker's own name server has, where the policy does" {
    docker network create services >/dev/null
    docker_run -d --name "$NAME-web" --network services "${far_options[@]:2}" --network-alias web "$IMAGE" "${serving[@]}" web
    docker_run -d --name "$NAME-api" --network services "${far_options[@]:2}" --network-alias api --network-alias bare --network-alias db \
        "$IMAGE" "${serving[@]}" api
    RUNTIME=pinfold-unconfined sleeper "$NAME-plain" --network services "${far_options[@]:2}"
    the_services "$NAME" "$(of "$NAME-web" '{{.Id}}')" "$(of "$NAME-api" '{{.Id}}')"
}
