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
    local directory=/sys/fs/cgroup/pids
    [ -d $directory ] || directory=/sys/fs/cgroup
    [ "$directory" != /sys/fs/cgroup ] || grep -qw pids /sys/fs/cgroup/cgroup.controllers || skip "no pids controller"
    configure '.mounts += [{destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: ["ro", "nosuid", "nodev", "noexec"]}]'
    script_is 'ls /sys/fs/cgroup | head -n 3; cd '$directory'; touch x 2>&1; mkdir sub 2>&1; cat pids.max'
    configure '.linux.resources.pids = {limit: 55}'
    run pf_run
    contains "$output" 55
    contains "$output" "Read-only file system"
}

# A tmpfs at $WORK/source with a file of uid 0 and a file of uid 7.
mapped_source() {
    mount -t tmpfs -o mode=755 tmpfs "$WORK/source"
    echo x >"$WORK/source/file"
    echo x >"$WORK/source/other" && chown 7:8 "$WORK/source/other"
}
mapped() { # OPTION...
    bind /data "$@"
    configure '.mounts[-1].uidMappings = [{containerID: 0, hostID: 5000, size: 100}] | .mounts[-1].gidMappings = [{containerID: 0, hostID: 6000, size: 100}]'
}

@test "id-mapped bind: owners as mapped, both ways, and the source keeps its own" {
    mapped_source
    mapped bind idmap
    script_is 'stat -c "%u %g" /data/file /data/other; chmod 777 /data; touch /data/root 2>&1; true'
    run pf_run
    owners=$(stat -c '%u %g' "$WORK/source/file")
    umount "$WORK/source"
    ended 0
    is "$(head -n 2 <<<"$output" | xargs)" "5000 6000 5007 6008"
    # root of the container is not mapped: it may not make a file that the file system could not give an owner
    contains "$output" "Value too large"
    is "$owners" "0 0"
}

@test "id-mapped bind: mappings alone are enough, ridmap maps what is mounted below, idmap does not" {
    mapped_source
    mkdir "$WORK/source/sub" && mount -t tmpfs tmpfs "$WORK/source/sub" && echo x >"$WORK/source/sub/file"
    mapped rbind
    command_is stat -c %u /data/file /data/sub/file
    alone=$(pf_run | xargs)
    configure '.mounts[-1].options = ["rbind", "ridmap"]'
    whole=$(pf_run | xargs)
    umount -R "$WORK/source"
    is "$alone" "5000 0"
    is "$whole" "5000 5000"
}

@test "idmap without mappings: those of the container's user namespace; without one it is an error" {
    chmod 755 "$WORK" "$BATS_RUN_TMPDIR" "$BUNDLE"
    mapped_source
    mkdir "$ROOT/data"
    bind /data bind idmap
    command_is stat -c '%u %g' /data/file /data/other
    run pf_run
    ended 1 "mounts[7]: id mapping: options: idmap needs uidMappings and gidMappings"
    configure '.linux.namespaces += [{type: "user"}]
      | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 1000}] | .linux.gidMappings = .linux.uidMappings'
    found=$(pf_run | xargs)
    configure '.mounts[-1].options = ["bind", "idmap=uids=@0-5-10;gids=0-100006-20"]'
    given=$(pf_run | xargs)
    configure '.mounts[-1].options = ["bind", "idmap=uids=0-5"]'
    run pf_run
    umount "$WORK/source"
    is "$found" "0 0 7 8"
    is "$given" "5 6 12 14"
    ended 1 "expected idmap=uids=FROM-TO-SIZE"
}

@test "id mapping: one list alone, a file system that cannot, and a type that is no bind are errors that say so" {
    bind /data bind idmap
    configure '.mounts[-1].uidMappings = [{containerID: 0, hostID: 5000, size: 100}]'
    run pf_run
    ended 1 "mounts[7].gidMappings: required"
    configure '.mounts[-1].gidMappings = [{containerID: 0, hostID: 5000, size: 100}] | .mounts[-1].source = "/sys"'
    run pf_run
    ended 1 "the file system of /sys does not support id-mapped mounts"
    configure '.mounts[-1] = {destination: "/data", type: "tmpfs", source: "tmpfs", options: ["idmap"]}'
    run pf_run
    ended 1 "only for a bind mount"
}

