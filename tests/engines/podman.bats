#!/usr/bin/env bats
# pinfold as podman's runtime, with the agent policy where a test does not say `policy=unconfined`.

load engine.bash

bats_require_minimum_version 1.5.0

setup_file() {
    engine_begin podman conmon script jq nft python3
    podman_begin
    listen
    # the bridge is there as long as one container is on it
    FLAGS=policy=unconfined sleeper keep >/dev/null
    podman network create --disable-dns --ipv6 --subnet 10.89.9.0/24 --subnet fd00:9::/64 six >/dev/null
    FLAGS=policy=unconfined sleeper keep6 --network six >/dev/null
    watch_bridges
}

teardown_file() {
    engine_end
}

setup() {
    NAME=t$BATS_TEST_NUMBER
}
exec_in() { # NAME COMMAND...
    podman exec "$@"
}

# Nothing of the container is left after `rm -f`: a test's container is removed here, and what is found fails it.
teardown() {
    local id
    id=$(podman inspect -f '{{.Id}}' "$NAME" 2>/dev/null) || return 0
    podman rm -f -t 0 "$NAME" >/dev/null
    [ -z "$(inside find /run/pinfold -mindepth 1 -name "*$id*")" ]
}

# -- exit codes ---------------------------------------------------------------------------------------------------

@test "exit codes of the command arrive: 0, 3, 137 by a signal" {
    run podman run --rm "$IMAGE" true
    ended 0
    run podman run --rm "$IMAGE" sh -c 'exit 3'
    ended 3
    run podman run --rm --init "$IMAGE" sh -c 'kill -9 $$'
    ended 137
}

@test "a command that is not there is 127, one that may not be executed is 126" {
    run -127 podman run --rm "$IMAGE" /nonexistent
    ended 127
    contains "$output" 'exec: "/nonexistent": stat /nonexistent: no such file or directory'
    run -127 podman run --rm "$IMAGE" no-such-command
    ended 127 "executable file not found"
    run podman run --rm "$IMAGE" /etc/passwd
    ended 126 "permission denied"
    run podman run --rm "$IMAGE" /etc
    ended 126
}

@test "standard streams: input arrives, output and errors stay apart" {
    run podman run --rm -i "$IMAGE" sh -c 'read word; echo "got $word"; echo wrong >&2' <<<pinfold
    ended 0 "got pinfold"
    output=$(podman run --rm "$IMAGE" sh -c 'echo right; echo wrong >&2' 2>/dev/null)
    is "$output" right
}

# -- terminals ----------------------------------------------------------------------------------------------------

@test "-it gives a terminal of the size of podman's" {
    run podman_on_terminal run --rm -it "$IMAGE" sh -c 'tty; sleep 1; stty size; test -t 0 && test -t 2 && echo both'
    ended 0 /dev/pts/0
    contains "$output" "33 77"
    contains "$output" both
    run podman_on_terminal run --rm -it "$IMAGE" sh -c 'exit 4'
    ended 4
}

@test "exec -t gives a terminal" {
    sleeper "$NAME"
    run podman_on_terminal exec -it "$NAME" sh -c 'tty; exit 6'
    ended 6 /dev/pts/
}

# -- exec ---------------------------------------------------------------------------------------------------------

@test "exec: output, user, exit codes, a missing command" {
    sleeper "$NAME"
    run podman exec "$NAME" echo from inside
    ended 0
    is "$output" "from inside"
    run podman exec -u 1000 "$NAME" id -u
    is "$output" 1000
    run podman exec -u user "$NAME" sh -c 'id -un; id -gn; pwd'
    is "$output" $'user\nuser\n/'
    run podman exec "$NAME" sh -c 'exit 5'
    ended 5
    run -127 podman exec "$NAME" /nonexistent
    ended 127
    run podman exec "$NAME" /etc/passwd
    ended 126
    run podman exec -w /tmp -e COLOUR=red "$NAME" sh -c 'echo $COLOUR; pwd'
    is "$output" $'red\n/tmp'
    run podman exec -i "$NAME" cat <<<"through cat"
    is "$output" "through cat"
}

