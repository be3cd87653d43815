#!/usr/bin/env bats
# The container's root: devices, masks, read-only paths, and what a hostile image or config.json tried with other
# runtimes. Each of the latter is named after the public fault.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

@test "root: read-only as written" {
    configure '.root.readonly = true'
    script_is 'touch /x'
    run pf_run
    ended 1 "Read-only file system"
    [ ! -e "$ROOT/x" ]
}

@test "root: writable as written" {
    script_is 'echo made > /x'
    run pf_run
    ended 0
    is "$(cat "$ROOT/x")" made
}

@test "root: a relative path is the bundle's; a missing one is an error that names it" {
    configure '.root.path = "rootfs"'
    run pf_run
    ended 0
    configure '.root.path = "/no/root/here"'
    run pf_run
    ended 1 /no/root/here
}

@test "/dev: the default devices with their numbers and modes, and the links" {
    script_is 'for d in null zero full random urandom tty; do echo "$d $(stat -c "%F %t:%T %a" /dev/$d)"; done
      for l in fd stdin stdout stderr ptmx; do echo "$l $(readlink /dev/$l)"; done'
    run pf_run
    is "$output" "null character special file 1:3 666
zero character special file 1:5 666
full character special file 1:7 666
random character special file 1:8 666
urandom character special file 1:9 666
tty character special file 5:0 666
fd /proc/self/fd
stdin /proc/self/fd/0
stdout /proc/self/fd/1
stderr /proc/self/fd/2
ptmx pts/ptmx"
}

@test "linux.devices: made with mode and owner" {
    configure '.linux.devices = [{path: "/dev/mine", type: "c", major: 1, minor: 3, fileMode: 432, uid: 1000, gid: 29}]
      | .linux.resources.devices = [{allow: true, access: "rwm"}]'
    command_is stat -c '%t:%T %a %u %g' /dev/mine
    is "$(pf_run)" "1:3 660 1000 29"
}

@test "maskedPaths: a file reads empty, a directory is empty, a missing one does not matter" {
    echo secret >"$ROOT/etc/secret"
    mkdir "$ROOT/etc/secrets" && echo secret >"$ROOT/etc/secrets/file"
    configure '.linux.maskedPaths = ["/etc/secret", "/etc/secrets", "/etc/none", "/proc/kcore"]'
    script_is 'cat /etc/secret; ls -A /etc/secrets; touch /etc/secrets/x 2>&1; echo end'
    run pf_run
    lacks "$output" secret$'\n'
    is "$(tail -n 1 <<<"$output")" end
    contains "$output" "Read-only file system"
    is "$(cat "$ROOT/etc/secret")" secret
}

@test "maskedPaths: a symbolic link in the image masks its target in the root, not on the host" {
    echo secret >"$ROOT/etc/target"
    ln -s /etc/target "$ROOT/etc/link"
    configure '.linux.maskedPaths = ["/etc/link"]'
    command_is cat /etc/target
    is "$(pf_run)" ""
}

@test "readonlyPaths: also below, and a missing one does not matter" {
    configure '.linux.readonlyPaths = ["/proc/sys", "/etc", "/none"]'
    script_is 'touch /etc/x 2>&1; echo 1 > /proc/sys/kernel/hostname; touch /fine && echo end'
    run pf_run
    is "$(grep -c "Read-only file system" <<<"$output")" 2
    is "$(tail -n 1 <<<"$output")" end
}

@test "readonlyPaths: the flags of the mount below stay" {
    configure '.mounts += [{destination: "/data", type: "tmpfs", source: "tmpfs", options: ["nosuid", "nodev", "noexec"]}]
      | .linux.readonlyPaths = ["/data"]'
    command_is awk '$5 == "/data" { o = $6 } END { print o }' /proc/self/mountinfo
    matches "$(pf_run)" '^ro,nosuid,nodev,noexec'
}

@test "rootfsPropagation: private by default, as asked otherwise" {
    command_is awk '$5 == "/" { print ($7 == "-" ? "private" : $7) }' /proc/self/mountinfo
    for pair in "private private" "slave private" "unbindable unbindable"; do
        configure --arg value "${pair% *}" '.linux.rootfsPropagation = $value'
        is "$(pf_run)" "${pair#* }"
    done
    configure '.linux.rootfsPropagation = "shared"'
    matches "$(pf_run)" '^shared:'
}

# -- what went wrong elsewhere ------------------------------------------------------------------------------------

@test "CVE-2019-5736: the runtime's own program cannot be written through /proc/self/exe" {
    before=$(sha256sum <"$PINFOLD")
    # process 1 of the container is asked to run what runs it
    configure '.process.args = ["/proc/self/exe", "--version"]'
    run pf_run
    script_is 'for p in /proc/[0-9]*; do (echo overwritten > $p/exe) 2>/dev/null; done; exit 0'
    run pf_run
    start_sleeper
    run pf exec "$ID" sh -c 'for p in /proc/[0-9]*; do (: >> $p/exe) 2>/dev/null; done'
    is "$(sha256sum <"$PINFOLD")" "$before"
}

@test "CVE-2019-16884: /proc is a symbolic link of the image" {
    rmdir "$ROOT/proc" && mkdir "$ROOT/fake" && ln -s fake "$ROOT/proc"
    script_is 'ls /proc/self/status && ls -d /fake'
    run pf_run
    # refused, or a real procfs at the place in the root; never outside
    [ "$status" != 0 ] || contains "$output" /proc/self/status
    ln -sfn /../../../../proc "$ROOT/proc"
    run pf_run
    [ ! -d "$ROOT/fake/self" ]
}

