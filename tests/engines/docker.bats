#!/usr/bin/env bats
# pinfold as Docker's runtime: dockerd runs in the house with contrib/docker/daemon.json. The agent policy where a test
# does not say RUNTIME=pinfold-unconfined.

load engine.bash
load docker.bash

bats_require_minimum_version 1.5.0

setup_file() {
    engine_begin dockerd docker containerd script jq nft python3 iptables
    dockerd_begin
    listen
    listen 53 resolver
    # the bridges are there as long as one container is on them
    docker network create --subnet 10.89.7.0/24 --gateway 10.89.7.1 field >/dev/null
    RUNTIME=pinfold-unconfined sleeper keep >/dev/null
    RUNTIME=pinfold-unconfined sleeper keep-field --network field >/dev/null
    watch_bridges
}

teardown_file() {
    engine_end
}

setup() {
    NAME=t$BATS_TEST_NUMBER
}

# Nothing of the container is left after `rm -f`.
teardown() {
    local id
    id=$(of "$NAME" '{{.Id}}' 2>/dev/null) || return 0
    docker rm -f "$NAME" >/dev/null
    nothing_left_of "$id"
}

exec_in() { # NAME COMMAND...
    docker exec "$@"
}

docker_on_terminal() {
    inside script -qec "stty rows 33 cols 77; $(printf '%q ' timeout --foreground -k 5 60 docker -H "unix://$HOUSE/docker.sock" "$@")" \
        /dev/null </dev/null
}
cgroup_of() { # LONG-ID CONTROLLER FILE: what is in it
    cat "/proc/$HOLDER/root/sys/fs/cgroup/$2/docker/$1/$3"
}

@test "docker info knows the runtimes of contrib/docker/daemon.json" {
    run docker info -f '{{range $name, $runtime := .Runtimes}}{{$name}} {{end}}'
    contains " $output" " pinfold "
    contains " $output" " pinfold-unconfined "
}

# -- exit codes and streams ---------------------------------------------------------------------------------------

@test "exit codes of the command arrive: 0, 3, 137 by a signal" {
    run docker_run --rm "$IMAGE" true
    ended 0
    run docker_run --rm "$IMAGE" sh -c 'exit 3'
    ended 3
    run docker_run --rm --init "$IMAGE" sh -c 'kill -9 $$'
    ended 137
}

@test "127: no such command, 126: not to be executed, 125: refused by the engine or by policy" {
    for RUNTIME in pinfold pinfold-unconfined; do
        run -127 docker_run --rm "$IMAGE" /nonexistent
        ended 127 "no such file or directory"
        run -127 docker_run --rm "$IMAGE" no-such-command
        ended 127 "executable file not found in \$PATH"
        run docker_run --rm "$IMAGE" /etc/passwd
        ended 126 "permission denied"
    done
    run docker_run --rm --nosuchoption "$IMAGE" true
    ended 125
    RUNTIME=pinfold run docker_run --rm -v /:/host "$IMAGE" true
    ended 125 mount.host_path.refused
    is "$(docker ps -aq --filter status=created)" ""
}

@test "standard streams: input arrives, output and errors stay apart" {
    run docker_run --rm -i "$IMAGE" sh -c 'read word; echo "got $word"; echo wrong >&2' <<<pinfold
    ended 0 "got pinfold"
    is "$(docker_run --rm "$IMAGE" sh -c 'echo right; echo wrong >&2' 2>/dev/null)" right
}

@test "-it gives a terminal of the size of docker's" {
    run docker_on_terminal run --runtime pinfold --rm -it "$IMAGE" sh -c 'tty; sleep 1; stty size; test -t 0 && test -t 2 && echo both; exit 4'
    ended 4 /dev/pts/0
    contains "$output" "33 77"
    contains "$output" both
}

# -- exec ---------------------------------------------------------------------------------------------------------

@test "exec: output, user, exit codes, a missing command, a terminal" {
    sleeper "$NAME"
    is "$(docker exec "$NAME" echo from inside)" "from inside"
    is "$(docker exec -u user "$NAME" sh -c 'id -u; id -gn')" $'1000\nuser'
    is "$(docker exec -w /tmp -e COLOUR=red "$NAME" sh -c 'echo $COLOUR; pwd')" $'red\n/tmp'
    is "$(docker exec -i "$NAME" cat <<<"through cat")" "through cat"
    run docker exec "$NAME" sh -c 'exit 5'
    ended 5
    # docker exec has one code or the other for these, as its version is: it has the same one with runc
    RUNTIME=runc sleeper "$NAME-runc"
    for command in no-such-command /nonexistent /etc/passwd; do
        run docker exec "$NAME-runc" $command
        wanted=$status
        matches "$wanted" '^12[67]$'
        run docker exec "$NAME" $command
        ended "$wanted"
        matches "$output" 'executable file not found in \$PATH|no such file or directory|permission denied'
    done
    docker rm -f "$NAME-runc" >/dev/null
    run docker_on_terminal exec -it "$NAME" sh -c 'tty; exit 6'
    ended 6 /dev/pts/
}