@test "exec has the container's restrictions: capabilities, no_new_privs, seccomp, root read-only" {
    sleeper "$NAME"
    container=$(podman exec "$NAME" sh -c 'grep -E "^(CapBnd|NoNewPrivs|Seccomp):" /proc/1/status')
    for extra in '' --privileged; do
        run podman exec $extra "$NAME" sh -c 'grep -E "^(CapBnd|NoNewPrivs|Seccomp):" /proc/self/status'
        is "$output" "$container"
        run podman exec $extra "$NAME" touch /usr/x
        ended 1 "Read-only file system"
        run podman exec $extra "$NAME" mount -t tmpfs none /tmp
        ended 1
    done
    contains "$container" "CapBnd:	00000000800004fb"
}

# -- the life of a container --------------------------------------------------------------------------------------

@test "stop, kill, logs, inspect, wait and start again" {
    podman run -d --name "$NAME" "$IMAGE" sh -c 'trap "echo caught; exit 9" USR1; echo begun; while :; do sleep 0.1; done'
    is "$(of "$NAME" '{{.State.Status}}')" running
    pid=$(of "$NAME" '{{.State.Pid}}')
    is "$(readlink "/proc/$pid/exe" | sed 's|.*/||')" sh
    for try in $(seq 30); do [ "$(podman logs "$NAME")" != begun ] || break; sleep 0.1; done
    run podman kill -s USR1 "$NAME"
    ended 0
    run podman wait "$NAME"
    is "$output" 9
    is "$(podman logs "$NAME")" $'begun\ncaught'
    is "$(of "$NAME" '{{.State.Status}} {{.State.ExitCode}} {{.State.Pid}}')" "exited 9 0"
    podman start "$NAME"
    is "$(of "$NAME" '{{.State.Status}}')" running
    run podman stop -t 1 "$NAME"
    ended 0
    is "$(of "$NAME" '{{.State.Status}} {{.State.ExitCode}}')" "exited 137"
}

@test "pause, unpause, top and ps" {
    sleeper "$NAME"
    contains "$(podman top "$NAME" args)" "sleep 1000"
    podman pause "$NAME"
    is "$(of "$NAME" '{{.State.Status}}')" paused
    run podman exec "$NAME" true
    [ "$status" != 0 ]
    podman unpause "$NAME"
    is "$(of "$NAME" '{{.State.Status}}')" running
    is "$(podman exec "$NAME" echo again)" again
}

@test "resource limits are what podman asked for, and can be changed" {
    [ -d "/proc/$HOLDER/root/sys/fs/cgroup/memory" ] || skip "no memory hierarchy of version 1"
    id=$(sleeper "$NAME" -m 64m --cpus 0.5 --pids-limit 50)
    cgroup=/proc/$HOLDER/root/sys/fs/cgroup
    is "$(cat "$cgroup"/memory/libpod_parent/libpod-"$id"/memory.limit_in_bytes)" 67108864
    is "$(cat "$cgroup"/cpu/libpod_parent/libpod-"$id"/cpu.cfs_quota_us)" 50000
    is "$(cat "$cgroup"/pids/libpod_parent/libpod-"$id"/pids.max)" 50
    podman update -m 128m "$NAME"
    is "$(cat "$cgroup"/memory/libpod_parent/libpod-"$id"/memory.limit_in_bytes)" 134217728
    # more than the limit ends the container
    run podman run --rm -m 32m --memory-swap 32m "$IMAGE" tail /dev/zero
    ended 137
}

@test "rm -f leaves no process, mount, cgroup, network namespace or state" {
    before=$(ls "/proc/$HOLDER/root/run/netns" 2>/dev/null | sort)
    id=$(sleeper "$NAME" -v "$HOUSE/tmp:/workspace" -p 18091:80)
    [ -d "/proc/$HOLDER/root/run/pinfold/$id" ]
    conmon=$(of "$NAME" '{{.State.ConmonPid}}')
    podman exec -d "$NAME" sleep 500
    run podman rm -f -t 0 "$NAME"
    ended 0
    nothing_left_of "$id"
    wait_for [ ! -e "/proc/$conmon" ]
    is "$(ls "/proc/$HOLDER/root/run/netns" 2>/dev/null | sort)" "$before"
    rm -f "$(log_of "$id")"
}

