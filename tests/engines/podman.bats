#!/usr/bin/env bats
# podman with pinfold as its runtime: as an agent sandbox (the default) and as a plain runtime.
#
# The file makes its own storage and an image of busybox, and runs in namespaces of its own, so that networks, storage and
# containers of the machine's podman are neither seen nor touched.
load ../bats/helpers

setup_file() {
    export SKIP=''
    [ "$(id -u)" = 0 ] || SKIP="needs root"
    [ -n "${PINFOLD_TEST_PRIVATE-}" ] || SKIP="needs namespaces of its own: run it through tests/run"
    command -v podman >/dev/null || SKIP="podman is not installed"
    command -v conmon >/dev/null || SKIP="conmon is not installed"
    [ -z "$SKIP" ] || return 0
    export STORE=$BATS_FILE_TMPDIR
    export CONTAINERS_CONF=$STORE/containers.conf
    # no limit that this machine's root may not raise, no event logger that needs a journal
    printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n' >"$CONTAINERS_CONF"
    mount --make-rshared /
    make_root "$STORE/root"
    tar -C "$STORE/root" -cf "$STORE/image.tar" .
    podman_bare import -q -c 'CMD ["/bin/sh"]' -c 'ENV PATH=/bin:/sbin:/usr/bin:/usr/sbin' "$STORE/image.tar" localhost/bb:1 >/dev/null || SKIP="podman cannot import an image here"
    # a network namespace of the test's: netavark adds bridges and rules to it, and not to the machine's
    unshare -n sleep 1000 >/dev/null 2>&1 3>&- &
    export OUTER=$!
    wait_for bash -c "[ \"\$(readlink /proc/$OUTER/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]"
    nsenter -n -t "$OUTER" ip link set lo up
}
teardown_file() {
    [ -z "$SKIP" ] || return 0
    podman_bare rm -fa -t 0 >/dev/null 2>&1 || :
    kill "$OUTER" 2>/dev/null || :
}
podman_bare() {
    podman --root "$STORE/storage" --runroot "$STORE/run" --cgroup-manager cgroupfs --runtime "$PINFOLD" "$@" 3>&-
}
# podman with this runtime; FLAGS are for the runtime, as `policy=unconfined`.
pod() {
    local flag flags=()
    for flag in $FLAGS; do flags+=(--runtime-flag "$flag"); done
    timeout -k 5 60 nsenter -n -t "$OUTER" podman --root "$STORE/storage" --runroot "$STORE/run" --cgroup-manager cgroupfs \
        --runtime "$PINFOLD" "${flags[@]}" "$@" 3>&-
}
setup() {
    [ -z "$SKIP" ] || skip "$SKIP"
    WORK=$(mktemp -d "$BATS_RUN_TMPDIR/p.XXXXXX")
    NAME=p$$-$BATS_TEST_NUMBER-$RANDOM
    I=localhost/bb:1
    FLAGS=''
}
teardown() {
    [ -z "$SKIP" ] || return 0
    pod rm -f -t 0 "$NAME" >/dev/null 2>&1 || :
    rm -rf "$WORK"
}
# The record of the container called $NAME.
records_of() { # JQ-FILTER
    local id
    id=$(pod inspect -f '{{.Id}}' "$NAME")
    jq -c "select($1)" "$LOGS/$id.jsonl"
}

@test "run: output and exit codes 0, 3, 127, 126" {
    is "$(pod run --rm --network none "$I" echo hi)" hi
    run pod run --rm --network none "$I" sh -c 'exit 3'
    ended 3
    run pod run --rm --network none "$I" /nonexistent
    ended 127
    run pod run --rm --network none "$I" nosuch
    ended 127
    run pod run --rm --network none "$I" /etc/passwd
    ended 126
}

@test "the same as a plain runtime" {
    FLAGS=policy=unconfined
    is "$(pod run --rm --network none "$I" echo hi)" hi
    run pod run --rm --network none "$I" sh -c 'exit 3'
    ended 3
    run pod run --rm --network none "$I" /nonexistent
    ended 127
    run pod run --rm --network none "$I" /etc/passwd
    ended 126
}

@test "-i: standard input" {
    is "$(echo abc | pod run --rm -i --network none "$I" cat)" abc
}

@test "-it under a terminal" {
    run script -qec "nsenter -n -t $OUTER podman --root $STORE/storage --runroot $STORE/run --cgroup-manager cgroupfs --runtime $PINFOLD run --rm -it --network none $I tty" /dev/null
    contains "$output" /dev/pts
}