@test "exec has the container's restrictions, --privileged or not" {
    sleeper "$NAME"
    container=$(docker exec "$NAME" sh -c 'grep -E "^(CapBnd|NoNewPrivs|Seccomp):" /proc/1/status')
    contains "$container" "CapBnd:	00000000800004fb"
    for extra in '' --privileged; do
        is "$(docker exec $extra "$NAME" sh -c 'grep -E "^(CapBnd|NoNewPrivs|Seccomp):" /proc/self/status')" "$container"
        run docker exec $extra "$NAME" touch /usr/x
        ended 1 "Read-only file system"
        run docker exec $extra "$NAME" mount -t tmpfs none /tmp
        ended 1
    done
}

# -- the life of a container --------------------------------------------------------------------------------------

@test "kill, logs, wait, start, restart, stop" {
    docker_run -d --name "$NAME" "$IMAGE" sh -c 'trap "echo caught; exit 9" USR1; echo begun; while :; do sleep 0.1; done'
    is "$(readlink "/proc/$(of "$NAME" '{{.State.Pid}}')/exe" | sed 's|.*/||')" sh
    for try in $(seq 50); do [ "$(docker logs "$NAME")" != begun ] || break; sleep 0.1; done
    docker kill -s USR1 "$NAME"
    is "$(docker wait "$NAME")" 9
    is "$(docker logs "$NAME")" $'begun\ncaught'
    docker start "$NAME"
    first=$(of "$NAME" '{{.State.Status}} {{.State.Pid}}')
    docker restart -t 0 "$NAME"
    second=$(of "$NAME" '{{.State.Status}} {{.State.Pid}}')
    matches "$first" '^running [1-9]'
    matches "$second" '^running [1-9]'
    [ "$first" != "$second" ]
    docker stop -t 1 "$NAME"
    is "$(of "$NAME" '{{.State.Status}} {{.State.ExitCode}}')" "exited 137"
}

@test "pause, unpause, top and stats" {
    docker_run -d --name "$NAME" -m 64m "$IMAGE" sh -c 'while :; do :; done'
    contains "$(docker top "$NAME")" "while :"
    docker pause "$NAME"
    is "$(of "$NAME" '{{.State.Status}}')" paused
    stands_still "$(of "$NAME" '{{.State.Pid}}')"
    docker unpause "$NAME"
    is "$(docker exec "$NAME" echo again)" again
    run docker stats --no-stream --format '{{.MemUsage}} {{.PIDs}}' "$NAME"
    matches "$output" '^[0-9.]+[KM]iB / 64MiB 1$'
}

@test "limits are what was asked for, and can be changed" {
    id=$(sleeper "$NAME" -m 64m --memory-reservation 32m --cpus 0.5 --cpu-shares 512 --cpuset-cpus 0 --pids-limit 50)
    is "$(cgroup_of "$id" memory memory.limit_in_bytes)" 67108864
    is "$(cgroup_of "$id" memory memory.soft_limit_in_bytes)" 33554432
    is "$(cgroup_of "$id" cpu cpu.cfs_quota_us)" 50000
    is "$(cgroup_of "$id" cpu cpu.shares)" 512
    is "$(cgroup_of "$id" cpuset cpuset.cpus)" 0
    is "$(cgroup_of "$id" pids pids.max)" 50
    docker update --memory 128m --memory-swap 128m --cpus 0.25 --pids-limit 60 "$NAME"
    is "$(cgroup_of "$id" memory memory.limit_in_bytes)" 134217728
    is "$(cgroup_of "$id" cpu cpu.cfs_quota_us)" 25000
    is "$(cgroup_of "$id" pids pids.max)" 60
    is "$(docker exec "$NAME" nproc)" 1
}

@test "more memory than the limit: 137, and docker knows that it was that" {
    run docker_run --name "$NAME" -m 32m --memory-swap 32m "$IMAGE" tail /dev/zero
    ended 137
    is "$(of "$NAME" '{{.State.OOMKilled}}')" true
}

@test "without a limit of its own, the agent policy's number of processes holds" {
    id=$(sleeper "$NAME")
    is "$(cgroup_of "$id" pids pids.max)" 1024
}

# -- options ------------------------------------------------------------------------------------------------------