@test "a warden that is killed takes its container along, and podman sees it end" {
    id=$(sleeper "$NAME")
    warden=$(jq .warden.pid "/proc/$HOLDER/root/run/pinfold/$id/state.json")
    is "$(readlink -f "/proc/$warden/exe")" "$PINFOLD"
    kill -9 "$warden" # the guardian and the warden are one thread group each: this is the one that the state names
    for try in $(seq 50); do
        [ "$(of "$NAME" '{{.State.Status}}')" != running ] || { sleep 0.1; continue; }
        break
    done
    is "$(of "$NAME" '{{.State.Status}} {{.State.ExitCode}}')" "exited 137"
}

# -- the network --------------------------------------------------------------------------------------------------

@test "every kind of network starts: none, bridge, --userns auto, --uidmap" {
    run podman run --rm --network none "$IMAGE" ip -o link
    ended 0 "lo:"
    lacks "$output" eth0
    run podman run --rm "$IMAGE" ip -o -4 address show dev eth0
    ended 0 "10.88."
    run podman run --rm --userns auto "$IMAGE" cat /proc/self/uid_map
    ended 0
    matches "$output" '^ +0 +2147483647 +[0-9]+$'
    run podman run --rm --uidmap 0:100000:65536 "$IMAGE" sh -c 'cat /proc/self/uid_map; ip -o -4 address show dev eth0'
    ended 0
    matches "$output" '^ +0 +100000 +65536'
    contains "$output" "10.88."
    run podman run --rm --network host "$IMAGE" true
    ended 126 "namespace.host.refused"
}

# What each kind of attempt does without the wall: without these, the next test could not fail.
@test "without the wall everything gets out of the bridge network" {
    FLAGS=policy=unconfined sleeper "$NAME" --network six --sysctl 'net.ipv4.ping_group_range=0 1000'
    sleep 2 # duplicate address detection
    forget_sent
    run podman exec "$NAME" reach tcp 10.89.9.1 9000
    ended 0 sent
    sleep 0.2
    is "$(arrived tcp)" 19 # "connection\n" of the listener, "escaped\n" of the container
    run podman exec "$NAME" reach udp 10.89.9.1 9000
    ended 0 sent
    is "$(arrived udp)" 8
    run podman exec "$NAME" reach tcp fd00:9::1 9000
    ended 0 sent
    sleep 0.2
    is "$(arrived tcp)" 38
    run podman exec "$NAME" reach udp fd00:9::1 9000
    ended 0 sent
    is "$(arrived udp)" 16
    forget_sent
    podman exec "$NAME" sh -c 'reach icmp 203.0.113.9 0; reach icmp fd00:9::1 0; reach udp 203.0.113.9 53; timeout 1 reach tcp 203.0.113.9 443' || :
    is "$(sent icmp)" 1
    is "$(sent icmp6)" 1
    more_than "$(sent udp)" 0
    more_than "$(sent tcp)" 0
}

@test "nothing gets out: default bridge" {
    sleeper "$NAME"
    walled "$NAME" 10.88.0.1
}
@test "nothing gets out: a bridge with IPv6" {
    sleeper "$NAME" --network six --sysctl 'net.ipv4.ping_group_range=0 1000'
    sleep 2
    walled "$NAME" 10.89.9.1 fd00:9::1
}
@test "nothing gets out: --userns auto" {
    sleeper "$NAME" --userns auto
    walled "$NAME" 10.88.0.1
}
@test "nothing gets out: --uidmap" {
    sleeper "$NAME" --uidmap 0:100000:65536 --network six
    sleep 2
    walled "$NAME" 10.89.9.1 fd00:9::1
}
@test "nothing gets out: network none" {
    sleeper "$NAME" --network none
    walled "$NAME" 10.88.0.1
}
@test "nothing gets out: --privileged and every capability" {
    sleeper "$NAME" --privileged --cap-add all
    walled "$NAME" 10.88.0.1
}
@test "nothing gets out: a container in the network of another, with a wall of the same policy" {
    sleeper "$NAME-a"
    sleeper "$NAME" --network "container:$NAME-a"
    walled "$NAME" 10.88.0.1
    podman rm -f -t 0 "$NAME" >/dev/null
    walled "$NAME-a" 10.88.0.1
    podman rm -f -t 0 "$NAME-a" >/dev/null
}
@test "nothing gets out: after podman connects another network to the running container" {
    sleeper "$NAME"
    podman network connect six "$NAME"
    sleep 2
    podman exec "$NAME" ip -o -4 address | grep -q 10.89.9.
    walled "$NAME" 10.89.9.1 fd00:9::1
}