@test "options: every word of config.md is taken, with a bind mount too" {
    for word in async atime defaults dev diratime dirsync exec iversion lazytime loud noatime nodev nodiratime noexec noiversion \
        nolazytime norelatime nostrictatime nosuid nosymfollow private relatime ro rprivate rshared rslave runbindable rw shared silent \
        slave strictatime suid symfollow sync unbindable mand nomand ratime rdev rdiratime rexec rnoatime rnodev rnodiratime rnoexec \
        rnorelatime rnostrictatime rnosuid rnosymfollow rrelatime rro rrw rstrictatime rsuid rsymfollow; do
        words+=("$word")
    done
    configure '.mounts += ($ARGS.positional | map({destination: ("/fresh/" + .), type: "tmpfs", source: "tmpfs", options: [.]}))' --args "${words[@]}"
    configure --arg source "$WORK/source" '.mounts += ($ARGS.positional | map({destination: ("/bound/" + .), type: "bind", source: $source, options: ["rbind", .]}))' --args "${words[@]}"
    command_is grep -c -E ' /(fresh|bound)/' /proc/self/mountinfo
    run pf_run
    ended 0
    is "$output" $((2 * ${#words[@]}))
    # what `features` promises is the same list
    for word in "${words[@]}" bind rbind remount tmpcopyup idmap ridmap; do
        "$PINFOLD" features | jq -e --arg word "$word" '.mountOptions | index($word)' >/dev/null || { echo "features lacks $word"; return 1; }
    done
    "$PINFOLD" features | jq -e .linux.mountExtensions.idmap.enabled
}

@test "runc #5098, youki #3467: each word of access times, of the mount and of the tree" {
    while read -r word wanted; do
        configure --arg word "$word" --arg source "$WORK/source" '.mounts |= map(select(.destination != "/data"))
          | .mounts += [{destination: "/data", type: "bind", source: $source, options: ["rbind", $word]}]'
        found=$(options_of /data)
        case $wanted in
        -) lacks "$found" atime ;;
        *) contains ",$found," ",$wanted," ;;
        esac || { echo "$word"; return 1; }
    done <<'WORDS'
noatime noatime
rnoatime noatime
relatime relatime
ratime relatime
rrelatime relatime
strictatime -
rstrictatime -
norelatime -
rnostrictatime relatime
nodiratime nodiratime
rnodiratime nodiratime
nosymfollow nosymfollow
rnosymfollow nosymfollow
WORDS
}

@test "recursive options reach the mounts below, plain ones do not; the last word wins" {
    mount -t tmpfs tmpfs "$WORK/source/sub"
    bind /data rbind rnosuid rnodev rnoexec rro rnosymfollow
    below=$(options_of /data/sub)
    configure '.mounts[-1].options = ["rbind", "nosuid", "nodev", "noexec", "ro"]'
    plain=$(options_of /data/sub)
    configure '.mounts[-1].options = ["rbind", "rro", "rrw", "rnoexec", "rexec", "ro", "rw"]'
    last=$(options_of /data)
    umount "$WORK/source/sub"
    matches "$below" '^ro,nosuid,nodev,noexec,.*nosymfollow'
    matches "$plain" '^rw,relatime'
    matches "$last" '^rw,relatime'
}

@test "crun #1421: recursive options on a file, a fifo and a socket" {
    mkfifo "$WORK/fifo"
    python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$WORK/source/socket"
    configure --arg file "$WORK/source/file" --arg fifo "$WORK/fifo" --arg socket "$WORK/source/socket" '.mounts += [
      {destination: "/run/file", type: "bind", source: $file, options: ["rbind", "rro", "rnosuid"]},
      {destination: "/run/fifo", type: "bind", source: $fifo, options: ["rbind", "rro"]},
      {destination: "/run/socket", type: "bind", source: $socket, options: ["bind", "rro"]}]'
    script_is 'cat /run/file; test -p /run/fifo && test -S /run/socket && echo both; echo x >/run/file'
    run pf_run
    ended 1 content
    contains "$output" both
    contains "$output" "Read-only"
}

