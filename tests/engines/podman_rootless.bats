#!/usr/bin/env bats
# pinfold as the runtime of an ordinary user's podman. The user exists in the house alone: its passwd, group and subordinate
# ids are the machine's with one more line.

load engine.bash
load shepherd.bash

bats_require_minimum_version 1.5.0

setup_file() {
    engine_begin podman conmon script jq python3 newuidmap setpriv
    [ -z "$(getent passwd "$SHEPHERD")" ] || skip "uid $SHEPHERD is taken on this machine"
    shepherd_begin
    inside test -u "$(command -v newuidmap)" || skip "newuidmap is not setuid here"
    podman_begin
}

teardown_file() {
    engine_end
}

setup() {
    NAME=t$BATS_TEST_NUMBER
    PINFOLD=/run/pinfold-bin/pinfold
}

teardown() {
    local id
    id=$(podman inspect -f '{{.Id}}' "$NAME" 2>/dev/null) || return 0
    podman rm -f -t 0 "$NAME" >/dev/null
    [ -z "$(inside find "/run/user/$SHEPHERD/pinfold" -mindepth 1 -name "*$id*")" ]
}

@test "exit codes: 0, 3, 137 by a signal, 126 and 127" {
    run podman run --rm --network none "$IMAGE" true
    ended 0
    run podman run --rm --network none "$IMAGE" sh -c 'exit 3'
    ended 3
    run podman run --rm --network none --init "$IMAGE" sh -c 'kill -9 $$'
    ended 137
    run -127 podman run --rm --network none "$IMAGE" no-such-command
    ended 127 "executable file not found"
    run podman run --rm --network none "$IMAGE" /etc/passwd
    ended 126 "permission denied"
}

@test "the container's root is the user outside" {
    podman run -d --name "$NAME" --network none "$IMAGE" sleep 1000
    is "$(podman exec "$NAME" id -u)" 0
    pid=$(of "$NAME" '{{.State.Pid}}')
    is "$(awk '/^Uid:/ { print $2 }' "/proc/$pid/status")" "$SHEPHERD"
    is "$(awk '{ print $1, $2, $3 }' "/proc/$pid/uid_map" | head -2)" "0 $SHEPHERD 1
1 700000 65536"
    is "$(grep -E '^(CapBnd|NoNewPrivs|Seccomp):' "/proc/$pid/status")" $'CapBnd:\t00000000800004fb\nNoNewPrivs:\t1\nSeccomp:\t2'
    is "$(podman exec -u 1000 "$NAME" id -un)" user
}

@test "-it, exec -it, standard input" {
    run podman_on_terminal run --rm -it --network none "$IMAGE" sh -c 'tty; sleep 1; stty size; exit 4'
    ended 4 /dev/pts/0
    contains "$output" "33 77"
    podman run -d --name "$NAME" --network none "$IMAGE" sleep 1000
    run podman_on_terminal exec -it "$NAME" sh -c 'tty; exit 6'
    ended 6 /dev/pts/
    is "$(podman exec -i "$NAME" cat <<<"through cat")" "through cat"
    run -127 podman exec "$NAME" /nonexistent
    ended 127
}

@test "kill, logs, wait, start, restart, stop, top" {
    podman run -d --name "$NAME" --network none "$IMAGE" sh -c 'trap "echo caught; exit 9" USR1; echo begun; while :; do sleep 0.1; done'
    for try in $(seq 50); do [ "$(podman logs "$NAME")" != begun ] || break; sleep 0.1; done
    contains "$(podman top "$NAME" args)" "trap"
    podman kill -s USR1 "$NAME"
    is "$(podman wait "$NAME")" 9
    is "$(podman logs "$NAME")" $'begun\ncaught'
    podman start "$NAME"
    podman restart -t 0 "$NAME"
    is "$(of "$NAME" '{{.State.Status}}')" running
    podman stop -t 0 "$NAME"
    is "$(of "$NAME" '{{.State.Status}} {{.State.ExitCode}}')" "exited 137"
}

@test "options: --init, -h, -u, -w, --ulimit, --read-only, --tmpfs, -v, a health check, under both policies" {
    inside_as_user mkdir -p "$HOUSE/home/work"
    for FLAGS in '' policy=unconfined; do
        run podman run --rm --network none --init -h shed -u 1000 -w /tmp --ulimit nofile=512:600 --read-only --tmpfs /mnt:size=1m \
            -v "$HOUSE/home/work:/workspace:ro" -e COLOUR=red "$IMAGE" sh -c '
            hostname; id -u; pwd; ulimit -n; ulimit -Hn; touch /x /workspace/x 2>&1 | grep -c Read-only
            df -k /mnt | tail -1 | xargs echo | cut -d" " -f2; echo $COLOUR'
        ended 0
        is "$(xargs <<<"$output")" "shed 1000 /tmp 512 600 2 1024 red"
        run podman run --rm --network none -v "$HOUSE/home/work:/workspace" "$IMAGE" sh -c 'echo content >/workspace/made && cat /workspace/made'
        ended 0 content
    done
    is "$(stat -c %u "$HOUSE/home/work/made")" "$SHEPHERD"
    FLAGS=''
    podman run -d --name "$NAME" --network none --health-cmd 'test -e /etc/passwd' --health-interval disable "$IMAGE" sleep 100
    run podman healthcheck run "$NAME"
    ended 0
}

