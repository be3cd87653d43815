#!/usr/bin/env bats
# Allowed hosts for an ordinary user's podman whose network is pasta, podman's own choice since 5.0: the script of
# tests/engines/egress.bash. As root, on a machine of the test's own where systemd has a manager for the user tester (1000).

bats_require_minimum_version 1.5.0
# shellcheck source=../assertions.bash
. "$PINFOLD_TESTS/assertions.bash"
# shellcheck source=../engines/egress.bash
. "$PINFOLD_TESTS/engines/egress.bash"

IMAGE=localhost/hosts:1

setup_file() {
    local root=$BATS_FILE_TMPDIR/root
    [ -d /run/systemd/system ] || skip "systemd does not run this machine"
    [ "$(id -u)" = 0 ] && [ -S /run/user/1000/bus ] || skip "needs root, and a session of the user 1000"
    command -v pasta >/dev/null || skip "pasta is not installed"
    export HOUSE=$BATS_FILE_TMPDIR
    far_end
    # The uplink whose addresses and routes pasta gives to the container.
    ip link add uplink type veth peer name uplink-end
    ip addr add 192.0.2.10/24 dev uplink
    ip link set uplink up
    ip link set uplink-end up
    ip route add default via 192.0.2.1 dev uplink
    install -o 1000 -m 600 "$HOSTS_POLICY" /home/tester/hosts-policy.yaml
    mkdir -p "$root"/{bin,etc,proc,sys,dev,tmp,run,usr,lib,lib64}
    cp "$(command -v busybox)" "$root/bin/"
    "$root/bin/busybox" --install "$root/bin"
    install -m 755 "$PINFOLD_TESTS/engines/hosts" "$root/bin/hosts"
    echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
    # podman limits the number of processes by itself, and the controller may not be the user's
    printf '[containers]\npids_limit = 0\n' >/home/tester/containers.conf
    tar -C "$root" -c . | as_tester podman import -q -c 'ENV PATH=/bin' - $IMAGE
}
teardown_file() {
    [ -z "${FAR_END-}" ] || kill "$FAR_END"
    ip link del uplink 2>/dev/null || :
}
teardown() {
    as_tester podman rm --force --time 0 --all >/dev/null 2>&1 || :
}

# In the user's own manager, as podman wants it.
as_tester() {
    setpriv --reuid 1000 --regid 1000 --init-groups env -i -C /home/tester PATH="$PATH" HOME=/home/tester USER=tester LOGNAME=tester \
        ${GOMAXPROCS:+GOMAXPROCS="$GOMAXPROCS"} XDG_RUNTIME_DIR=/run/user/1000 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus \
        CONTAINERS_CONF_OVERRIDE=/home/tester/containers.conf \
        systemd-run --user --scope --quiet timeout -k 5 "${LIMIT:-300}" "$@" 3>&-
}
inside() {
    "$@"
}
exec_in() { # NAME COMMAND...
    as_tester podman --runtime "$PINFOLD" exec "$@"
}
log_of() { # LONG-ID
    echo "/home/tester/.local/state/pinfold/$1.jsonl"
}
sleeper() { # POLICY
    as_tester podman --runtime "$PINFOLD" --runtime-flag "policy=$1" run -d --name hosts --network pasta "${far_options[@]}" $IMAGE sleep 1000
}

# Without this one, the next could not fail.
@test "pasta: without the wall the whole script gets out" {
    sleeper unconfined
    all_hosts hosts
}

@test "pasta: allowed hosts are reached, others are denied and recorded" {
    local id
    id=$(sleeper /home/tester/hosts-policy.yaml)
    the_hosts hosts "$id"
}
