#!/usr/bin/env bats
# podman with pinfold where systemd runs the machine and cgroup v2 is alone: as root and as a user (whoever runs this
# file), with both of podman's cgroup managers. Needs no namespaces of its own: the machine is the test's.

bats_require_minimum_version 1.5.0
# shellcheck source=../assertions.bash
. "$PINFOLD_TESTS/assertions.bash"

IMAGE=localhost/busybox:1

setup_file() {
    local root=$BATS_FILE_TMPDIR/root
    command -v podman >/dev/null || skip "podman is not installed"
    [ -d /run/systemd/system ] || skip "systemd does not run this machine"
    [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || skip "cgroup v2 is not alone on this machine"
    # podman limits the number of processes by itself
    if ! [[ " $(controllers) " == *" pids "* ]]; then
        printf '[containers]\npids_limit = 0\n' >"$BATS_FILE_TMPDIR/containers.conf"
        export CONTAINERS_CONF_OVERRIDE=$BATS_FILE_TMPDIR/containers.conf
    fi
    mkdir -p "$root"/{bin,etc,proc,sys,dev,tmp,run,work}
    cp "$(command -v busybox)" "$root/bin/"
    "$root/bin/busybox" --install "$root/bin" # one process: here they are expensive
    echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
    tar -C "$root" -c . | podman import -q -c 'ENV PATH=/bin' - $IMAGE
}
setup() {
    NAME=t$BATS_TEST_NUMBER
    FLAGS=policy=unconfined
}
teardown() {
    local MANAGER found
    for MANAGER in systemd cgroupfs; do
        with_pinfold rm --force --time 0 --all >/dev/null 2>&1 || :
        with_pinfold pod rm --force --time 0 --all >/dev/null 2>&1 || :
    done
    found=$(left_behind)
    [ -z "$found" ] || { echo "left behind: $found"; return 1; }
}

# -- helpers ------------------------------------------------------------------------------------------------------

controllers() { # what this user may use
    if [ "$(id -u)" = 0 ]; then
        cat /sys/fs/cgroup/cgroup.controllers
    else
        cat "/sys/fs/cgroup/user.slice/user-$(id -u).slice/user@$(id -u).service/cgroup.controllers"
    fi
}
needs() { # CONTROLLER...
    local controller
    for controller; do
        [[ " $(controllers) " == *" $controller "* ]] || skip "no $controller controller is $(id -un)'s here"
    done
}
# podman with the runtime, the cgroup manager MANAGER and the runtime's flags FLAGS.
with_pinfold() {
    local flags=() flag
    for flag in ${FLAGS-}; do flags+=(--runtime-flag "$flag"); done
    timeout -k 5 "${LIMIT:-120}" podman --runtime "$PINFOLD" --cgroup-manager "$MANAGER" "${flags[@]}" "$@" 3>&-
}
# A test's body for each of the managers; a user can limit a container by systemd alone.
each_manager() { # FUNCTION
    local MANAGER
    for MANAGER in ${MANAGERS:-systemd cgroupfs}; do
        echo "# with $MANAGER"
        "$1" || return 1
    done
}
system() { if [ "$(id -u)" = 0 ]; then systemctl "$@"; else systemctl --user "$@"; fi; }
scope_of() { # NAME: the unit
    echo "libpod-$(with_pinfold inspect -f '{{.Id}}' "$1").scope"
}
state_directory() { if [ "$(id -u)" = 0 ]; then echo /run/pinfold; else echo "$XDG_RUNTIME_DIR/pinfold"; fi; }
left_behind() {
    local try found
    for try in $(seq 30); do
        found=$(
            system list-units --all --plain --no-legend 'libpod-[0-9a-f]*.scope' 2>/dev/null
            find /sys/fs/cgroup -type d -name 'libpod-[0-9a-f]*' 2>/dev/null
            find "$(state_directory)" -mindepth 1 -maxdepth 1 2>/dev/null
        )
        [ -n "$found" ] || return 0
        sleep 0.2
    done
    printf '%s\n' "$found"
}

# -- tests --------------------------------------------------------------------------------------------------------

exit_codes() {
    run -0 with_pinfold run --rm $IMAGE true || return 1
    run -3 with_pinfold run --rm $IMAGE sh -c 'exit 3' || return 1
    run -127 with_pinfold run --rm $IMAGE /nonexistent
}
@test "podman: run, exit codes, a command that is not there" {
    each_manager exit_codes
}

agent_policy() {
    run -0 with_pinfold run --rm $IMAGE sh -c 'touch /x; echo "$?"; id -u' || return 1
    is "$(sort <<<"$output")" "0
1
touch: /x: Read-only file system"
}
@test "podman: the agent policy" {
    FLAGS=''
    each_manager agent_policy
}

lifecycle() {
    with_pinfold run -d --name "$NAME" $IMAGE sleep 1000 >/dev/null || return 1
    run -0 with_pinfold exec "$NAME" sh -c 'echo from exec' || return 1
    is "$output" "from exec" || return 1
    run -4 with_pinfold exec "$NAME" sh -c 'exit 4' || return 1
    with_pinfold pause "$NAME" >/dev/null || return 1
    is "$(with_pinfold inspect -f '{{.State.Status}}' "$NAME")" paused || return 1
    with_pinfold unpause "$NAME" >/dev/null || return 1
    run -0 with_pinfold top "$NAME" || return 1
    [[ $output == *sleep* ]] || return 1
    with_pinfold stop --time 1 "$NAME" >/dev/null || return 1
    with_pinfold start "$NAME" >/dev/null || return 1
    is "$(with_pinfold inspect -f '{{.State.Status}}' "$NAME")" running || return 1
    with_pinfold rm --force --time 0 "$NAME" >/dev/null
}
@test "podman: exec, pause, top, stop, start again, rm" {
    each_manager lifecycle
}

@test "podman: with systemd the container is a scope with podman's stop time-out" {
    MANAGER=systemd
    with_pinfold run -d --name "$NAME" --stop-timeout 7 $IMAGE sleep 1000
    local unit
    unit=$(scope_of "$NAME")
    is "$(system show -P ActiveState "$unit")" active
    is "$(system show -P TimeoutStopUSec "$unit")" 7s
    is "$(system show -P MemoryAccounting "$unit")" yes
    is "$(system show -P Delegate "$unit")" yes
    local pid
    pid=$(with_pinfold inspect -f '{{.State.Pid}}' "$NAME")
    is "$(basename "$(sed -n 's/^0:://p' "/proc/$pid/cgroup")")" "$unit"
}

limits() {
    run -0 with_pinfold run --rm --network none --memory 64m --memory-swap 96m --memory-reservation 32m --pids-limit 77 --cpus 0.5 \
        --cpu-shares 512 --cpuset-cpus 0 $IMAGE \
        sh -c 'cd /sys/fs/cgroup; cat memory.max memory.swap.max memory.low pids.max cpu.max cpu.weight cpuset.cpus' || return 1
    is "${output//$'\n'/ }" "67108864 33554432 33554432 77 50000 100000 59 0"
}
# bats test_tags=controllers
@test "podman: memory, swap, pids, cpu and cpuset limits are read back" {
    needs memory pids cpu cpuset
    each_manager limits
}

io_limits() {
    run -0 with_pinfold run --rm --network none --device-read-bps "$DISK:1048576" --device-write-iops "$DISK:100" $IMAGE \
        cat /sys/fs/cgroup/io.max || return 1
    is "$output" "$(stat -c '%Hr:%Lr' "$DISK") rbps=1048576 wbps=max riops=max wiops=100"
}
# bats test_tags=controllers
@test "podman: I/O limits are read back" {
    needs io
    DISK=$(find /dev -maxdepth 1 -name 'nvme?n1' | head -n 1)
    [ -n "$DISK" ] || skip "no disk to limit"
    each_manager io_limits
}

updated() {
    with_pinfold run -d --name "$NAME" --network none --memory 64m --pids-limit 50 $IMAGE sleep 1000 >/dev/null || return 1
    with_pinfold update --memory 96m --cpus 0.25 --pids-limit 60 "$NAME" >/dev/null || return 1
    run -0 with_pinfold exec "$NAME" sh -c 'cd /sys/fs/cgroup; cat memory.max cpu.max pids.max' || return 1
    is "${output//$'\n'/ }" "100663296 25000 100000 60" || return 1
    if [ "$MANAGER" = systemd ]; then
        is "$(system show -P MemoryMax "$(scope_of "$NAME")")" 100663296 || return 1
        is "$(system show -P TasksMax "$(scope_of "$NAME")")" 60 || return 1
        system daemon-reload
        run -0 with_pinfold exec "$NAME" sh -c 'cd /sys/fs/cgroup; cat memory.max cpu.max pids.max' || return 1
        is "${output//$'\n'/ }" "100663296 25000 100000 60" || return 1
    fi
    with_pinfold rm --force --time 0 "$NAME" >/dev/null
}
# bats test_tags=controllers
@test "podman: update changes the limits, and systemd keeps them" {
    needs memory pids cpu
    each_manager updated
}

out_of_memory() {
    run -137 with_pinfold run --name "$NAME" --network none --memory 24m --memory-swap 24m $IMAGE tail /dev/zero || return 1
    is "$(with_pinfold inspect -f '{{.State.OOMKilled}}' "$NAME")" true || return 1
    with_pinfold rm --force --time 0 "$NAME" >/dev/null
}
# bats test_tags=controllers
@test "podman: beyond its memory the container ends with 137 and OOMKilled" {
    needs memory
    each_manager out_of_memory
}

statistics() {
    with_pinfold run -d --name "$NAME" --network none $IMAGE sh -c 'while :; do :; done' >/dev/null || return 1
    sleep 1
    run -0 with_pinfold stats --no-stream --format '{{.MemUsageBytes}} {{.PIDS}} {{.CPU}}' "$NAME" || return 1
    # podman 5 gives the number of .CPU alone
    matches "$output" '^[1-9][0-9.]*[kKMG]?i?B .* 1 [0-9.]*[1-9][0-9.]*%?$' || return 1
    with_pinfold rm --force --time 0 "$NAME" >/dev/null
}
# bats test_tags=controllers
@test "cri-o #9536: statistics have values without a limit" {
    needs memory pids cpu
    each_manager statistics
}

pods() {
    with_pinfold pod create --name "$NAME-pod" --share net,ipc,uts >/dev/null || return 1
    with_pinfold run -d --pod "$NAME-pod" --name "$NAME-a" $IMAGE sleep 1000 >/dev/null || return 1
    with_pinfold run -d --pod "$NAME-pod" --name "$NAME-b" $IMAGE sleep 1000 >/dev/null || return 1
    is "$(with_pinfold exec "$NAME-a" readlink /proc/self/ns/net)" "$(with_pinfold exec "$NAME-b" readlink /proc/self/ns/net)" || return 1
    with_pinfold pod stop --time 0 "$NAME-pod" >/dev/null || return 1
    with_pinfold pod rm --force --time 0 "$NAME-pod" >/dev/null
}
@test "podman: a pod with two containers" {
    with_pause_image || skip "this podman can make no pause image without a registry"
    # with cgroupfs podman makes the pod's cgroup itself, and needs controllers for it
    [[ " $(controllers) " == *" pids "* ]] || MANAGERS=systemd
    each_manager pods
}
# podman builds its pause image from catatonit, which is on the machine.
with_pause_image() {
    [ -x /usr/libexec/podman/catatonit ] || [ -x /usr/bin/catatonit ]
}
