#!/usr/bin/env bats
# What the suites of other runtimes and of the specification found (docs/conformance.md).

load helpers
setup() { setup_container; }
teardown() {
    local frozen=/sys/fs/cgroup/freezer/$ID-frozen
    if [ -d "$frozen" ]; then
        echo THAWED >"$frozen/freezer.state"
        rmdir "$frozen" || :
    fi
    teardown_container
}

@test "delete --force ends an init that somebody else has moved into a frozen cgroup, and leaves that cgroup frozen" {
    local frozen=/sys/fs/cgroup/freezer/$ID-frozen
    [ -e /sys/fs/cgroup/freezer/tasks ] || skip "no freezer of cgroup v1"
    mkdir "$frozen"
    start_sleeper
    local init
    init=$(state_of .pid)
    echo "$init" >"$frozen/cgroup.procs"
    echo FROZEN >"$frozen/freezer.state"
    kill -9 "$init"
    sleep 0.3
    [ -d "/proc/$init" ] # the trap works: SIGKILL alone does not end it
    pf delete --force "$ID"
    process_ended "$init"
    [ "$(cat "$frozen/freezer.state")" = FROZEN ]
    rmdir "$frozen"
}

@test "delete --force ends although nobody reaps what an exec has left in the container's process-id namespace" {
    start_sleeper
    local init parent
    init=$(state_of .pid)
    # a caller that lives on, and never waits for its grandchild
    python3 - "$PINFOLD" "$STATE" "$ID" <<'END' 3>&- &
import ctypes, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
subprocess.run([sys.argv[1], "--root", sys.argv[2], "exec", "--detach", sys.argv[3], "sleep", "1000"])
time.sleep(1000)
END
    parent=$!
    for _ in $(seq 100); do
        [ "$(pgrep -c -P "$parent" -x sleep)" = 0 ] || break
        sleep 0.1
    done
    [ "$(pgrep -c -P "$parent" -x sleep)" = 1 ]
    LIMIT=8 pf delete --force "$ID"
    [ -d "/proc/$init" ] # it is held by the kernel
    [ ! -e "/sys/fs/cgroup/pids/pinfold/$ID" ]
    kill "$parent"
    wait "$parent" || :
}

@test "sysctl kernel.domainname that differs from domainname is an error, the same one is not" {
    configure '.domainname = "one.test" | .linux.sysctl = {"kernel.domainname": "two.test"}'
    run pf_run
    ended 1 'linux.sysctl["kernel.domainname"]: says other than the member domainname'
    configure '.linux.sysctl = {"kernel.domainname": "one.test"}'
    command_is cat /proc/sys/kernel/domainname
    run pf_run
    ended 0
    is "$output" one.test
}

@test "a container without a mount namespace of its own is in its caller's, has its root, and leaves no mount there" {
    local before own
    before=$(cat /proc/self/mountinfo)
    own=$(readlink /proc/self/ns/mnt)
    configure '.linux.namespaces |= map(select(.type != "mount"))
      | .mounts += [{destination: "/scratch", type: "tmpfs", source: "tmpfs", options: ["ro", "size=64k"]}]'
    start_sleeper
    is "$(readlink "/proc/$(state_of .pid)/ns/mnt")" "$own"
    is "$(cat /proc/self/mountinfo)" "$before"
    run pf exec "$ID" sh -c 'readlink /proc/self/ns/mnt; ls /; ls /..; wc -c </proc/keys; cat /proc/1/comm; ls /proc/acpi /sys/firmware'
    ended 0 "$own"
    contains "$output" work
    lacks "$output" boot # the machine's root is nowhere
    matches "$output" $'\n0\nsleep'
    run pf exec "$ID" sh -c 'cd /; cd ../../..; [ -d work ] && echo here
        echo x >/proc/sys/kernel/core_pattern; echo x >/scratch/file'
    contains "$output" "core_pattern: Read-only"
    contains "$output" "/scratch/file: Read-only"
    contains "$output" here
    run pf exec "$ID" sh -c 'echo text >/dev/shm/file && cat /dev/shm/file && echo end >/dev/null'
    ended 0 text
    pf delete --force "$ID"
    is "$(cat /proc/self/mountinfo)" "$before"
    configure '.root.readonly = true'
    script_is 'echo x >/file || echo "no: $?"'
    run pf_run
    ended 0 "no: "
}