@test "networks: none; slirp4netns; the host's is refused by the agent policy" {
    run podman run --rm --network none "$IMAGE" ls /sys/class/net
    is "$output" lo
    run podman run --rm --network host "$IMAGE" true
    ended 126 "namespace.host.refused"
    FLAGS=policy=unconfined run podman run --rm --network host "$IMAGE" sh -c 'ls /sys/class/net && echo same'
    ended 0 same
    command -v slirp4netns >/dev/null || skip "slirp4netns is not installed"
    FLAGS=policy=unconfined run podman run --rm --network slirp4netns "$IMAGE" ip -o -4 address show dev tap0
    [ "$status" = 0 ] || skip "slirp4netns does not run here: $output"
    contains "$output" "10.0.2."
    podman run -d --name "$NAME" --network slirp4netns:allow_host_loopback=true "$IMAGE" sleep 1000
    contains "$(podman exec "$NAME" ip -o -4 address show dev tap0)" "10.0.2."
}

# Without the first half, the second could not fail.
@test "nothing gets out of slirp4netns under the agent policy" {
    command -v slirp4netns >/dev/null || skip "slirp4netns is not installed"
    listen
    FLAGS=policy=unconfined run podman run --rm --network slirp4netns:allow_host_loopback=true "$IMAGE" reach tcp 10.0.2.2 9000
    [ "$status" = 0 ] || skip "slirp4netns does not reach the host here: $output"
    sleep 0.2
    is "$(arrived tcp)" 19
    rm -f "$HOUSE/listener/tcp" "$HOUSE/listener/udp"
    podman run -d --name "$NAME" --network slirp4netns:allow_host_loopback=true "$IMAGE" sleep 1000
    for target in "tcp 10.0.2.2 9000" "udp 10.0.2.2 9000" "udp 10.0.2.3 53" "tcp 203.0.113.7 443"; do
        run podman exec "$NAME" reach $target
        ended 1
        matches "$output" 'EPERM|EACCES|ECONNREFUSED|ENETUNREACH'
    done
    sleep 0.3
    is "tcp $(arrived tcp) udp $(arrived udp)" "tcp 0 udp 0"
}

@test "what the agent policy denies is recorded in the user's own log" {
    podman run -d --name "$NAME" --network none -e GITHUB_TOKEN=shibboleth -e HARMLESS=kept "$IMAGE" sleep 1000
    id=$(of "$NAME" '{{.Id}}')
    log_of() { echo "$HOUSE/home/.local/state/pinfold/$1.jsonl"; }
    run podman exec "$NAME" env
    ended 0 HARMLESS=kept
    lacks "$output" shibboleth
    # from outside: a process of exec does not look into the container's own
    environment=$(tr '\0' '\n' <"/proc/$(of "$NAME" '{{.State.Pid}}')/environ")
    contains "$environment" HARMLESS=kept
    lacks "$environment" shibboleth
    run podman exec "$NAME" touch /usr/x
    ended 1 "Read-only file system"
    run podman exec "$NAME" reach tcp 203.0.113.7 443
    ended 1 ECONNREFUSED
    record=$(records_of "$id" '.status_detail == "net.address.literal"')
    is "$(jq -r '.actor.process.cmd_line' <<<"$record")" "reach tcp 203.0.113.7 443"
    records_of "$id" '.status_detail == "credential.env.removed"' >/dev/null
    is "$(stat -c '%a %u' "$(log_of "$id")")" "600 $SHEPHERD"
    run podman run --rm --network none -v "$HOUSE/home:/host" "$IMAGE" true
    ended 126 "mount.host_path.refused"
}

@test "podman build as a user with the link pinfold-unconfined" {
    inside_as_user mkdir -p "$HOUSE/home/context"
    printf 'FROM %s\nRUN echo built >/made && chown 1000 /workspace\nUSER 1000\nRUN id -un >/workspace/who\n' "$IMAGE" |
        inside_as_user tee "$HOUSE/home/context/Containerfile" >/dev/null
    RUNTIME=/run/pinfold-bin/pinfold-unconfined run podman build --runtime /run/pinfold-bin/pinfold-unconfined --network none --pull=never -t localhost/built:1 "$HOUSE/home/context"
    ended 0
    run podman run --rm --network none localhost/built:1 cat /made /workspace/who
    is "$output" $'built\nuser'
}
