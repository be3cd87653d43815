#!/usr/bin/env bats
# What is peculiar to cgroup v2. Each test sees nothing but a cgroup2 whose "/" is a cgroup of its own, on a machine of
# any layout; controllers of limits may be missing there, the freezer and device programs are not.
load helpers

setup() {
    setup_container
    unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    [ -n "$unified" ] || skip "no cgroup2 is mounted"
    top=$unified$(sed -n 's/^0:://p' /proc/self/cgroup)
    top=${top%/}/v2-$BATS_TEST_NUMBER-$RANDOM # without the ID: that would be taken for a container's
    mkdir "$top"
    mount --bind "$top" /sys/fs/cgroup
    grep -q " tun$" /proc/misc || skip "the tests' device is missing: c 10:200, tun" # opening it asks for no capability
    configure '.linux.resources = {}'
}
teardown() {
    local left=0
    teardown_container || left=1
    if [ -n "${top-}" ]; then
        umount /sys/fs/cgroup
        find "$top" -depth -type d -exec rmdir {} + || left=1
    fi
    return $left
}

# The container's directory.
directory() {
    echo "/sys/fs/cgroup/pinfold/$ID"
}

# bats test_tags=devices
@test "v2: device rules are in force, as a program of the container's cgroup" {
    configure '.linux.devices = [{path: "/dev/tun2", type: "c", major: 10, minor: 200, fileMode: 438}]'
    script_is 'echo x > /dev/null && echo null; : <>/dev/tun2 && echo tun'
    run pf_run
    is "$output" "null
tun" # without rules it works
    configure '.linux.resources.devices = [{allow: false, access: "rwm"}]'
    run pf_run
    contains "$output" null
    contains "$output" "Operation not permitted"
    configure '.linux.resources.devices += [{allow: true, type: "c", major: 10, minor: 200, access: "r"}]'
    run pf_run
    contains "$output" "Operation not permitted" # it was opened for both
    configure '.linux.resources.devices += [{allow: true, type: "c", major: 10, minor: 200, access: "w"}]'
    run pf_run
    is "$output" "null
tun"
}

# bats test_tags=devices
@test "v2: the agent policy gives only the standard devices" {
    configure '.linux.resources.devices = [{allow: true, access: "rwm"}]'
    command_is sleep 1000
    POLICY='' pf_create
    pf start "$ID"
    mkdir "$WORK/dev" && mount -t tmpfs -o mode=755 tmpfs "$WORK/dev" # /tmp is often nodev
    mknod "$WORK/dev/tun" c 10 200
    sh -c ": <>$WORK/dev/tun" # outside of its cgroup it opens
    run sh -c "echo \$\$ >$(directory)/cgroup.procs && : <>/dev/null && echo null && : <>$WORK/dev/tun"
    contains "$output" null
    contains "$output" "Operation not permitted"
    pf delete --force "$ID"
    POLICY=unconfined pf_create
    run sh -c "echo \$\$ >$(directory)/cgroup.procs && : <>$WORK/dev/tun && echo tun"
    umount "$WORK/dev"
    is "$output" tun # what was asked for, without the policy
}

@test "v2: an update without devices leaves the device rules alone" {
    configure '.linux.resources.devices = [{allow: false, access: "rwm"}]
      | .linux.devices = [{path: "/dev/tun2", type: "c", major: 10, minor: 200, fileMode: 438}]'
    start_sleeper
    echo '{"unified": {"cgroup.max.depth": "7"}}' | pf update --resources - "$ID"
    is "$(cat "$(directory)/cgroup.max.depth")" 7
    run pf exec "$ID" sh -c ': <>/dev/tun2'
    contains "$output" "Operation not permitted"
    echo '{"devices": [{"allow": true, "access": "rwm"}]}' | pf update --resources - "$ID"
    run pf exec "$ID" sh -c ': <>/dev/tun2'
    ended 0
    is "$output" ""
}

@test "v2: limits of v1 alone are one clear error" {
    configure '.linux.resources = {network: {classID: 7}}'
    run pf_run
    ended 1 "linux.resources.network.classID needs the net_cls controller of cgroup v1"
    configure '.linux.resources = {network: {priorities: [{name: "eth0", priority: 1}]}}'
    run pf_run
    ended 1 "linux.resources.network.priorities needs the net_prio controller of cgroup v1"
    [ ! -d "$(directory)" ]
}

@test "v2: unified takes one line a write" {
    configure '.linux.resources.unified = {"cgroup.max.depth": "9\n5\n"}'
    start_sleeper
    is "$(cat "$(directory)/cgroup.max.depth")" 5
}