@test "a published port is answered under the agent policy" {
    podman run -d --name "$NAME" -p 18080:8080 "$IMAGE" \
        sh -c 'mkdir /tmp/www && echo served >/tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www'
    for try in $(seq 20); do
        run inside python3 -c 'import urllib.request; print(urllib.request.urlopen("http://10.88.0.1:18080/", timeout=2).read().decode())'
        [ "$status" != 0 ] || break
        sleep 0.2
    done
    ended 0
    contains "$output" served
}

# -- records ------------------------------------------------------------------------------------------------------

@test "the record of a denied connect has process, container and run, and is valid OCSF" {
    id=$(sleeper "$NAME" --annotation dev.pinfold.run-id=run-of-"$NAME")
    run podman exec "$NAME" reach tcp 203.0.113.7 443
    ended 1 ECONNREFUSED
    record=$(records_of "$id" '.status_detail == "net.address.literal"')
    is "$(jq -r '.class_uid, .activity_id, .action, .dst_endpoint.ip, .dst_endpoint.port' <<<"$record" | paste -sd' ')" \
        "4001 5 Denied 203.0.113.7 443"
    is "$(jq -r '.actor.process | .name, .file.path, .cmd_line' <<<"$record")" $'reach\n/bin/reach\nreach tcp 203.0.113.7 443'
    jq -e '.actor.process.pid > 1' <<<"$record"
    is "$(jq -r .actor.process.container.uid <<<"$record")" "$id"
    is "$(jq -r .actor.process.container.name <<<"$record")" "$NAME"
    is "$(jq -r .metadata.correlation_uid <<<"$record")" "run-of-$NAME"
    is "$(jq -r .policy.name <<<"$record")" agent
    is "$(jq -r .unmapped.remedy <<<"$record")" 'network: {allowed_hosts: ["203.0.113.7:443"]}'
    podman rm -f -t 0 "$NAME" >/dev/null
    records_of "$id" '.status_detail == "container.ended"' >/dev/null
    is "$(stat -c '%a %U %G' "$(log_of "$id")")" "640 root adm"
    if [ -x "$CHECK_OCSF" ]; then
        run "$CHECK_OCSF" "$(log_of "$id")"
        ended 0 " 0 faults"
    fi
}

@test "the record of a container's end has its exit code" {
    podman run --name "$NAME" "$IMAGE" sh -c 'exit 3' || :
    id=$(of "$NAME" '{{.Id}}')
    record=$(records_of "$id" '.status_detail == "container.ended"')
    is "$(jq -r .message <<<"$record")" "The container ended with exit code 3."
}

# -- credentials and mounts ---------------------------------------------------------------------------------------

@test "a secret variable is absent inside and in exec, and both are recorded" {
    id=$(sleeper "$NAME" -e GITHUB_TOKEN=shibboleth -e HARMLESS=kept)
    run podman exec -e NPM_TOKEN=shibboleth "$NAME" env
    ended 0 HARMLESS=kept
    lacks "$output" shibboleth
    # from outside: a process of exec does not look into the container's own
    environment=$(tr '\0' '\n' <"/proc/$(of "$NAME" '{{.State.Pid}}')/environ")
    contains "$environment" HARMLESS=kept
    lacks "$environment" shibboleth
    lacks "$output" _TOKEN
    records_of "$id" '.status_detail == "credential.env.removed" and .resources[0].name == "GITHUB_TOKEN" and (.unmapped.exec_id | not)'
    records_of "$id" '.status_detail == "credential.env.removed" and .resources[0].name == "NPM_TOKEN" and .unmapped.exec_id'
    lacks "$(cat "$(log_of "$id")")" shibboleth
}