@test "options of docker run under both policies" {
    mkdir -p "$HOUSE/work"
    for RUNTIME in pinfold pinfold-unconfined; do
        run docker_run --rm --init -h shed -u 1000:1000 -w /tmp --ulimit nofile=512:600 --read-only --tmpfs /mnt:size=1m \
            -v "$HOUSE/work:/workspace:ro" --sysctl net.ipv4.ip_forward=1 -e COLOUR=red "$IMAGE" sh -c '
            cat /proc/1/comm; hostname; id -u; pwd; ulimit -n; ulimit -Hn; touch /x /workspace/x 2>&1 | grep -c Read-only
            df -k /mnt | tail -1 | xargs echo | cut -d" " -f2; cat /proc/sys/net/ipv4/ip_forward; echo $COLOUR'
        ended 0
        is "$(xargs <<<"$output")" "docker-init shed 1000 /tmp 512 600 2 1024 1 red"
        run docker_run --rm -v "$HOUSE/work:/workspace" "$IMAGE" sh -c 'echo content >/workspace/made && cat /workspace/made'
        ended 0 content
    done
    is "$(cat "$HOUSE/work/made")" content
}

@test "a named volume is writable under the agent policy" {
    docker volume create "$NAME" >/dev/null
    run docker_run --rm -v "$NAME:/workspace" "$IMAGE" sh -c 'echo kept >/workspace/file'
    ended 0
    is "$(docker_run --rm -v "$NAME:/workspace" "$IMAGE" cat /workspace/file)" kept
    docker volume rm "$NAME"
}

@test "a health check is run and its result is seen" {
    docker_run -d --name "$NAME" --health-cmd 'test -e /etc/passwd' --health-interval 0.5s "$IMAGE" sleep 100
    for try in $(seq 50); do
        [ "$(of "$NAME" '{{.State.Health.Status}}')" != healthy ] || break
        sleep 0.2
    done
    is "$(of "$NAME" '{{.State.Health.Status}}')" healthy
}

@test "pinfold-unconfined is a plain runtime: writable root, devices, capabilities, host namespaces, secrets" {
    RUNTIME=pinfold-unconfined
    run docker_run --rm -e GITHUB_TOKEN=x --device /dev/null:/dev/spare:rw --cap-drop all --cap-add sys_admin "$IMAGE" sh -c '
        touch /x && echo written; ls -l /dev/spare | cut -c1; echo $GITHUB_TOKEN; grep CapEff: /proc/self/status'
    ended 0
    is "$(xargs <<<"$output")" "written c x CapEff: 0000000000200000"
    run docker_run --rm --network host --pid host --ipc host "$IMAGE" sh -c 'ip -o link show docker0 | wc -l; [ $$ != 1 ] && echo shared'
    is "$output" $'1\nshared'
}

@test "docker build with pinfold-unconfined as the default runtime; with the agent policy the root stays read-only" {
    mkdir -p "$HOUSE/context"
    printf 'FROM %s\nRUN echo built >/made && chown 1000 /workspace\nUSER 1000\nRUN id -un >/workspace/who\n' "$IMAGE" >"$HOUSE/context/Dockerfile"
    for RUNTIME in pinfold pinfold-unconfined; do
        jq --arg name "$RUNTIME" '. + {"default-runtime": $name}' "$HOUSE/etc/daemon.json" >"$HOUSE/etc/daemon.json.new"
        mv "$HOUSE/etc/daemon.json.new" "$HOUSE/etc/daemon.json"
        kill -HUP "$(cat "/proc/$HOLDER/root$HOUSE/docker.pid")"
        for try in $(seq 50); do
            [ "$(docker info -f '{{.DefaultRuntime}}')" != "$RUNTIME" ] || break
            sleep 0.1
        done
        run inside DOCKER_BUILDKIT=0 timeout 60 docker -H "unix://$HOUSE/docker.sock" build -q -t built:1 "$HOUSE/context"
        [ "$RUNTIME" = pinfold-unconfined ] || ended 1 "Read-only file system"
    done
    ended 0
    is "$(docker_run --rm built:1 cat /made /workspace/who)" $'built\nuser'
}

# -- the network --------------------------------------------------------------------------------------------------

@test "networks: none, the default bridge, one of the user's with its names, another container's, host refused" {
    run docker_run --rm --network none "$IMAGE" ip -o link
    ended 0 "lo:"
    lacks "$output" eth0
    run docker_run --rm "$IMAGE" ip -o -4 address show dev eth0
    ended 0 "172."
    run docker_run --rm --network field "$IMAGE" ip -o -4 address show dev eth0
    ended 0 "10.89.7."
    run docker_run --rm --network host "$IMAGE" true
    ended 125 "namespace.host.refused"
    RUNTIME=pinfold-unconfined
    docker_run -d --name "$NAME" --network field --ipc shareable "$IMAGE" sh -c 'mkdir /www; echo served >/www/index.html; exec httpd -f -p 80 -h /www'
    for try in $(seq 20); do
        run docker_run --rm --network field "$IMAGE" wget -qO- "http://$NAME/"
        [ "$status" != 0 ] || break
    done
    is "$output" served
    run docker_run --rm --network "container:$NAME" --pid "container:$NAME" --ipc "container:$NAME" "$IMAGE" sh -c 'ps | grep -c "[h]ttpd"; wget -qO- http://127.0.0.1/'
    is "$output" $'1\nserved'
}

