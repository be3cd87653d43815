#!/usr/bin/env bats
# Allowed hosts for an ordinary user's podman, whose network is slirp4netns.

load engine.bash
load egress.bash
load shepherd.bash

bats_require_minimum_version 1.5.0

setup_file() {
    engine_begin podman conmon jq python3 openssl newuidmap setpriv slirp4netns
    [ -z "$(getent passwd "$SHEPHERD")" ] || skip "uid $SHEPHERD is taken on this machine"
    shepherd_begin
    inside test -u "$(command -v newuidmap)" || skip "newuidmap is not setuid here"
    podman_begin
    far_end
    # A policy is the user's own, or root's as the user sees it.
    inside install -o "$SHEPHERD" -m 600 "$HOSTS_POLICY" "$HOUSE/home/hosts-policy.yaml"
    HOSTS_POLICY=$HOUSE/home/hosts-policy.yaml
}
teardown_file() {
    engine_end
}
setup() {
    NAME=t$BATS_TEST_NUMBER
    PINFOLD=/run/pinfold-bin/pinfold
    FLAGS=policy=$HOSTS_POLICY
}
teardown() {
    podman rm -f -t 0 -a >/dev/null
}
exec_in() { # NAME COMMAND...
    podman exec "$@"
}
# An ordinary user's records are below the user's home.
log_of() { # LONG-ID
    echo "$HOUSE/home/.local/state/pinfold/$1.jsonl"
}

# Without this one, the next could not fail.
@test "without the wall the whole script gets out" {
    FLAGS=policy=unconfined
    sleeper "$NAME" --network slirp4netns "${far_options[@]}"
    all_hosts "$NAME"
}

@test "slirp4netns" {
    sleeper "$NAME" --network slirp4netns "${far_options[@]}"
    the_hosts "$NAME" "$(of "$NAME" '{{.Id}}')"
}