@test "crun #1463: a symbolic link as source is followed on the host" {
    ln -s source "$WORK/link"
    configure --arg source "$WORK/link" '.mounts += [{destination: "/data", type: "bind", source: $source, options: ["bind"]}]'
    command_is cat /data/file
    is "$(pf_run)" content
}

@test "crun #639, runc #3967: rw, exec, suid, dev of a bind take back what the source has (and only these)" {
    mount -t tmpfs tmpfs "$WORK/source/sub"
    mount -o remount,bind,ro,nosuid,nodev,noexec,noatime "$WORK/source/sub"
    configure --arg source "$WORK/source/sub" '.mounts += [{destination: "/data", type: "bind", source: $source, options: ["bind", "rw", "exec"]}]'
    found=$(options_of /data)
    umount "$WORK/source/sub"
    matches "$found" '^rw,nosuid,nodev,noatime'
}

@test "runc #3738: acl is an option of the file system, not a flag" {
    configure '.mounts += [{destination: "/data", type: "tmpfs", source: "tmpfs", options: ["acl"]}]'
    run pf_run
    # a tmpfs knows no such word: it says so, in its own words
    ended 1 "acl"
    contains "$output" "mounts[7] (/data)"
    bind /data2 bind acl
    configure 'del(.mounts[7])'
    run pf_run
    ended 1 'mounts[7].options: "acl" is not an option of a bind mount'
}

@test "size= and mode= on a bind mount: passed over with a warning as mount(2) does, refused in a sandbox" {
    bind /data bind size=1k mode=755 ro
    script_is 'cat /data/file; : >/data/new'
    run pf_run
    contains "$output" 'pinfold: warning: mounts[7].options: "size=1k" is not an option of a bind mount, passed over'
    contains "$output" content
    contains "$output" "Read-only file system"
    POLICY=agent run pf_run
    ended 1 'mounts[7].options: "size=1k" is not an option of a bind mount'
    # a word without a value may be a misspelled attribute: always an error
    configure '.mounts[7].options = ["bind", "size=1k", "noexce"]'
    run pf_run
    ended 1 'mounts[7].options: "noexce" is not an option of a bind mount'
}

@test "tmpcopyup at / is refused: the whole root would be in memory" {
    configure '.mounts = [{destination: "//.", type: "tmpfs", source: "tmpfs", options: ["tmpcopyup"]}] + .mounts'
    run pf_run
    ended 1 "mounts[0].options: tmpcopyup at / would hold the whole root file system in memory"
}

@test "crun #786: a destination with doubled slashes" {
    bind "//test//test" rbind
    command_is cat /test/test/file
    is "$(pf_run)" content
}

@test "destinations: a relative one is the root's" {
    bind data/relative rbind
    command_is cat /data/relative/file
    is "$(pf_run)" content
}

@test "crun #1752: a mount at / is the container's root" {
    make_root "$WORK/other" && echo other >"$WORK/other/which" && echo first >"$ROOT/which"
    configure --arg source "$WORK/other" '.mounts = [{destination: "/", type: "bind", source: $source, options: ["rbind"]}] + .mounts'
    script_is 'cat /which; ls -d /proc/self >/dev/null && stat -c %t:%T /dev/null; awk "\$5 == \"/\"" /proc/self/mountinfo | wc -l; touch /made'
    run pf_run
    ended 0
    is "$(xargs <<<"$output")" "other 1:3 1"
    [ -e "$WORK/other/made" ]
    [ ! -e "$ROOT/made" ]
    # read-only is the root that the container sees
    configure '.root.readonly = true'
    run pf_run
    ended 1 "Read-only file system"
    POLICY=agent
    run pf_run
    ended 1 "mount.host_path.refused: a mount at / would replace"
}

@test "remount changes what is mounted there; the sandbox's /sys does not become writable by it" {
    configure '.mounts += [{destination: "/data", type: "tmpfs", source: "tmpfs"}, {destination: "/data", type: "none", options: ["remount", "ro", "noexec"]}]'
    matches "$(options_of /data)" '^ro,noexec'
    POLICY=agent
    configure '.mounts[-2:] = [{destination: "/sys", type: "tmpfs", source: "tmpfs", options: ["remount", "rw"]}]'
    script_is 'ls -A /sys | wc -l'
    # the option is taken out: an empty tmpfs lies there, /sys itself is as it was
    run pf_run
    contains "$output" 0
}