@test "CVE-2019-19921: a tmpfs on /proc does not receive what the runtime writes there" {
    mkdir "$BUNDLE/fake" "$BUNDLE/fake/sys" "$BUNDLE/fake/sys/kernel" "$BUNDLE/fake/self"
    echo untouched >"$BUNDLE/fake/sys/kernel/shmmni"
    configure --arg source "$BUNDLE/fake" '.mounts |= ([{destination: "/proc", type: "bind", source: $source, options: ["rbind"]}] + map(select(.destination != "/proc")))
      | .linux.sysctl = {"kernel.shmmni": "77"} | .linux.maskedPaths = [] | .linux.readonlyPaths = []'
    run pf_run
    is "$(cat "$BUNDLE/fake/sys/kernel/shmmni")" untouched
}

@test "CVE-2021-30465: a destination below a symbolic link that leads out of the root" {
    mkdir "$WORK/outside" "$WORK/source" && echo content >"$WORK/source/file"
    up=$(dirname "$ROOT" | sed 's,[^/]*,..,g')
    ln -s "$up$WORK/outside" "$ROOT/escape"
    ln -s / "$ROOT/top"
    configure --arg source "$WORK/source" '.mounts += [{destination: "/escape/a", type: "bind", source: $source, options: ["rbind"]},
      {destination: "/top/b", type: "bind", source: $source, options: ["rbind"]}]'
    script_is 'cat /b/file'
    run pf_run
    is "$(ls -A "$WORK/outside")" ""
    [ "$status" != 0 ] || is "$output" content
    [ ! -e /b ]
}

@test "CVE-2024-45310: no directory or file of a missing destination is made outside the root" {
    mkdir "$WORK/outside"
    ln -s "$WORK/outside" "$ROOT/data"
    configure '.mounts += [{destination: "/data/made/here", type: "tmpfs", source: "tmpfs"}]'
    run pf_run
    is "$(ls -A "$WORK/outside")" ""
    echo x >"$WORK/file"
    configure --arg source "$WORK/file" '.mounts[-1] = {destination: "/data/file", type: "bind", source: $source, options: ["bind"]}'
    run pf_run
    is "$(ls -A "$WORK/outside")" ""
}

@test "CVE-2024-21626: a working directory through /proc/self/fd does not reach the host" {
    for number in 3 4 5 6 7 8 9 10 11 12; do
        configure --arg cwd "/proc/self/fd/$number" '.process.cwd = $cwd'
        script_is 'cat ../../../../../../etc/hostname 2>/dev/null; pwd; ls -a | head -n 3'
        run pf_run
        [ "$status" != 0 ] || lacks "$output" "$(cat /etc/hostname)"
        lacks "$output" state.json
    done
    configure '.process.cwd = "/"'
    start_sleeper
    for number in 3 5 7 9; do
        run pf exec --cwd "/proc/self/fd/$number" "$ID" cat ../../../../../../etc/hostname
        [ "$status" != 0 ]
    done
}

@test "CVE-2025-31133: /dev/null of the image is a link: masking does not follow it" {
    echo precious >"$ROOT/etc/precious"
    configure '.mounts |= map(select(.destination | startswith("/dev") | not)) | .linux.maskedPaths = ["/etc/group"]'
    rm -rf "$ROOT/dev" && mkdir "$ROOT/dev" && ln -s /etc/precious "$ROOT/dev/null"
    command_is cat /etc/group
    run pf_run
    lacks "$output" precious
    is "$(cat "$ROOT/etc/precious")" precious
}

@test "CVE-2025-52565: /dev/console and /dev/pts are no links of the image" {
    mkdir -p "$WORK/outside" && echo untouched >"$WORK/outside/file"
    rm -rf "$ROOT/dev" && mkdir "$ROOT/dev"
    ln -s "$WORK/outside/file" "$ROOT/dev/console"
    ln -s "$WORK/outside" "$ROOT/dev/pts"
    configure '.mounts |= map(select(.destination | startswith("/dev") | not)) | .process.terminal = true'
    command_is true
    run script -qec "'$PINFOLD' --root '$STATE' --policy unconfined run --bundle '$BUNDLE' '$ID'" /dev/null
    is "$(cat "$WORK/outside/file")" untouched
    is "$(ls "$WORK/outside")" file
}

@test "CVE-2025-24965: nothing is written into the image by path" {
    before=$(cd "$ROOT" && find . -printf '%p %m %s %T@\n' | sort | sha256sum)
    run pf_run
    ended 0
    # the mount points that were there stay as they were; none was missing
    is "$(cd "$ROOT" && find . -printf '%p %m %s %T@\n' | sort | sha256sum)" "$before"
}

@test "a destination of '/' does not hide the root" {
    mkdir "$WORK/other"
    configure --arg source "$WORK/other" '.mounts += [{destination: "/", type: "bind", source: $source, options: ["rbind"]}]'
    run pf_run
    # the root is the other directory, or it is refused; it never is the host's
    [ "$status" != 0 ] || [ ! -e "$WORK/other/etc/passwd" ]
}

@test "mount options: no newline or comma of a source reaches another option" {
    configure '.mounts += [{destination: "/data", type: "tmpfs", source: "a\nb /etc tmpfs rw 0 0", options: ["size=64k"]}]'
    command_is cat /proc/self/mountinfo
    run pf_run
    is "$(awk '$5 == "/etc"' <<<"$output" | wc -l)" 0
}