@test "no mount namespace: what is not the runtime's to return to is refused, and a sandbox has its own" {
    local before
    before=$(cat /proc/self/mountinfo)
    configure '.linux.namespaces |= map(select(.type != "mount")) + [{"type": "mount", "path": "/proc/self/ns/mnt"}]'
    run pf_run
    ended 1 "that is not the caller's own"
    configure '.linux.namespaces |= map(select(.type != "mount"))'
    command_is readlink /proc/self/ns/mnt
    POLICY=agent run pf_run
    ended 0 "mnt:"
    lacks "$output" "$(readlink /proc/self/ns/mnt)"
    user_namespace
    run pf_run
    ended 1 'linux.namespaces: needs an entry of type "mount" beside one of type "user"'
    is "$(cat /proc/self/mountinfo)" "$before"
}

@test "no mount namespace and no other: delete ends the container's processes and no others" {
    sleep 1000 3>&- &
    local other=$!
    configure '.linux.namespaces = [] | del(.hostname) | .linux.maskedPaths = []'
    script_is 'sleep 1000 & exec sleep 1000'
    pf_create
    pf start "$ID"
    run pf ps --format json "$ID"
    ended 0
    lacks "$output" "$other"
    pf delete --force "$ID"
    kill -0 "$other"
    kill "$other"
}