@test "remount with options of the file system's own: a tmpfs of this container's has them, the machine's is not touched" {
    mkdir "$WORK/machine" && mount -t tmpfs -o size=1m tmpfs "$WORK/machine"
    configure '.mounts += [{destination: "/data", type: "tmpfs", source: "tmpfs", options: ["size=1m"]},
      {destination: "/data", type: "none", options: ["remount", "size=64k", "noexec"]}]'
    script_is 'grep " /data " /proc/self/mountinfo'
    run pf_run
    ended 0
    matches "$output" ' /data [^ ]*noexec.*[ ,]size=64k'
    configure --arg source "$WORK/machine" '.mounts[-2] = {destination: "/data", type: "bind", source: $source, options: ["bind"]}'
    run pf_run
    ended 1 'options: "size=64k" beside "remount" is for a tmpfs that a mount before it has made'
    contains "$(grep " $WORK/machine " /proc/self/mountinfo)" size=1024k
    umount "$WORK/machine"
}

@test "runc #3952, #4971: a tmpfs has the sticky bit and mode of what it covers, else its own default; crun #2176: no other file system does" {
    mkdir -m 1777 "$ROOT/sticky" && mkdir -m 2750 "$ROOT/narrow" && chmod 700 "$ROOT/proc" "$ROOT/sys"
    configure '.mounts += (["/sticky", "/narrow", "/new"] | map({destination: ., type: "tmpfs", source: "tmpfs"}))'
    command_is stat -c %a /sticky /narrow /new /proc /sys
    is "$(pf_run | xargs)" "1777 2750 1777 555 555"
}

@test "runc #3991: tmpcopyup keeps modes whatever the umask, owners, attributes, and follows no link" {
    mkdir -p "$ROOT/data/deep" "$WORK/outside" && echo secret >"$WORK/outside/file"
    echo kept >"$ROOT/data/deep/file" && chmod 4777 "$ROOT/data/deep/file" && chmod 1777 "$ROOT/data/deep" && chown 1000:29 "$ROOT/data"
    ln -s "$WORK/outside" "$ROOT/data/escape"
    python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.mark", b"value"); os.setxattr(sys.argv[1], "trusted.mark", b"value")' "$ROOT/data/deep/file"
    configure '.mounts += [{destination: "/data", type: "tmpfs", source: "tmpfs", options: ["tmpcopyup"]}]'
    script_is 'stat -c "%a %u %g" /data /data/deep /data/deep/file; readlink /data/escape; ls /data/escape 2>/dev/null || :'
    run bash -c 'umask 077; "$@"' - env "PINFOLD=$PINFOLD" "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID"
    ended 0
    is "$(xargs <<<"$output")" "755 1000 29 1777 0 0 4777 0 0 $WORK/outside"
    start_sleeper
    run python3 -c 'import os, sys; print(os.getxattr(sys.argv[1], "user.mark"), os.getxattr(sys.argv[1], "trusted.mark"))' \
        "/proc/$(state_of .pid)/root/data/deep/file"
    is "$output" "b'value' b'value'"
}

@test "crun #2059: a bind of a shared mount leaks nothing to the host" {
    mount -t tmpfs tmpfs "$WORK/source" && mount --make-shared "$WORK/source" && mkdir "$WORK/source/sub"
    mount -t tmpfs tmpfs "$WORK/source/sub"
    # a mere copy is a peer of what it copies, in another mount namespace too
    matches "$(unshare -m --propagation unchanged sh -c 'mkdir "$1/copy" && mount --bind "$1/source" "$1/copy" && grep " $1/copy " /proc/self/mountinfo' - "$WORK")" ' shared:[0-9]'
    bind /data rbind
    command_is awk '$5 ~ "^/data" { print ($7 == "-" ? "private" : $7) }' /proc/self/mountinfo
    found=$(pf_run | xargs)
    umount -R "$WORK/source"
    is "$found" "private private"
}