@test "a refusal is what podman shows" {
    run pod run --name "$NAME" --network none -v /root:/data "$I" true
    [ "$status" != 0 ]
    contains "$output" mount.host_path.refused
}

@test "the sandbox: root read-only, scratch, secrets gone, denials recorded with the container's name and image" {
    run pod run --name "$NAME" --network none -e GITHUB_TOKEN=fake "$I" sh -c 'env; touch /usr/x; echo fine > /tmp/x; cat /tmp/x'
    lacks "$output" fake
    contains "$output" "Read-only file system"
    contains "$output" fine
    [ -n "$(records_of '.status_detail == "fs.write.read_only"')" ]
    is "$(records_of '.status_detail == "credential.env.removed"' | jq -r '.actor.process.container.name' | head -n 1)" "$NAME"
}

@test "-v: writable by root and by a user" {
    mkdir "$WORK/data" && chmod 777 "$WORK/data"
    pod run --rm --network none -v "$WORK/data:/data" "$I" sh -c 'echo root > /data/root'
    pod run --rm --network none -u 1000:1000 -v "$WORK/data:/data" "$I" sh -c 'echo user > /data/user'
    is "$(cat "$WORK/data/root") $(cat "$WORK/data/user") $(stat -c %u "$WORK/data/user")" "root user 1000"
}

@test "-w, -u, -h, --tmpfs, --read-only, --init, --cap-drop" {
    is "$(pod run --rm --network none -w /tmp "$I" pwd)" /tmp
    is "$(pod run --rm --network none -u 65534 "$I" id -u)" 65534
    is "$(pod run --rm --network none -h foo "$I" hostname)" foo
    pod run --rm --network none --tmpfs /mnt:size=1m "$I" grep -q ' /mnt tmpfs' /proc/mounts
    pod run --rm --network none --read-only "$I" sh -c '! touch /x'
    is "$(pod run --rm --network none --cap-drop all "$I" grep CapEff /proc/self/status | cut -f2)" 0000000000000000
}

@test "detached: exec, exit codes of exec, top, stop, start, kill, logs, inspect, wait" {
    pod run -d --name "$NAME" --network none "$I" sh -c 'trap "exit 0" TERM; echo logline; while :; do sleep 0.1; done' >/dev/null
    is "$(pod exec "$NAME" echo e)" e
    run pod exec "$NAME" sh -c 'exit 5'
    ended 5
    run pod exec "$NAME" /nonexistent
    ended 127
    is "$(pod exec -u 65534 "$NAME" id -u)" 65534
    contains "$(pod top "$NAME" args)" sleep
    is "$(pod inspect -f '{{.State.Status}} {{.OCIRuntime}}' "$NAME")" "running $PINFOLD"
    contains "$(pod logs "$NAME")" logline
    pod stop -t 5 "$NAME" >/dev/null
    is "$(pod inspect -f '{{.State.Status}} {{.State.ExitCode}}' "$NAME")" "exited 0"
    pod start "$NAME" >/dev/null
    pod kill "$NAME" >/dev/null
    is "$(pod wait "$NAME")" 137
}

@test "exec -it under a terminal" {
    pod run -d --name "$NAME" --network none "$I" sleep 100 >/dev/null
    run script -qec "podman --root $STORE/storage --runroot $STORE/run --cgroup-manager cgroupfs --runtime $PINFOLD exec -it $NAME tty" /dev/null
    contains "$output" /dev/pts
}

@test "exec --privileged stays in the sandbox" {
    pod run -d --name "$NAME" --network none "$I" sleep 100 >/dev/null
    run pod exec --privileged "$NAME" mount -t tmpfs none /tmp
    [ "$status" != 0 ]
}

@test "pause, unpause, update" {
    pod run -d --name "$NAME" --network none "$I" sleep 100 >/dev/null
    pod pause "$NAME" >/dev/null
    is "$(pod inspect -f '{{.State.Status}}' "$NAME")" paused
    pod unpause "$NAME" >/dev/null
    pod exec "$NAME" true
}

@test "network none: no way out" {
    run pod run --name "$NAME" --network none "$I" nc -w 2 1.2.3.4 443
    [ "$status" != 0 ]
    [ -n "$(records_of '.status_detail == "net.address.literal"')" ]
}