# The manifest's annotations of an image are the container's: podman hands them on.
@test "annotations of an image that ask for more get nothing, and that is recorded; those that ask for less count" {
    mkdir -p "$HOUSE/tmp/annotated"
    echo "FROM $IMAGE" >"$HOUSE/tmp/annotated/Containerfile"
    podman build -q --annotation dev.pinfold.policy=unconfined --annotation 'dev.pinfold.filesystem.writable=["/etc", "/tmp"]' \
        --annotation 'dev.pinfold.credentials.environment=["*"]' --annotation dev.pinfold.network.mode=open \
        --annotation 'dev.pinfold.processes.capabilities=["CAP_SYS_ADMIN", "CAP_KILL"]' --annotation dev.pinfold.limits.pids=77 \
        --annotation dev.pinfold.on_denied_action=log_only -t localhost/annotated:1 "$HOUSE/tmp/annotated" >/dev/null
    # they do reach the runtime
    FLAGS=policy=unconfined run podman run --rm --name "$NAME" localhost/annotated:1 sh -c 'touch /etc/x && echo wrote'
    ended 0 wrote
    run podman run --name "$NAME" --network bridge --pids-limit 500 -e GITHUB_TOKEN=shibboleth localhost/annotated:1 sh -c 'touch /etc/x && echo wrote
        reach tcp 10.88.0.1 9000; echo "token $GITHUB_TOKEN"; grep CapEff /proc/self/status; echo x >/tmp/x && echo scratch'
    lacks "$output" wrote
    lacks "$output" shibboleth
    contains "$output" ECONNREFUSED
    contains "$output" $'CapEff:\t0000000000000020'
    contains "$output" scratch
    id=$(of "$NAME" '{{.Id}}')
    for each in policy filesystem.writable credentials.environment network.mode processes.capabilities on_denied_action; do
        record=$(records_of "$id" '.status_detail == "policy.annotation.ignored" and (.message | contains("dev.pinfold.'"$each"'"))')
        is "$(jq -r .action_id <<<"$record" | sort -u)" 2
    done
    lacks "$(records_of "$id" '.status_detail == "policy.annotation.ignored"')" limits.pids
    is "$(records_of "$id" '.status_detail == "policy.applied"' | jq -r .policy.name)" agent
}

@test "a control socket is refused with a message that podman shows" {
    inside python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("/run/docker.sock")' || :
    run podman run --rm -v /run/docker.sock:/var/run/docker.sock "$IMAGE" true
    ended 126 "mount.socket.refused"
    contains "$output" "/run/docker.sock"
    mkdir -p "$HOUSE/home/.ssh"
    run podman run --rm -v "$HOUSE/home/.ssh:/root/.ssh" "$IMAGE" true
    ended 126 "mount.credential.refused"
    run podman run --rm -v /:/host "$IMAGE" true
    ended 126 "mount.host_path.refused"
    # nothing of the refused ones is left
    is "$(inside find /run/pinfold -mindepth 1 -maxdepth 1 | wc -l)" "$(podman ps -q | wc -l)"
}

@test "a workspace of uid 1000 can be written by root in the container and by uid 1000" {
    mkdir -p "$HOUSE/work"
    chown 1000:1000 "$HOUSE/work"
    run podman run --rm -v "$HOUSE/work:/workspace" -w /workspace "$IMAGE" sh -c 'echo root >by-root && mkdir made && cat by-root'
    ended 0 root
    run podman run --rm -v "$HOUSE/work:/workspace" -w /workspace -u 1000 "$IMAGE" sh -c 'echo user >by-user && cat by-user'
    ended 0 user
    is "$(stat -c %u "$HOUSE/work/by-root" "$HOUSE/work/by-user" | paste -sd' ')" "0 1000"
    run podman run --rm -v "$HOUSE/work:/workspace:ro" "$IMAGE" touch /workspace/x
    ended 1 "Read-only file system"
}

@test "what is scratch can be written, what is the image's cannot" {
    run podman run --rm "$IMAGE" sh -c 'touch /tmp/x /var/tmp/x /run/x /root/x && echo scratch; touch /etc/x /bin/x /x'
    contains "$output" scratch
    is "$(grep -c 'Read-only file system' <<<"$output")" 3
    run podman run --rm -u 1000 "$IMAGE" sh -c 'cd && touch x && pwd'
    ended 0 /home/user
}

