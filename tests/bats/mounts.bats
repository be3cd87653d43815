#!/usr/bin/env bats
# config.md "Mounts": options, order, propagation, sources and destinations.
load helpers

setup() {
    setup_container
    mkdir -p "$WORK/source/sub"
    echo content >"$WORK/source/file"
}
teardown() { teardown_container; }

# mount DESTINATION OPTION... : adds a bind of $WORK/source
bind() {
    local destination=$1
    shift
    configure --arg destination "$destination" --arg source "$WORK/source" '.mounts += [{destination: $destination, type: "bind", source: $source, options: $ARGS.positional}]' --args "$@"
}
configure() { # as in helpers, with --args behind the program
    local program=() rest=() word seen=
    for word; do
        if [ "$word" = --args ]; then seen=1; fi
        if [ -n "$seen" ]; then rest+=("$word"); else program+=("$word"); fi
    done
    local last=$((${#program[@]} - 1))
    local text=${program[$last]}
    unset "program[$last]"
    jq "${program[@]}" "$text" "$BUNDLE/config.json" "${rest[@]}" >"$BUNDLE/config.json.new" && mv "$BUNDLE/config.json.new" "$BUNDLE/config.json"
}
# The options (per mount and of the file system) that the container sees for a mount point.
options_of() { # PATH
    command_is awk -v path="$1" '$5 == path { print $6; found = 1 } END { exit !found }' /proc/self/mountinfo
    pf_run | tail -n 1
}

@test "bind: read-write by default, what is written is on the host" {
    bind /data rbind
    script_is 'cat /data/file; echo new > /data/made'
    is "$(pf_run)" content
    is "$(cat "$WORK/source/made")" new
}

@test "bind: ro, nosuid, nodev, noexec are in force" {
    bind /data rbind ro nosuid nodev noexec
    matches "$(options_of /data)" '^ro,.*nosuid,nodev,noexec'
    script_is 'touch /data/x'
    run pf_run
    ended 1 "Read-only file system"
}

@test "bind: rw, exec, suid and dev take back what the source has" {
    mount -t tmpfs tmpfs "$WORK/source/sub"
    mount -o remount,bind,ro,nosuid,nodev,noexec "$WORK/source/sub"
    configure --arg source "$WORK/source/sub" '.mounts += [{destination: "/data", type: "bind", source: $source, options: ["bind", "rw", "exec", "suid", "dev"]}]'
    found=$(options_of /data)
    umount "$WORK/source/sub"
    matches "$found" '^rw'
    lacks "$found" noexec
    lacks "$found" nosuid
}

@test "bind: rro makes the mounts below read-only too, ro does not" {
    mount -t tmpfs tmpfs "$WORK/source/sub"
    bind /data rbind rro
    script_is 'touch /data/sub/x && echo writable'
    run pf_run
    umount "$WORK/source/sub"
    ended 1 "Read-only file system"
}

@test "bind: a file, and with a recursive option" {
    configure --arg source "$WORK/source/file" '.mounts += [{destination: "/etc/one", type: "bind", source: $source, options: ["rbind", "rro"]}]'
    script_is 'cat /etc/one; echo x > /etc/one'
    run pf_run
    ended 1 content
    contains "$output" "Read-only"
}

@test "bind: a socket and a fifo" {
    mkfifo "$WORK/source/fifo"
    configure --arg source "$WORK/source/fifo" '.mounts += [{destination: "/run/fifo", type: "bind", source: $source, options: ["bind"]}]'
    command_is test -p /run/fifo
    run pf_run
    ended 0
}

@test "bind: a relative source is the bundle's" {
    mkdir "$BUNDLE/inside"
    echo here >"$BUNDLE/inside/file"
    configure '.mounts += [{destination: "/data", type: "bind", source: "inside", options: ["bind"]}]'
    command_is cat /data/file
    is "$(pf_run)" here
}

@test "bind: options and not the type make it one" {
    configure --arg source "$WORK/source" '.mounts += [{destination: "/data", type: "none", source: $source, options: ["bind"]}]'
    command_is cat /data/file
    is "$(pf_run)" content
    configure 'del(.mounts[-1].type)'
    is "$(pf_run)" content
}

@test "bind: an unknown option is an error that names it" {
    bind /data bind nosuchoption
    run pf_run
    ended 1 nosuchoption
}

@test "destinations: made when they are missing, doubled and trailing slashes do not matter" {
    bind "//made//for///it/" rbind
    command_is cat /made/for/it/file
    is "$(pf_run)" content
}

@test "destinations: '..' stays in the root" {
    bind "/a/../../../../data" rbind
    command_is cat /data/file
    is "$(pf_run)" content
}

@test "order: a later mount covers an earlier one, a mount below another is seen" {
    configure '.mounts += [{destination: "/data", type: "tmpfs", source: "tmpfs"}]'
    bind /data/inner rbind
    script_is 'cat /data/inner/file; grep -c " /data" /proc/self/mounts'
    is "$(pf_run | xargs)" "content 2"
}

@test "tmpfs: size and mode; the mode of the directory below when none is given" {
    mkdir -m 1777 "$ROOT/sticky"
    configure '.mounts += [{destination: "/sticky", type: "tmpfs", source: "tmpfs", options: ["size=64k"]},
      {destination: "/given", type: "tmpfs", source: "tmpfs", options: ["mode=0711", "size=64k"]}]'
    script_is 'stat -c %a /sticky /given; dd if=/dev/zero of=/given/x bs=1k count=100 2>/dev/null || echo full'
    is "$(pf_run | xargs)" "1777 711 full"
}

@test "tmpfs: tmpcopyup brings the content, with modes and owners" {
    mkdir -p "$ROOT/lib/data/deep"
    echo kept >"$ROOT/lib/data/deep/file"
    chmod 666 "$ROOT/lib/data/deep/file"
    chown 1000:29 "$ROOT/lib/data/deep/file"
    ln -s deep/file "$ROOT/lib/data/link"
    configure '.mounts += [{destination: "/lib/data", type: "tmpfs", source: "tmpfs", options: ["tmpcopyup"]}]'
    script_is 'cat /lib/data/link; stat -c "%a %u %g" /lib/data/deep/file; echo changed > /lib/data/deep/file'
    is "$(pf_run | xargs)" "kept 666 1000 29"
    is "$(cat "$ROOT/lib/data/deep/file")" kept
}

@test "atime options replace each other" {
    mount -t tmpfs -o strictatime tmpfs "$WORK/source/sub"
    configure --arg source "$WORK/source/sub" '.mounts += [{destination: "/data", type: "bind", source: $source, options: ["bind", "noatime"]}]'
    found=$(options_of /data)
    umount "$WORK/source/sub"
    contains "$found" noatime
    configure '.mounts[-1] = {destination: "/data", type: "tmpfs", source: "tmpfs", options: ["relatime"]}'
    contains "$(options_of /data)" relatime
}

@test "propagation: private unless asked, and as asked" {
    command_is awk '$5 == "/data" { print ($7 == "-" ? "private" : $7) }' /proc/self/mountinfo
    bind /data rbind
    is "$(pf_run)" private
    configure '.mounts[-1].options = ["rbind", "rshared"]'
    matches "$(pf_run)" '^shared:'
    configure '.mounts[-1].options = ["rbind", "runbindable"]'
    is "$(pf_run)" unbindable
}

@test "mounts made in the container do not reach the host (a shared source does not change that)" {
    mount -t tmpfs tmpfs "$WORK/source"
    mount --make-shared "$WORK/source"
    mkdir "$WORK/source/sub"
    bind /data rbind
    configure '.process.capabilities.bounding += ["CAP_SYS_ADMIN"] | .process.capabilities.effective += ["CAP_SYS_ADMIN"] | .process.capabilities.permitted += ["CAP_SYS_ADMIN"]'
    script_is 'mount -t tmpfs inside /data/sub && echo mounted'
    run pf_run
    is "$output" mounted
    found=$(grep -c "inside" /proc/self/mountinfo || :)
    umount -R "$WORK/source"
    is "$found" 0
}

@test "proc, sysfs, mqueue, devpts and shm of the default configuration" {
    command_is awk '{ for (i = 7; i <= NF; i++) if ($i == "-") { print $5, $(i + 1); break } }' /proc/self/mountinfo
    run pf_run
    contains "$output" "/proc proc"
    contains "$output" "/sys sysfs"
    contains "$output" "/dev tmpfs"
    contains "$output" "/dev/pts devpts"
    contains "$output" "/dev/shm tmpfs"
    contains "$output" "/dev/mqueue mqueue"
}

@test "the root of the host is nowhere in the container" {
    command_is cat /proc/self/mountinfo
    run pf_run
    # every mount point is one that config.json asked for, or a device or mask; nothing of the old root is left
    lacks "$output" "$WORK/state"
    lacks "$output" "/old"
    is "$(awk '$5 == "/"' <<<"$output" | wc -l)" 1
}

@test "cgroup mount: the container's own cgroups, read-only" {
    configure '.mounts += [{destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: ["ro", "nosuid", "nodev", "noexec"]}]'
    script_is 'ls /sys/fs/cgroup | head -n 3; touch /sys/fs/cgroup/pids/x 2>&1; mkdir /sys/fs/cgroup/pids/sub 2>&1; cat /sys/fs/cgroup/pids/pids.max'
    configure '.linux.resources.pids = {limit: 55}'
    run pf_run
    contains "$output" 55
    contains "$output" "Read-only file system"
}

@test "id-mapped bind: refused by name, not ignored" {
    mount -t tmpfs tmpfs "$WORK/source" && echo x >"$WORK/source/file"
    configure --arg source "$WORK/source" '.mounts += [{destination: "/data", type: "bind", source: $source, options: ["bind"],
      uidMappings: [{containerID: 0, hostID: 5000, size: 100}], gidMappings: [{containerID: 0, hostID: 6000, size: 100}]}]'
    command_is stat -c '%u %g' /data/file
    run pf_run
    umount "$WORK/source"
    ended 1 "id-mapped"
}