# A listener at the bridge's own address, as everything that a container can reach first; and an address beyond it.
listen() { # FILE
    nsenter -n -t "$OUTER" sh -c 'ip addr add 203.0.113.7/32 dev lo 2>/dev/null; exec timeout 30 busybox nc -l -p 443 203.0.113.7' </dev/null >"$1" 2>/dev/null 3>&- &
    LISTENER=$!
    wait_for bash -c "nsenter -n -t $OUTER ss -ltn | grep -q 203.0.113.7:443"
}

@test "network bridge: the control: as a plain runtime the listener is reached" {
    FLAGS=policy=unconfined
    listen "$WORK/got"
    pod run --rm --network bridge "$I" sh -c 'echo reached | nc -w 3 203.0.113.7 443' || skip "this podman makes no bridge network here"
    wait_for grep -q reached "$WORK/got"
}

@test "network bridge: not a byte gets out" {
    listen "$WORK/got"
    run pod run --name "$NAME" --network bridge "$I" sh -c 'echo secret | nc -w 3 203.0.113.7 443; ping -c 1 -W 1 203.0.113.7; exit 7'
    is "$status" 7
    is "$(cat "$WORK/got")" ""
    lacks "$output" "bytes from"
    [ -n "$(records_of '.status_detail == "net.address.literal"')" ]
    kill "$LISTENER" 2>/dev/null || :
}

@test "network bridge with a user namespace (podman adds the interface after create)" {
    listen "$WORK/got"
    run pod run --name "$NAME" --network bridge --uidmap 0:100000:65536 "$I" sh -c 'echo secret | nc -w 3 203.0.113.7 443; exit 7'
    is "$status" 7
    is "$(cat "$WORK/got")" ""
    kill "$LISTENER" 2>/dev/null || :
}

@test "network host is refused" {
    run pod run --name "$NAME" --network host "$I" true
    [ "$status" != 0 ]
    contains "$output" namespace.host.refused
}

@test "a published port of a sandbox answers" {
    pod run -d --name "$NAME" -p 127.0.0.1:18080:8080 "$I" sh -c 'while :; do printf "HTTP/1.0 200 OK\r\n\r\nhey" | nc -l -p 8080; done' >/dev/null || skip "this podman publishes no port here"
    for try in 1 2 3 4 5 6 7 8 9 10; do
        got=$(nsenter -n -t "$OUTER" curl -s -m 2 http://127.0.0.1:18080/ || :)
        [ "$got" != hey ] || break
        sleep 0.3
    done
    is "$got" hey
}

@test "conmon ends at most 200 ms later than with crun" {
    # the time from the container's end to conmon's, median of five
    life() { # RUNTIME
        local try pid conmon start times=()
        for try in 1 2 3 4 5; do
            timeout 60 podman --root "$STORE/storage" --runroot "$STORE/run" --cgroup-manager cgroupfs --runtime "$1" run -d --name "$NAME-$try" --network none "$I" sleep 100 >/dev/null 3>&-
            pid=$(pod inspect -f '{{.State.Pid}}' "$NAME-$try")
            conmon=$(pod inspect -f '{{.State.ConmonPid}}' "$NAME-$try")
            start=$(date +%s%N)
            kill -9 "$pid"
            while [ -d "/proc/$conmon" ] && [ "$(cut -d' ' -f3 "/proc/$conmon/stat" 2>/dev/null)" != Z ]; do sleep 0.01; done
            times+=("$((($(date +%s%N) - start) / 1000000))")
            pod rm -f -t 0 "$NAME-$try" >/dev/null
        done
        printf '%s\n' "${times[@]}" | sort -n | sed -n 3p
    }
    other=runc
    ours=$(life "$PINFOLD")
    theirs=$(life "$(command -v $other)") || skip "no $other to compare with"
    [ -n "$theirs" ] || skip "no $other to compare with"
    echo "pinfold $ours ms, $other $theirs ms"
    [ "$ours" -le $((theirs + 200)) ]
}

@test "build: RUN in a container file" {
    printf 'FROM localhost/bb:1\nRUN echo built > /f\n' >"$WORK/Containerfile"
    mkdir "$WORK/empty"
    timeout 60 podman --root "$STORE/storage" --runroot "$STORE/run" --cgroup-manager cgroupfs build --runtime "$PINFOLD" --runtime-flag policy=unconfined --pull=never \
        --network none --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 -t localhost/built:1 -f "$WORK/Containerfile" "$WORK/empty" 3>&-
    is "$(FLAGS=policy=unconfined pod run --rm --network none localhost/built:1 cat /f)" built
    pod rmi -f localhost/built:1 >/dev/null
}
