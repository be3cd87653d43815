#!/usr/bin/env bats
# When something has run out: one clear error, nothing left behind (the teardown looks), and the same ID works when there is
# room again. SIGKILL at every step of create: leftovers.bats.
load helpers

setup() { setup_container; }
teardown() {
    local mount
    for mount in "$WORK/small" "$STATE"; do
        ! mountpoint -q "$mount" 2>/dev/null || umount "$mount"
    done
    teardown_container
}

# The last command failed with one line on standard error, and the container is not there.
one_error() { # PART
    ended 1 "$1"
    is "${#lines[@]}" 1
    run pf state "$ID"
    ended 1 "does not exist"
}

@test "a memory limit that is too small for init" {
    configure '.linux.resources.memory = {limit: 8192}'
    command_is true
    run pf create --bundle "$BUNDLE" "$ID"
    if [ "$status" = 0 ]; then
        skip "no memory limit holds here, or init fits into 8 KiB"
    fi
    [ "$status" = 1 ]
    contains "$output" memory
    is "${#lines[@]}" 1
    configure '.linux.resources.memory = {limit: 67108864}'
    run pf_run
    ended 0
}

@test "agent: the same" {
    POLICY=agent
    configure '.linux.resources.memory = {limit: 8192}'
    run pf create --bundle "$BUNDLE" "$ID"
    [ "$status" != 0 ] || skip "no memory limit holds here"
    contains "$output" memory
    is "${#lines[@]}" 1
}

@test "no space in the state directory: for the directory itself, and for the files in it" {
    mkdir "$STATE"
    for inodes in 1 2 3 4; do
        mount -t tmpfs -o "nr_inodes=$inodes,size=64k" none "$STATE"
        run pf create --bundle "$BUNDLE" "$ID"
        ended 1 "No space left on device"
        is "${#lines[@]}" 1
        is "$(find "$STATE" -mindepth 1)" ""
        umount "$STATE"
    done
    mount -t tmpfs -o size=8k none "$STATE"
    run pf create --bundle "$BUNDLE" "$ID"
    ended 1 "No space left on device"
    is "$(find "$STATE" -mindepth 1)" ""
    umount "$STATE"
    run pf_run
    ended 0
}

@test "a disk that is full when exec starts does not matter, and start says so when it cannot write its state" {
    mkdir "$STATE"
    mount -t tmpfs -o size=256k none "$STATE"
    command_is sleep 1000
    pf_create
    dd if=/dev/zero of="$STATE/filler" bs=4k 2>/dev/null || :
    run pf start "$ID"
    [ "$status" = 1 ]
    contains "$output" "No space left on device"
    is "${#lines[@]}" 1
    rm "$STATE/filler"
    pf delete --force "$ID"
}

@test "a full disk under the root file system: what has to be made there is named" {
    mkdir "$WORK/small"
    mount -t tmpfs -o size=64m,nr_inodes=2000 none "$WORK/small"
    cp -a "$ROOT" "$WORK/small/rootfs"
    # not a directory more fits
    (cd "$WORK/small" && seq -f filler%.0f 2000 | xargs mkdir 2>/dev/null) || :
    configure --arg path "$WORK/small/rootfs" '.root.path = $path | .process.cwd = "/not/there/yet"'
    run pf create --bundle "$BUNDLE" "$ID"
    ended 1 "No space left on device"
    is "${#lines[@]}" 1
    run pf state "$ID"
    ended 1 "does not exist"
}

@test "EMFILE: too low a limit is said before anything is made" {
    for policy in unconfined agent; do
        for number in 5 20 63; do
            run bash -c 'exec 3>&-; ulimit -n "$0"; exec timeout 20 "$@"' "$number" "$PINFOLD" --root "$STATE" --policy "$policy" run --bundle "$BUNDLE" "$ID" </dev/null
            one_error "Too many open files"
        done
    done
}

@test "EMFILE: descriptors that are used up by others: one error, and nothing is left after delete --force" {
    configure '.process.rlimits = []'
    # of 64: those that the test runner leaves open are closed first, or the numbers would say another thing for each runner
    for free in 4 7 10 13 16 19 27 39; do
        run timeout 20 python3 -c '
import os, resource, sys
os.closerange(3, 1024)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
for i in range(64 - 3 - int(sys.argv[1])):
    os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
os.execv(sys.argv[2], sys.argv[2:])' "$free" "$PINFOLD" --root "$STATE" --policy agent run --bundle "$BUNDLE" "$ID" </dev/null
        # where it is the warden that has too few, its end is what create sees
        [ "$status" = 0 ] || matches "$output" 'Too many open files|warden'
        pf delete --force "$ID"
    done
}

@test "a bundle that cannot be read: no directory, no file, a directory in place of the file, a loop of links" {
    touch "$WORK/file"
    run pf create --bundle "$WORK/file" "$ID"
    one_error "$WORK/file"
    mkdir -p "$WORK/b1/config.json" "$WORK/b2"
    run pf create --bundle "$WORK/b1" "$ID"
    one_error config.json
    ln -s config.json "$WORK/b2/config.json"
    run pf create --bundle "$WORK/b2" "$ID"
    one_error config.json
    : >"$WORK/b1.json"
    run pf create --bundle "$BUNDLE" --config "$WORK/b1.json" "$ID"
    one_error b1.json
}

@test "a bundle that its owner may not read" {
    id nobody >/dev/null || skip "no user nobody"
    chmod 755 "$WORK" "$BATS_RUN_TMPDIR"
    chmod 700 "$BUNDLE"
    mkdir -m 777 "$WORK/run"
    run setpriv --reuid nobody --regid nogroup --clear-groups env XDG_RUNTIME_DIR="$WORK/run" "$PINFOLD" --root "$WORK/run/p" --policy unconfined create --bundle "$BUNDLE" "$ID"
    [ "$status" != 0 ]
    is "${#lines[@]}" 1
    lacks "$output" "ermission denied"
}

@test "a config.json of 10 MB works, one beyond 16 MiB says so, and one that is nested too deep" {
    python3 -c '
import json, sys
path = sys.argv[1]
config = json.load(open(path))
config["annotations"] = {"k%d" % i: "v" * 1000 for i in range(10000)}
json.dump(config, open(path, "w"))' "$BUNDLE/config.json"
    command_is echo fine
    run pf_run
    ended 0 fine
    python3 -c '
import json, sys
path = sys.argv[1]
config = json.load(open(path))
config["annotations"]["more"] = "v" * 8000000
json.dump(config, open(path, "w"))' "$BUNDLE/config.json"
    run pf create --bundle "$BUNDLE" "$ID"
    one_error "larger than"
    python3 -c 'print("{\"ociVersion\":\"1.2.0\",\"x\":" + "[" * 100000 + "]" * 100000 + "}")' >"$BUNDLE/config.json"
    run pf create --bundle "$BUNDLE" "$ID"
    one_error "config.json"
}