@test "a createContainer hook finds the bundle as its working directory" {
    configure --arg out "$BUNDLE/out" '.hooks.createContainer = [{path: "/bin/sh",
        args: ["sh", "-c", "cat >\($out) && echo >>\($out) && pwd >>\($out) && cmp config.json \($out).config &&
                            touch rootfs/home/here && mount --bind source rootfs/home/here"], env: ["PATH=/bin:/usr/bin"]}]'
    script_is 'cat /home/here; ls -A /sys/firmware'
    cp "$BUNDLE/config.json" "$BUNDLE/out.config"
    echo bound >"$BUNDLE/source"
    run pf_run
    ended 0
    is "$output" bound # and masked paths are still empty
    is "$(jq -r '.status, .bundle' <(head -1 "$BUNDLE/out") | xargs)" "created $(realpath "$BUNDLE")"
    is "$(tail -1 "$BUNDLE/out")" "$(realpath "$BUNDLE")"
}

@test "a user namespace without mappings has the caller as its root and nobody else" {
    configure '.linux.namespaces += [{"type": "user"}]'
    script_is 'xargs </proc/self/uid_map; xargs </proc/self/gid_map; id -u'
    run pf_run
    ended 0
    is "$output" "$(printf '0 %s 1\n0 %s 1\n0' "$(id -u)" "$(id -g)")"
    configure '.linux.uidMappings = [{"containerID": 0, "hostID": 0, "size": 1}]'
    run pf_run
    ended 1 "linux.gidMappings: a new user namespace needs mappings"
}

@test "a pipe of the standard streams is the container user's and group's; /dev/null stays root's" {
    configure '.process.user = {"uid": 1000, "gid": 1001}'
    command_is stat -L -c '%u:%g %F' /dev/stdin /dev/stdout
    is "$(pf_run | xargs)" "0:0 character special file 1000:1001 fifo"
    is "$(stat -c %u:%g /dev/null)" 0:0
}

@test "exec --cgroup joins a sub-cgroup of the container, by controller or wherever it is, and none outside" {
    local path=/sys/fs/cgroup/memory place
    [ -e "$path/tasks" ] || skip "no memory controller of cgroup v1"
    start_sleeper
    path+=$(sed -n 's/^[0-9]*:memory://p' "/proc/$(state_of .pid)/cgroup")
    mkdir "$path/one" "$path/one/two"
    configure '.linux.namespaces |= map(select(.type != "cgroup"))'
    for place in one memory:one /one/two; do
        run pf exec --cgroup "$place" "$ID" grep :memory: /proc/self/cgroup
        ended 0
        matches "$output" "/${place##*[:]}\$" || matches "$output" "$place\$"
    done
    for place in .. ./../x one/.. one/../../x memory:one/..; do
        run pf exec --cgroup "$place" "$ID" true
        ended 255 "${place#memory:} is not a sub cgroup path: \`..\` components are not allowed"
    done
    run pf exec --cgroup absent "$ID" true
    ended 255 "/absent/cgroup.procs: no such file or directory"
    run pf exec --cgroup pids:one "$ID" true
    ended 255 "/one/cgroup.procs: no such file or directory"
    run pf exec --cgroup none:one "$ID" true
    ended 255 "exec --cgroup: unknown controller none"
}

@test "--no-pivot: a user namespace in the container cannot mount a procfs or sysfs without the masks" {
    script_is 'unshare -Urmpf sh -c "mount -t proc none /mnt-proc; mount -t sysfs none /mnt-proc" 2>&1; grep -c . /proc/self/mounts'
    mkdir "$ROOT/mnt-proc"
    configure '.process.capabilities |= map_values(. + ["CAP_SYS_ADMIN", "CAP_SETFCAP"] | unique)'
    run pf_run --no-pivot
    ended 0
    contains "$output" "mount: permission denied"
    is "$(grep -c 'permission denied' <<<"$output")" 2
}

@test "a startContainer hook is confined as the program is: user, capabilities, filter" {
    mkdir -m 777 "$ROOT/hook"
    configure '.process.user = {uid: 1000, gid: 1000} |
        .linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_KILL_PROCESS"}]} |
        .hooks.startContainer = [{path: "/bin/sh", args: ["sh", "-c", "grep -E \"^(Uid|CapEff|CapBnd|Seccomp):\" /proc/self/status >/hook/hook"]}]'
    script_is 'grep -E "^(Uid|CapEff|CapBnd|Seccomp):" /proc/self/status >/hook/program'
    local nnp
    for nnp in true false; do
        configure --argjson nnp "$nnp" '.process.noNewPrivileges = $nnp'
        run pf_run
        ended 0
        contains "$(cat "$ROOT/hook/hook")" "$(printf 'Uid:\t1000\t1000\t1000\t1000')"
        contains "$(cat "$ROOT/hook/hook")" "$(printf 'Seccomp:\t2')"
        is "$(cat "$ROOT/hook/hook")" "$(cat "$ROOT/hook/program")"
        rm "$ROOT"/hook/*
    done
    configure '.hooks.startContainer[0].args = ["sh", "-c", "mkdir /hook/made"]'
    run pf_run
    ended 1 "hooks.startContainer[0]: /bin/sh"
    [ ! -e "$ROOT/hook/made" ]
    [ ! -e "$ROOT/hook/program" ]
}

@test "a file mounted on a symlink to nothing is mounted on its target, in the root" {
    echo nameserver >"$WORK/resolv.conf"
    ln -s ../run/resolve/stub.conf "$ROOT/etc/resolv.conf"
    ln -s "$WORK/outside" "$ROOT/etc/absolute"
    ln -s loop "$ROOT/etc/loop"
    configure --arg source "$WORK/resolv.conf" '.mounts += [("resolv.conf", "absolute") |
        {destination: "/etc/\(.)", type: "bind", source: $source, options: ["bind", "ro"]}]'
    command_is cat /run/resolve/stub.conf /etc/resolv.conf /etc/absolute
    run pf_run
    ended 0
    is "$output" "$(printf 'nameserver\nnameserver\nnameserver')"
    [ ! -e "$WORK/outside" ]
    [ -f "$ROOT/run/resolve/stub.conf" ]
    configure '.mounts[-1].destination = "/etc/loop"'
    run pf_run
    ended 1 "/etc/loop in the container's root"
}

@test "runc #3248: a /dev that is read-only has its devices and the mounts inside" {
    configure '(.mounts[] | select(.destination == "/dev") | .options) += ["ro"]'
    script_is 'grep " /dev " /proc/mounts | cut -d" " -f3,4 | cut -d, -f1; touch /dev/file 2>&1; echo x >/dev/null && ls -d /dev/pts /dev/shm /dev/tty'
    run pf_run
    ended 0
    is "$output" "$(printf 'tmpfs ro\ntouch: /dev/file: Read-only file system\n/dev/pts\n/dev/shm\n/dev/tty')"
}

@test "options may follow the container's id, and what follows -- is none" {
    command_is sleep 1000
    pf create "$ID" --bundle "$BUNDLE" --pid-file "$WORK/pid" >"$WORK/stdout" 2>"$WORK/stderr" </dev/null
    is "$(cat "$WORK/pid")" "$(state_of .pid)"
    pf start "$ID"
    pf update "$ID" --cpu-share 512
    run pf delete -- "$ID" --force
    ended 1 '"delete" requires exactly 1 argument'
    pf delete "$ID" --force
    run pf state "$ID"
    ended 1
}