@test "--privileged stays hardened, with a record" {
    id=$(sleeper "$NAME" --privileged)
    run podman exec "$NAME" sh -c 'grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status'
    is "$output" $'CapEff:\t00000000800004fb\nNoNewPrivs:\t1\nSeccomp:\t2'
    run podman exec "$NAME" mount -t tmpfs none /tmp
    ended 1
    run podman exec "$NAME" sh -c 'ls /dev | sort | paste -sd" "'
    is "$output" "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero"
    run podman exec "$NAME" sh -c 'echo 1 >/proc/sys/vm/drop_caches; echo x >/proc/sysrq-trigger'
    ended 1
    lacks "$(podman exec "$NAME" grep ' /sys ' /proc/mounts)" " rw,"
    records_of "$id" '.status_detail == "capability.dropped"'
    records_of "$id" '.status_detail == "device.removed"'
}

@test "podman's own options still work under the agent policy: --init, --read-only, --tmpfs, --hostname, healthcheck" {
    run podman run --rm --init "$IMAGE" sh -c 'cat /proc/1/comm'
    ended 0
    run podman run --rm --read-only --tmpfs /mnt:size=1m -h shed "$IMAGE" sh -c 'hostname; touch /mnt/x && grep -c " /mnt tmpfs" /proc/mounts'
    ended 0
    is "$output" $'shed\n1'
    podman run -d --name "$NAME" --health-cmd 'test -e /etc/passwd' --health-interval disable "$IMAGE" sleep 100
    run podman healthcheck run "$NAME"
    ended 0
}

@test "a pod: its containers share network and names, behind one wall" {
    podman pod create --name "$NAME-pod" --share ipc,uts,net --infra-image "$IMAGE" --infra-command 'sleep 1000'
    run podman run --rm --pod "$NAME-pod" "$IMAGE" sh -c 'hostname; reach tcp 203.0.113.9 80'
    ended 1 ECONNREFUSED
    contains "$output" "$NAME-pod"
    run podman pod rm -f -t 0 "$NAME-pod"
    ended 0
}

# -- conmon -------------------------------------------------------------------------------------------------------

