#!/usr/bin/env bats
# The stand-alone hook under podman with crun and runc: the same script of allowed and denied hosts passes, in each network.

load engine.bash
load egress.bash

bats_require_minimum_version 1.5.0

setup_file() {
    engine_begin podman conmon jq python3 openssl
    # crun refuses a hybrid layout of cgroups
    inside sh -c '! mountpoint -q /sys/fs/cgroup/unified || { umount /sys/fs/cgroup/unified && mount -t tmpfs tmpfs /sys/fs/cgroup/unified; }'
    # and gives its standard streams, which are conmon's /dev/null, to the container's user: not the machine's
    mkdir "$HOUSE/dev"
    inside sh -c 'mount -t tmpfs -o mode=755 dev "$0" && mknod -m 666 "$0/null" c 1 3 && mount --bind "$0/null" /dev/null' "$HOUSE/dev"
    podman_begin
    far_end
    mkdir "$HOUSE/hooks.d"
    jq --arg hook "${PINFOLD%/*}/pinfold-egress-hook" --arg policy "$HOSTS_POLICY" '.hook.path = $hook | .hook.args += ["--policy", $policy]' \
        "$PINFOLD_TESTS/../hooks/pinfold-egress.json" >"$HOUSE/hooks.d/pinfold-egress.json"
}
teardown_file() {
    engine_end
}
setup() {
    NAME=t$BATS_TEST_NUMBER
}
teardown() {
    [ -n "${RUNTIME-}" ] || return 0
    podman rm -f -t 0 -a >/dev/null
    nothing_beside || return 1
}
podman() { # with the hooks
    local words
    podman_words
    inside timeout -k 5 "${LIMIT:-60}" "${words[@]}" --hooks-dir "$HOUSE/hooks.d" "$@"
}
exec_in() { # NAME COMMAND...
    podman exec "$@"
}
runtime_is() { # crun|runc
    RUNTIME=$(command -v "$1") || skip "$1 is not installed"
}
# No warden, keeper or broker.
nothing_beside() {
    local try process name found
    for try in $(seq 50); do
        found=''
        for process in /proc/[0-9]*; do
            { read -r name <"$process/comm"; } 2>/dev/null || continue
            [[ $name != pinfold-* ]] || found+=" $name"
        done
        [ -n "$found" ] || return 0
        sleep 0.1
    done
    echo "left behind:$found" >&2
    return 1
}
hooked() { # [PODMAN-OPTION...]
    sleeper "$NAME" --annotation dev.pinfold.egress=on --cap-drop NET_RAW "$@" "${far_options[@]}"
}

@test "crun, the default bridge; without the annotation there is no wall" {
    runtime_is crun
    sleeper "$NAME" "${far_options[@]}"
    all_hosts "$NAME"
    podman rm -f -t 0 "$NAME"
    hooked
    the_hosts "$NAME" "$(of "$NAME" '{{.Id}}')"
    is "$(jq -r '.actor.process.container.name // empty' "$(log_of "$(of "$NAME" '{{.Id}}')")" | sort -u)" "$NAME"
    [ ! -x "$CHECK_OCSF" ] || "$CHECK_OCSF" "$(log_of "$(of "$NAME" '{{.Id}}')")"
}

@test "runc, the default bridge" {
    runtime_is runc
    hooked
    the_hosts "$NAME" "$(of "$NAME" '{{.Id}}')"
}

@test "crun, a user namespace: the interface comes after the hook" {
    runtime_is crun
    hooked --userns auto
    the_hosts "$NAME" "$(of "$NAME" '{{.Id}}')"
}

@test "run returns when the program has ended, and a container that could pass by the wall is refused with the reason" {
    local runtime refused id
    for runtime in crun runc; do
        runtime_is $runtime
        run podman run --rm --annotation dev.pinfold.egress=on --cap-drop NET_RAW "$IMAGE" sh -c 'nc -w 5 1.2.3.4 80 </dev/null || exit 7'
        ended 7
        nothing_beside
        # crun writes into podman's log of its own no more than that a hook failed: the record has the reason
        for refused in "--cap-add NET_RAW" "--network host"; do
            # shellcheck disable=SC2086 # two words
            run podman run --name "$NAME" --annotation dev.pinfold.egress=on $refused "$IMAGE" true
            [ "$status" != 0 ]
            id=$(of "$NAME" '{{.Id}}')
            podman rm -f -t 0 "$NAME" >/dev/null
            records_of "$id" '.status_detail == "capability.refused" or .status_detail == "namespace.host.refused"' >/dev/null
        done
        nothing_beside
    done
}