@test "crun #2066: what is mounted on the host later arrives in an rslave volume, and not in a private one" {
    mount -t tmpfs tmpfs "$WORK/source" && mount --make-shared "$WORK/source" && mkdir "$WORK/source/sub"
    bind /slave rbind rslave
    bind /private rbind
    start_sleeper
    mount -t tmpfs later "$WORK/source/sub"
    slave=$(pf exec "$ID" grep -c "/slave/sub .* later" /proc/self/mountinfo || :)
    private=$(pf exec "$ID" grep -c "/private/sub .* later" /proc/self/mountinfo || :)
    pf delete --force "$ID"
    umount -R "$WORK/source"
    is "$slave" 1
    is "$private" 0
}

@test "crun #2122: an rshared volume is a peer of its source, also below a root that is rprivate or rslave" {
    mount -t tmpfs tmpfs "$WORK/source" && mount --make-shared "$WORK/source" && mkdir "$WORK/source/sub"
    group=$(awk -v path="$WORK/source" '$5 == path { print $7 }' /proc/self/mountinfo)
    bind /data rbind rshared
    command_is awk '$5 == "/data" || $5 == "/proc" { print $5, ($7 == "-" ? "private" : $7) }' /proc/self/mountinfo
    private=$(configure '.linux.rootfsPropagation = "rprivate"' && pf_run | sort | xargs)
    slave=$(configure '.linux.rootfsPropagation = "rslave"' && pf_run | sort | xargs)
    umount -R "$WORK/source"
    is "$private" "/data $group /proc private"
    is "$slave" "/data $group /proc private"
}

@test "crun #950: flags that the runtime's own user namespace may not take back stay, and the others change" {
    mount -t tmpfs -o nosuid,nodev tmpfs "$WORK/source/sub"
    configure --arg source "$WORK/source/sub" '.mounts += [{destination: "/data", type: "bind", source: $source, options: ["bind", "suid", "dev", "noexec", "ro"]}]
      | .mounts |= map(select(.type != "sysfs" and .type != "cgroup" and .type != "devpts")) | .linux.resources = {} | .annotations["run.oci.keep_original_groups"] = "1"'
    command_is awk '$5 == "/data" { print $6 }' /proc/self/mountinfo
    run unshare -U -r -m -p -f sh -c 'mount -t proc proc /proc && exec timeout 20 "$0" --root "$1" --policy unconfined --cgroup-manager disabled run --bundle "$2" "$3"' \
        "$PINFOLD" "$STATE" "$BUNDLE" "$ID" </dev/null 3>&-
    umount "$WORK/source/sub"
    matches "$output" '^ro,nosuid,nodev,noexec'
}

@test "crun #2178: /sys of the host, where the user namespace may make none, is read-only as a whole" {
    user_namespace
    # a mere bind leaves it as it is there
    is "$(unshare -U -r -m sh -c 'mkdir "$1/sys" && mount --rbind /sys "$1/sys" && awk -v p="$1/sys" "\$5 == p { print \$6 }" /proc/self/mountinfo' - "$WORK")" \
        "$(awk '$5 == "/sys" { print $6 }' /proc/self/mountinfo)"
    configure '.linux.namespaces |= map(select(.type != "network")) | .mounts |= map(if .destination == "/sys" then .options = ["nosuid"] else . end)'
    command_is awk '$5 ~ "^/sys" { print $6 }' /proc/self/mountinfo
    run pf_run
    ended 0
    [ -n "$output" ]
    is "$(grep -c '^ro,nosuid,nodev,noexec' <<<"$output")" "$(wc -l <<<"$output")"
}

@test "the host's processes, where a user namespace shares them" {
    user_namespace
    configure '.linux.namespaces |= map(select(.type != "pid")) | .linux.maskedPaths = [] | .linux.readonlyPaths = []'
    script_is 'test -d /proc/self && awk "\$5 == \"/proc\" { print \$6, \$8, \$9 }" /proc/self/mountinfo'
    run pf_run
    ended 0
    matches "$output" '^rw,nosuid,nodev,noexec.* proc'
}

@test "devpts, shm and mqueue in a user namespace: a group that is not mapped is left out" {
    user_namespace
    configure '.linux.gidMappings = [{containerID: 0, hostID: 100000, size: 1}]'
    script_is 'stat -c %g /dev/pts; readlink /dev/ptmx; grep -c -E " /dev/(shm|mqueue) " /proc/self/mountinfo'
    run pf_run
    ended 0
    is "$(xargs <<<"$output")" "0 pts/ptmx 2"
}

