#!/usr/bin/env bats
# Allowed hosts in the networks that podman gives: the same script passes in each.

load engine.bash
load egress.bash

bats_require_minimum_version 1.5.0

setup_file() {
    engine_begin podman conmon jq python3 openssl
    podman_begin
    far_end "${service_lines[@]}"
    # whom podman's own name server asks for what it does not know
    echo "nameserver 10.77.0.1" >"$HOUSE/etc/resolv.conf"
    inside mount --bind "$HOUSE/etc/resolv.conf" "$(realpath /etc/resolv.conf)"
}
teardown_file() {
    engine_end
}
setup() {
    NAME=t$BATS_TEST_NUMBER
    FLAGS=policy=$HOSTS_POLICY
}
teardown() {
    local id ids
    ids=$(podman ps -aq --no-trunc)
    # The second first: podman removes none on whose namespace another one depends, whatever --all says.
    podman rm -f -t 0 "$NAME-b" >/dev/null 2>&1 || :
    podman rm -f -t 0 -a >/dev/null
    for id in $ids; do
        nothing_left_of "$id" || return 1
    done
}
own_name_server() {
    [ -x /usr/lib/podman/aardvark-dns ] || [ -x /usr/libexec/podman/aardvark-dns ] || skip "aardvark-dns is not installed"
}
exec_in() { # NAME COMMAND...
    podman exec "$@"
}

# Without this one, the others could not fail.
@test "without the wall the whole script gets out" {
    FLAGS=policy=unconfined
    sleeper "$NAME" "${far_options[@]}"
    all_hosts "$NAME"
}

@test "the default bridge" {
    sleeper "$NAME" "${far_options[@]}"
    the_hosts "$NAME" "$(of "$NAME" '{{.Id}}')"
}

@test "a user namespace: --userns auto" {
    sleeper "$NAME" --userns auto "${far_options[@]}"
    the_hosts "$NAME" "$(of "$NAME" '{{.Id}}')"
}

@test "two containers of one network namespace" {
    sleeper "$NAME" "${far_options[@]}"
    sleeper "$NAME-b" --network "container:$NAME" "${far_options[@]:2}"
    the_hosts "$NAME" "$(of "$NAME" '{{.Id}}')"
    the_hosts "$NAME-b" "$(of "$NAME" '{{.Id}}')"
}

@test "a network of its own, with IPv6, and podman's own name server in it" {
    own_name_server
    podman network create --ipv6 --subnet 10.89.9.0/24 --subnet fd77:9::/64 field >/dev/null
    sleeper "$NAME" --network field "${far_options[@]:2}"
    the_hosts "$NAME" "$(of "$NAME" '{{.Id}}')"
    lacks "$output" "no IPv6"
}

@test "two services of a network reach each other by the names that podman's own name server has, where the policy does" {
    own_name_server
    podman network create services >/dev/null
    podman run -d --name "$NAME-web" --network services "${far_options[@]:2}" --network-alias web "$IMAGE" "${serving[@]}" web
    podman run -d --name "$NAME-api" --network services "${far_options[@]:2}" --network-alias api --network-alias bare --network-alias db \
        "$IMAGE" "${serving[@]}" api
    FLAGS=policy=unconfined sleeper "$NAME-plain" --network services "${far_options[@]:2}"
    the_services "$NAME" "$(of "$NAME-web" '{{.Id}}')" "$(of "$NAME-api" '{{.Id}}')"
}