@test "the warden and its guardian hold nothing that conmon waits for" {
    id=$(sleeper "$NAME" -i)
    conmon=$(of "$NAME" '{{.State.ConmonPid}}')
    pipes=$(for fd in "/proc/$conmon/fd"/*; do readlink "$fd"; done | grep '^pipe:' | sort -u)
    [ -n "$pipes" ]
    processes=0
    for process in /proc/[0-9]*; do
        [ "$(readlink -f "$process/exe" 2>/dev/null)" = "$PINFOLD" ] || continue
        processes=$((processes + 1))
        for fd in "$process/fd"/*; do
            target=$(readlink "$fd")
            case $target in
            socket:* | anon_inode:\[pidfd\] | pidfd:* | "anon_inode:seccomp notify" | anon_inode:\[fanotify\] | anon_inode:\[eventpoll\] | /dev/null) ;;
            "/memfd:pinfold-plan (deleted)" | /var/log/pinfold | /var/log/pinfold/*.jsonl | /inside/denials.jsonl) ;;
            *) echo "$(cat "$process/comm") holds $target" >&2; return 1 ;;
            esac
            lacks "$pipes" "$target"
        done
    done
    more_than "$processes" 1
}

@test "conmon ends at most 200 ms later than with crun after the container's end (median of 5)" {
    command -v crun >/dev/null || skip "crun is not installed"
    RUNTIME=$(command -v crun) run podman run --rm "$IMAGE" true
    [ "$status" = 0 ] || skip "crun cannot run here: $output"
    life() { # RUNTIME NUMBER
        local name=$NAME-$2 pids
        RUNTIME=$1 podman run -d --name "$name" "$IMAGE" sleep 1000 >/dev/null
        pids=$(RUNTIME=$1 of "$name" '{{.State.Pid}} {{.State.ConmonPid}}')
        "$ENGINES/conmon-life.py" $pids
        RUNTIME=$1 podman rm -f -t 0 "$name" >/dev/null
    }
    for round in 1 2 3 4 5; do
        life "$PINFOLD" "p$round" >>"$BATS_TEST_TMPDIR/pinfold"
        life "$(command -v crun)" "c$round" >>"$BATS_TEST_TMPDIR/crun"
    done
    pinfold=$(sort -n "$BATS_TEST_TMPDIR/pinfold" | sed -n 3p)
    crun=$(sort -n "$BATS_TEST_TMPDIR/crun" | sed -n 3p)
    echo "# conmon after init's end: pinfold $pinfold ms, crun $crun ms (median of 5)" >&3
    more_than "$((crun + 201))" "$pinfold"
}

# -- policy=unconfined --------------------------------------------------------------------------------------------

@test "podman build runs with policy=unconfined" {
    mkdir -p "$HOUSE/context"
    printf 'FROM %s\nRUN echo built >/made && chown 1000 /workspace\nUSER 1000\nRUN id -un >/workspace/who\n' "$IMAGE" >"$HOUSE/context/Containerfile"
    printf '#!/bin/sh\nexec "%s" --policy unconfined "$@"\n' "$PINFOLD" >"$HOUSE/pinfold-unconfined"
    chmod 755 "$HOUSE/pinfold-unconfined"
    RUNTIME=$HOUSE/pinfold-unconfined run podman build --runtime "$HOUSE/pinfold-unconfined" --network none --pull=never -t localhost/built:1 "$HOUSE/context"
    ended 0
    run podman run --rm localhost/built:1 cat /made /workspace/who
    is "$output" $'built\nuser'
}

@test "policy=unconfined is a plain runtime: writable root, --privileged, host network, pid and ipc" {
    export FLAGS=policy=unconfined
    run podman run --rm "$IMAGE" sh -c 'touch /x && echo written'
    is "$output" written
    run podman run --rm --privileged "$IMAGE" sh -c 'mkdir /m && mount -t tmpfs none /m && echo mounted'
    is "$output" mounted
    run podman run --rm --network host "$IMAGE" ip -o link show podman0
    ended 0 podman0
    run podman run --rm --pid host --ipc host "$IMAGE" sh -c '[ $$ != 1 ] && echo shared'
    is "$output" shared
    run podman run --rm -e GITHUB_TOKEN=x "$IMAGE" sh -c 'echo "$GITHUB_TOKEN"'
    is "$output" x
}

# -- contrib/ -----------------------------------------------------------------------------------------------------

@test "contrib/containers/pinfold.conf: podman --runtime NAME runs pinfold, and a link's name is the policy, after a new start too" {
    mkdir -p "$HOUSE/etc/containers/containers.conf.d" "$HOUSE/links"
    ln -sf "$PINFOLD" "$HOUSE/links/pinfold"
    ln -sf "$PINFOLD" "$HOUSE/links/pinfold-unconfined"
    sed "s|/usr/local/bin/|$HOUSE/links/|" "$PINFOLD_TESTS/../contrib/containers/pinfold.conf" >"$HOUSE/etc/containers/containers.conf.d/pinfold.conf"
    cp "$HOUSE/etc/containers.conf" "$HOUSE/etc/containers/containers.conf"
    # Where CONTAINERS_CONF is set, drop-ins are not read.
    by_drop_in() {
        local words
        podman_words
        inside env -u CONTAINERS_CONF timeout -k 5 "${LIMIT:-60}" "${words[@]}" "$@"
    }
    RUNTIME=pinfold run by_drop_in run --rm "$IMAGE" touch /usr/x
    ended 1 "Read-only file system"
    lacks "$output" pinfold-npm # nothing is said about links that are not there
    RUNTIME=pinfold-unconfined by_drop_in create --name "$NAME" "$IMAGE" touch /usr/x
    for round in 1 2; do # the second time by podman's word for it alone
        RUNTIME=pinfold run by_drop_in start -a "$NAME"
        ended 0
    done
    RUNTIME=pinfold run by_drop_in run --rm --cgroups disabled "$IMAGE" true
    ended 0
    RUNTIME=pinfold-npm run by_drop_in run --rm "$IMAGE" true
    ended 125 '"pinfold-npm" not found'
    RUNTIME=pinfold by_drop_in rm -f -t 0 "$NAME"
    rm -r "$HOUSE/etc/containers/containers.conf.d" "$HOUSE/etc/containers/containers.conf"
}