@test "crun #1208: create under a threaded parent" {
    mkdir /sys/fs/cgroup/threads
    echo threaded >/sys/fs/cgroup/threads/cgroup.type
    configure --arg path "/threads/$ID" '.linux.cgroupsPath = $path'
    start_sleeper
    contains "$(cat "/proc/$(state_of .pid)/cgroup")" "/threads/$ID"
    is "$(cat "/sys/fs/cgroup/threads/$ID/cgroup.type")" threaded
    pf delete --force "$ID"
    # its parent is "domain threaded": below it, beside the threads, each level needs it
    is "$(cat /sys/fs/cgroup/cgroup.type)" "domain threaded"
    configure --arg path "/beside/inner/$ID" '.linux.cgroupsPath = $path'
    start_sleeper
    contains "$(cat "/proc/$(state_of .pid)/cgroup")" "/beside/inner/$ID"
    is "$(cat "/sys/fs/cgroup/beside/inner/$ID/cgroup.type")" threaded
}

@test "runc #5101: exec in a container that has moved its processes into cgroups of its own" {
    grep -qw hugetlb /sys/fs/cgroup/cgroup.controllers || skip "no controller to make its cgroup an inner one"
    start_sleeper
    mkdir "$(directory)/inner"
    state_of .pid >"$(directory)/inner/cgroup.procs"
    echo +hugetlb >"$(directory)/cgroup.subtree_control"
    run sh -c "echo \$\$ >$(directory)/cgroup.procs"
    [ "$status" != 0 ] # EBUSY: that is what exec meets
    run pf exec "$ID" true
    ended 0
    pf exec --detach "$ID" sleep 2000
    is "$(wc -l <"$(directory)/inner/cgroup.procs")" 2
    pf delete --force "$ID"
    [ ! -d "$(directory)" ]
}

@test "v2: a paused container is killed, and its cgroup goes" {
    start_sleeper
    is "$(cat "$(directory)/cgroup.type")" domain # nothing is made threaded where that is not needed
    pf pause "$ID"
    is "$(state_of .status) $(cat "$(directory)/cgroup.freeze")" "paused 1"
    pf kill "$ID" KILL
    wait_status stopped
    pf delete "$ID"
    [ ! -d "$(directory)" ]
}

@test "v2: events --stats has what this cgroup knows" {
    start_sleeper
    run pf events --stats "$ID"
    ended 0
    is "$(jq '.data.cpu.usage.total > 0' <<<"$output")" true
    if grep -qw hugetlb "$(directory)/cgroup.controllers"; then
        is "$(jq -c '.data.hugetlb | keys' <<<"$output")" '["2MB"]'
    fi
}

@test "v2: a user's container with a cgroup namespace sees its own cgroup, and without one none" {
    setpriv --reuid 47110 --regid 47110 --clear-groups unshare -Ur true 2>/dev/null || skip "this machine lets ordinary users make no user namespace"
    # what systemd would give to the user
    mkdir /sys/fs/cgroup/session
    chown 47110:47110 /sys/fs/cgroup /sys/fs/cgroup/{cgroup.procs,cgroup.subtree_control,session} /sys/fs/cgroup/session/cgroup.procs
    chmod 755 "$WORK" "$BATS_RUN_TMPDIR"
    cp "$PINFOLD" "$WORK/pinfold"
    mkdir "$WORK/state" && chown -R 47110:47110 "$WORK/state" "$BUNDLE"
    as_user() {
        run sh -c 'echo $$ >/sys/fs/cgroup/session/cgroup.procs && exec "$@"' sh setpriv --reuid 47110 --regid 47110 --clear-groups \
            env -i PATH="$PATH" timeout 20 "$WORK/pinfold" --root "$WORK/state" --policy unconfined run --bundle "$BUNDLE" "$ID" </dev/null 3>&-
    }
    configure '.linux.namespaces += [{type: "user"}, {type: "cgroup"}] | .linux.namespaces |= unique_by(.type)
        | .linux.uidMappings = [{containerID: 0, hostID: 47110, size: 1}] | .linux.gidMappings = .linux.uidMappings
        | .mounts |= map(select(.destination != "/sys/fs/cgroup")) + [{destination: "/sys/fs/cgroup", type: "cgroup2", source: "cgroup", options: ["ro", "nosuid", "noexec", "nodev"]}]'
    script_is 'cd /sys/fs/cgroup; cat /proc/self/cgroup; cat cgroup.procs; find . -mindepth 1 -type d; mkdir x; grep " /sys/fs/cgroup " /proc/self/mountinfo | cut -d" " -f4,5,6'
    as_user
    contains "$output" "0::/"$'\n'
    contains "$output" $'\n1\n'
    contains "$output" "Read-only file system"
    contains "$output" "/ /sys/fs/cgroup ro,nosuid,nodev,noexec"
    lacks "$output" session
    configure '.mounts |= map(if .destination == "/sys/fs/cgroup" then .options -= ["ro"] else . end)'
    script_is 'mkdir /sys/fs/cgroup/below && rmdir /sys/fs/cgroup/below && echo made'
    as_user
    is "$output" made
    configure '.linux.namespaces |= map(select(.type != "cgroup"))'
    script_is 'ls -A /sys/fs/cgroup; echo "status $?"'
    as_user
    is "$output" "status 0"
}