@test "devpts without options: an instance of its own with a usable ptmx" {
    configure '.mounts |= map(if .destination == "/dev/pts" then del(.options) else . end)'
    command_is stat -c '%a' /dev/pts/ptmx
    is "$(pf_run)" 666
}

@test "rw of a bind whose source is locked read-only: what is locked stays, what is not is done" {
    # the runtime itself in a user namespace: the flags of the mounts that it came with are locked
    mount -t tmpfs tmpfs "$WORK/source/sub" && mount -o remount,bind,ro,nodev,noexec "$WORK/source/sub"
    configure --arg source "$WORK/source/sub" '.mounts += [{destination: "/data", type: "bind", source: $source, options: ["bind", "rw", "dev", "exec", "nosuid", "noatime"]}]'
    command_is awk '$5 == "/data" { print $6 }' /proc/self/mountinfo
    mkfifo "$WORK/mapped"
    unshare --user --mount --pid --fork sh -c 'read -r _ <"$0/mapped"; mount -t proc proc /proc &&
      exec "$1" --root "$2" --policy unconfined --cgroup-manager disabled run --bundle "$3" "$4"' \
        "$WORK" "$PINFOLD" "$STATE" "$BUNDLE" "$ID" >"$WORK/out" 2>&1 3>&- &
    outer=$!
    wait_for bash -c "[ \"\$(readlink /proc/$outer/ns/user)\" != '$(readlink /proc/self/ns/user)' ]"
    echo "0 0 4294967295" >/proc/$outer/gid_map
    echo "0 0 4294967295" >/proc/$outer/uid_map
    echo go >"$WORK/mapped"
    wait $outer || :
    umount "$WORK/source/sub"
    matches "$(cat "$WORK/out")" '^ro,nosuid,nodev,noexec'
}

@test "CVE-2023-25809, crun #764: the cgroups over a bind of /sys are the container's own, also where none can be shown" {
    user_namespace
    configure '.linux.namespaces |= map(select(.type != "network" and .type != "cgroup"))
      | .mounts |= map(select(.destination | startswith("/sys") | not)) + [{destination: "/sys", type: "bind", source: "/sys", options: ["rbind", "ro", "nosuid", "nodev", "noexec"]},
        {destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: ["ro", "nosuid", "nodev", "noexec"]}]'
    # without that last mount they are the machine's, as writable as they are there
    command_is awk '$5 ~ "^/sys/fs/cgroup" && $6 !~ "(^|,)ro(,|$)" { n++ } END { print n + 0 }' /proc/self/mountinfo
    with=$(cat "$BUNDLE/config.json")
    configure '.mounts |= .[:-1]'
    run pf_run
    is "$output" "$(awk '$5 ~ "^/sys/fs/cgroup" && $6 !~ "(^|,)ro(,|$)" { n++ } END { print n + 0 }' /proc/self/mountinfo)"
    echo "$with" >"$BUNDLE/config.json"
    script_is 'awk "\$5 ~ \"^/sys/fs/cgroup\" { o[\$5] = \$6 } END { for (p in o) print p, o[p] }" /proc/self/mountinfo | sort; touch /sys/fs/cgroup/x 2>&1; ls /sys/fs/cgroup'
    run pf_run
    contains "$output" "/sys/fs/cgroup ro"
    contains "$output" "Read-only file system"
    lacks "$output" "/sys/fs/cgroup rw"
}

@test "two mounts at one place, and one that is covered again" {
    configure '.mounts += [{destination: "/data", type: "tmpfs", source: "one"}, {destination: "/data", type: "tmpfs", source: "two", options: ["ro"]}]'
    command_is awk '$5 == "/data" { print $9 }' /proc/self/mountinfo
    is "$(pf_run | xargs)" "one two"
}

@test "mounts: no type and no bind, and a type that the kernel does not know, are errors that name the mount" {
    configure '.mounts += [{destination: "/data", source: "x"}]'
    run pf_run
    ended 1 "mounts[7] (/data): type: expected a file system type"
    configure '.mounts[7].type = "nosuchfs"'
    run pf_run
    ended 1 "mounts[7] (/data): fsopen nosuchfs"
}