@test "a published port is answered under the agent policy" {
    docker_run -d --name "$NAME" -p 18080:8080 "$IMAGE" \
        sh -c 'mkdir /tmp/www && echo served >/tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www'
    for try in $(seq 20); do
        run inside python3 -c 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:18080/", timeout=2).read().decode())'
        [ "$status" != 0 ] || break
        sleep 0.2
    done
    ended 0 served
}

# Without this one, the next tests could not fail.
@test "without the wall everything gets out, names through Docker's own resolver too" {
    RUNTIME=pinfold-unconfined sleeper "$NAME" --network field --dns 10.89.7.1
    forget_sent
    rm -f "$HOUSE/resolver/udp"
    run docker exec "$NAME" reach tcp 10.89.7.1 9000
    ended 0 sent
    run docker exec "$NAME" reach udp 10.89.7.1 9000
    ended 0 sent
    docker exec "$NAME" timeout 3 nslookup secret.example.org >/dev/null 2>&1 || :
    is "$(arrived tcp)" 19
    is "$(arrived udp)" 8
    contains "$(tr -c '[:print:]' . <"$HOUSE/resolver/udp")" "secret.example"
    more_than "$(sent udp)" 0
    more_than "$(sent tcp)" 0
}

@test "nothing gets out: the default bridge" {
    sleeper "$NAME"
    walled "$NAME" "$(of "$NAME" '{{.NetworkSettings.Gateway}}')"
}

@test "nothing gets out: a network of the user's, not even as a name through Docker's own resolver" {
    sleeper "$NAME" --network field --dns 10.89.7.1 --cap-add all
    rm -f "$HOUSE/resolver/udp" "$HOUSE/resolver/tcp"
    docker exec "$NAME" timeout 3 nslookup secret.example.org >/dev/null 2>&1 || :
    docker exec "$NAME" timeout 3 nslookup secret.example.org 127.0.0.11 >/dev/null 2>&1 || :
    docker exec "$NAME" reach udp 127.0.0.11 53 || :
    sleep 0.3
    is "$(cat "$HOUSE/resolver/udp" "$HOUSE/resolver/tcp" 2>/dev/null | wc -c)" 0
    walled "$NAME" 10.89.7.1
}

@test "nothing gets out: --privileged, and after docker connects another network to the running container" {
    sleeper "$NAME" --privileged
    docker network connect field "$NAME"
    contains "$(docker exec "$NAME" ip -o -4 address)" " 10.89.7."
    walled "$NAME" 10.89.7.1
}

# -- the sandbox --------------------------------------------------------------------------------------------------

@test "secrets, control sockets, --privileged: as with podman, with records" {
    id=$(sleeper "$NAME" --privileged -e GITHUB_TOKEN=shibboleth -e HARMLESS=kept)
    run docker exec -e NPM_TOKEN=shibboleth "$NAME" env
    ended 0 HARMLESS=kept
    lacks "$output" shibboleth
    # from outside: a process of exec does not look into the container's own
    environment=$(tr '\0' '\n' <"/proc/$(of "$NAME" '{{.State.Pid}}')/environ")
    contains "$environment" HARMLESS=kept
    lacks "$environment" shibboleth
    is "$(docker exec "$NAME" grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status)" $'CapEff:\t00000000800004fb\nNoNewPrivs:\t1\nSeccomp:\t2'
    is "$(docker exec "$NAME" sh -c 'ls /dev | sort | paste -sd" "')" "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero"
    run docker exec "$NAME" reach tcp 203.0.113.7 443
    ended 1 ECONNREFUSED
    records_of "$id" '.status_detail == "credential.env.removed" and .resources[0].name == "GITHUB_TOKEN"' >/dev/null
    records_of "$id" '.status_detail == "capability.dropped"' >/dev/null
    record=$(records_of "$id" '.status_detail == "net.address.literal"')
    is "$(jq -r '.actor.process.container.uid, .dst_endpoint.ip, .actor.process.cmd_line' <<<"$record" | paste -sd' ')" \
        "$id 203.0.113.7 reach tcp 203.0.113.7 443"
    lacks "$(cat "$(log_of "$id")")" shibboleth
    run docker_run --rm -v "$HOUSE/docker.sock:/var/run/docker.sock" "$IMAGE" true
    ended 125 "mount.socket.refused"
}
