#!/usr/bin/env bats
# Allowed hosts in the networks that podman gives: the same script passes in each.

load engine.bash
load egress.bash

bats_require_minimum_version 1.5.0

setup_file() {
    engine_begin podman conmon jq python3 openssl
    podman_begin
    far_end
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
