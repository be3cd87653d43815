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

# While it is executed the kernel itself refuses (ETXTBSY): own_binary.bats has the attack that waits for its end.
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
    mkdir "$WORK/outside"
    rmdir "$ROOT/proc" && ln -s "$WORK/outside" "$ROOT/proc"
    # who mounts by path mounts where the link leads
    is "$(unshare -m sh -c 'mount -t proc proc "$1/proc" && cd "$2" && echo self/status' - "$ROOT" "$WORK/outside")" self/status
    # a real procfs at that place in the root
    script_is 'awk "/ - proc / { print \$5; exit }" /proc/self/mountinfo'
    run pf_run
    ended 0
    is "$output" "$WORK/outside"
    is "$(ls -A "$WORK/outside")" ""
    ln -sfn /../../../../proc "$ROOT/proc" # in the root that is itself
    run pf_run
    ended 1 "/proc in the container's root"
}

@test "CVE-2019-19921: a tmpfs on /proc does not receive what the runtime writes there" {
    mkdir "$BUNDLE/fake" "$BUNDLE/fake/sys" "$BUNDLE/fake/sys/kernel" "$BUNDLE/fake/self"
    echo untouched >"$BUNDLE/fake/sys/kernel/shmmni"
    configure --arg source "$BUNDLE/fake" '.mounts |= ([{destination: "/proc", type: "bind", source: $source, options: ["rbind"]}] + map(select(.destination != "/proc")))
      | .linux.sysctl = {"kernel.shmmni": "77"} | .linux.maskedPaths = [] | .linux.readonlyPaths = []'
    # who writes by path writes there
    unshare -m sh -c 'mount --bind "$1/fake" "$1/rootfs/proc" && exec chroot "$1/rootfs" sh -c "echo 77 >/proc/sys/kernel/shmmni"' - "$BUNDLE"
    is "$(cat "$BUNDLE/fake/sys/kernel/shmmni")" 77
    echo untouched >"$BUNDLE/fake/sys/kernel/shmmni"
    run pf_run
    is "$(cat "$BUNDLE/fake/sys/kernel/shmmni")" untouched
}

@test "CVE-2021-30465: a destination below a symbolic link that leads out of the root" {
    mkdir "$WORK/outside" "$WORK/source" && echo content >"$WORK/source/file"
    up=$(dirname "$ROOT" | sed 's,[^/]*,..,g')
    ln -s "$up$WORK/outside" "$ROOT/escape"
    ln -s / "$ROOT/top"
    # by path the link leads there
    mkdir "$ROOT/escape/a" && rmdir "$WORK/outside/a"
    configure --arg source "$WORK/source" '.mounts += [{destination: "/escape/a", type: "bind", source: $source, options: ["rbind"]},
      {destination: "/top/b", type: "bind", source: $source, options: ["rbind"]}]'
    script_is 'cat /b/file'
    run pf_run
    is "$(ls -A "$WORK/outside")" ""
    [ "$status" != 0 ] || is "$output" content
    [ ! -e /b ]
}

@test "CVE-2021-30465: a directory that is exchanged for a link all the while: nothing is made or mounted outside the root" {
    mkdir "$WORK/outside" "$ROOT/place" && ln -s "$WORK/outside" "$ROOT/link" && echo content >"$WORK/file"
    python3 -c '
import ctypes, os, sys
libc, one, other = ctypes.CDLL(None), sys.argv[1].encode() + b"/place", sys.argv[1].encode() + b"/link"
while os.getppid() != 1: libc.renameat2(-100, one, -100, other, 2) # RENAME_EXCHANGE' "$ROOT" 3>&- &
    swapper=$!
    # who looks where the path leads, and then makes something there by path, is deceived
    run timeout 30 python3 -c '
import os, sys
place, outside = sys.argv[1] + "/place", sys.argv[2]
while not os.listdir(outside):
    try:
        if os.path.realpath(place) == place:
            os.makedirs(place + "/made", exist_ok=True)
    except OSError: pass # exchanged between two of its own looks
print("deceived")' "$ROOT" "$WORK/outside"
    is "$output" deceived
    # rm is deceived as well
    is_gone() { ! rm -rf "$WORK/outside/made" "$ROOT/place/made" "$ROOT/link/made" 2>&1 | grep -q . && [ -z "$(find "$ROOT/place/" "$ROOT/link/" "$WORK/outside" -name made)" ]; }
    wait_for is_gone
    configure --arg file "$WORK/file" '.mounts += [{destination: "/place/made/here", type: "tmpfs", source: "tmpfs"},
      {destination: "/place/file", type: "bind", source: $file, options: ["bind"]}]'
    for _ in $(seq 12); do run pf_run; done
    kill "$swapper"
    wait "$swapper" || :
    is "$(ls -A "$WORK/outside")" ""
}

@test "CVE-2024-45310: no directory or file of a missing destination is made outside the root" {
    mkdir "$WORK/outside"
    ln -s "$WORK/outside" "$ROOT/data"
    # by path they are made there
    mkdir -p "$ROOT/data/made/here" && rmdir "$WORK/outside/made/here" "$WORK/outside/made"
    configure '.mounts += [{destination: "/data/made/here", type: "tmpfs", source: "tmpfs"}]'
    run pf_run
    is "$(ls -A "$WORK/outside")" ""
    echo x >"$WORK/file"
    configure --arg source "$WORK/file" '.mounts[-1] = {destination: "/data/file", type: "bind", source: $source, options: ["bind"]}'
    run pf_run
    is "$(ls -A "$WORK/outside")" ""
}

@test "CVE-2024-21626: a working directory through /proc/self/fd does not reach the host" {
    # a descriptor of the host that is open at the time of chdir leads out of any root
    is "$(unshare -m sh -c 'mount -t proc proc "$1/proc" && exec python3 -c "$2" "$1"' - "$ROOT" 'import os, sys
host = os.open("/", os.O_RDONLY)
os.chroot(sys.argv[1]); os.chdir("/proc/self/fd/%d" % host)
print(open("etc/hostname").read().strip())')" "$(cat /etc/hostname)"
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
    # who binds it by path shows what the link names
    is "$(unshare -m chroot "$ROOT" sh -c 'mount -o bind /dev/null /etc/group && cat /etc/group')" precious
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
    # by path both lead there
    echo changed >"$ROOT/dev/console" && touch "$ROOT/dev/pts/0"
    is "$(cat "$WORK/outside/file") $(ls "$WORK/outside" | xargs)" "changed 0 file"
    echo untouched >"$WORK/outside/file" && rm "$WORK/outside/0"
    configure '.mounts |= map(select(.destination | startswith("/dev") | not)) | .process.terminal = true'
    command_is true
    run script -qec "'$PINFOLD' --root '$STATE' --policy unconfined run --bundle '$BUNDLE' '$ID'" /dev/null
    [ "$status" != 0 ]
    is "$(cat "$WORK/outside/file")" untouched
    is "$(ls "$WORK/outside")" file
    # the name of the terminal's other end leads to a file of the image; who binds it by name shows that as the console
    rm "$ROOT/dev/pts" "$ROOT/dev/console" && mkdir "$ROOT/evil" "$ROOT/ptys"
    echo secret >"$ROOT/etc/secret"
    ln -s /evil "$ROOT/dev/pts" && ln -s ../ptys/ptmx "$ROOT/evil/ptmx" && ln -s ../etc/secret "$ROOT/evil/0"
    is "$(unshare -m chroot "$ROOT" sh -c 'touch /dev/console && mount -o bind /dev/pts/0 /dev/console && cat /dev/console')" secret
    rm "$ROOT/dev/console"
    configure '.mounts += [{destination: "/ptys", type: "devpts", source: "devpts", options: ["newinstance", "ptmxmode=0666", "mode=0620"]}]'
    command_is cat /dev/console
    run script -qec "timeout 20 '$PINFOLD' --root '$STATE' --policy unconfined run --bundle '$BUNDLE' '$ID'" /dev/null
    [ "$status" != 0 ]
    lacks "$output" secret
    contains "$output" "/dev/pts/ptmx in the container"
}

@test "CVE-2025-24965: nothing is written into the image by path" {
    mkdir "$WORK/outside"
    ln -s "$WORK/outside/made" "$ROOT/.krun_config.json"
    # who writes a file of his own there writes it outside
    echo x >"$ROOT/.krun_config.json" && rm "$WORK/outside/made"
    before=$(cd "$ROOT" && find . -printf '%p %m %s %T@\n' | sort | sha256sum)
    run pf_run
    ended 0
    # the mount points that were there stay as they were; none was missing
    is "$(cd "$ROOT" && find . -printf '%p %m %s %T@\n' | sort | sha256sum)" "$before"
    POLICY=agent run pf_run
    ended 0
    is "$(ls -A "$WORK/outside")" ""
}

# A lookup below the root with ".." is EAGAIN when anything on the machine is renamed meanwhile.
@test "crun #725: the root's paths are found while the machine renames and mounts" {
    # known to happen: the same call, made once each time
    cat >"$WORK/storm" <<'PY'
import ctypes, os, struct, sys, time
directory, seconds = sys.argv[1], float(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs(directory + "/r/a/b")
children = []
for number in range(4):
    pid = os.fork()
    if pid == 0:
        one, two = f"{directory}/x{number}", f"{directory}/y{number}"
        os.mkdir(one)
        while os.getppid() != 1: os.rename(one, two); os.rename(two, one)
        os._exit(0)
    children.append(pid)
root = os.open(directory + "/r", os.O_PATH)
how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, 0x10)  # RESOLVE_IN_ROOT
again, end = 0, time.time() + seconds
while time.time() < end:
    fd = libc.syscall(437, root, b"a/b/../../a/b/..", how, 24)
    if fd >= 0: os.close(fd)
    elif ctypes.get_errno() == 11: again += 1
for pid in children: os.kill(pid, 9)
print(again)
PY
    # a destination through a link with ".."
    mkdir -p "$ROOT/var/a/b" && ln -s ../../a/b/../../a "$ROOT/var/a/link"
    configure '.mounts += [{destination: "/var/a/link/b/new", type: "tmpfs", source: "one"}] | .linux.maskedPaths += ["/var/a/link/b/../b"] | .linux.readonlyPaths += ["/var/a/link"]'
    ln -sfn b/../../a "$ROOT/var/a/link"
    timeout 60 python3 "$WORK/storm" "$WORK/s" 4 >"$WORK/again" 3>&- &
    storm=$!
    code=0
    for _ in $(seq 15); do pf_run || code=$?; done
    wait $storm
    is "$code" 0
    [ "$(cat "$WORK/again")" -gt 0 ]
}

@test "crun #725: a lookup that meets a rename each time is tried again, and in the end one error" {
    [ -x "${PINFOLD_FAULTS-}" ] || skip "no build with fault points (make pinfold-faults)"
    PINFOLD=$PINFOLD_FAULTS
    PINFOLD_OPEN_AGAIN=900 run pf_run
    ended 0
    PINFOLD_OPEN_AGAIN=100000 run pf_run
    ended 1 "Resource temporarily unavailable (EAGAIN)"
    is "${#lines[@]}" 1
}

# A machine that says it has AppArmor (its kernel's own word stands where this bats file runs).
claim_apparmor() {
    mount -t tmpfs tmpfs /sys/module && mkdir -p /sys/module/apparmor/parameters && echo Y >/sys/module/apparmor/parameters/enabled
}

@test "crun #110: a label goes to the kernel, not to a file of the image at the place of /proc" {
    mkdir -p "$BUNDLE/fake/self/attr/apparmor"
    echo untouched >"$BUNDLE/fake/self/attr/apparmor/exec" && cp "$BUNDLE/fake/self/attr/apparmor/exec" "$BUNDLE/fake/self/attr/exec"
    configure --arg source "$BUNDLE/fake" '.mounts |= ([{destination: "/proc", type: "bind", source: $source, options: ["rbind"]}] + map(select(.destination != "/proc")))
      | .linux.maskedPaths = [] | .linux.readonlyPaths = [] | .process.apparmorProfile = "pinfold-no-such-profile"'
    # what the faulty runtime did: it works
    unshare -m sh -c 'mount --bind "$1/fake" "$1/rootfs/proc" && exec chroot "$1/rootfs" sh -c "echo exec label >/proc/self/attr/apparmor/exec"' - "$BUNDLE"
    is "$(cat "$BUNDLE/fake/self/attr/apparmor/exec")" "exec label"
    echo untouched >"$BUNDLE/fake/self/attr/apparmor/exec"
    claim_apparmor
    run pf_run
    # and the link of the image
    rmdir "$ROOT/proc" && ln -s fake "$ROOT/proc" && mv "$BUNDLE/fake" "$ROOT/fake"
    configure '.mounts |= map(select(.destination != "/proc"))'
    first=$output
    run pf_run
    umount /sys/module
    contains "$first" process.apparmorProfile
    ended 1 process.apparmorProfile
    is "$(cat "$ROOT/fake/self/attr/apparmor/exec" "$ROOT/fake/self/attr/exec" | xargs)" "untouched untouched"
}

# What a profile then denies cannot be shown: no machine of these tests has AppArmor.
@test "crun #2063: in a user namespace too the AppArmor profile is applied, or the container does not run" {
    user_namespace
    configure '.process.apparmorProfile = "pinfold-no-such-profile"'
    command_is echo ran
    claim_apparmor
    run pf_run
    umount /sys/module
    ended 1 process.apparmorProfile
    lacks "$output" ran$'\n'
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

# -- devices ------------------------------------------------------------------------------------------------------

# Lets every device number be used, so that a test can make its own.
devices_are() { # JQ
    configure ".linux.devices = $1 | .linux.resources.devices = [{allow: true, access: \"rwm\"}]"
}

@test "crun #1047, #1389: parents of a device have mode 0755, its own mode is as written, whatever the umask" {
    devices_are '[{path: "/dev/deep/er/null", type: "c", major: 1, minor: 3, fileMode: 438}, {path: "/dev/typed", type: "c", major: 1, minor: 3, fileMode: 8624}]'
    command_is stat -c %a /dev/deep /dev/deep/er /dev/deep/er/null /dev/typed
    run bash -c 'umask 077; "$@"' - "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID"
    ended 0
    is "$(xargs <<<"$output")" "755 755 666 660"
}

@test "crun #1845: a device of the host that is there already keeps its owner and mode" {
    before=$(stat -c '%u %g %a' /dev/null)
    mkdir "$WORK/dev" && mknod -m 640 "$WORK/dev/mine" c 1 3 && chown 5:6 "$WORK/dev/mine"
    configure --arg source "$WORK/dev" '.mounts |= map(select(.destination != "/dev")) | .mounts = [{destination: "/dev", type: "bind", source: $source, options: ["rbind"]}] + .mounts'
    devices_are '[{path: "/dev/mine", type: "c", major: 1, minor: 3, fileMode: 438, uid: 1000, gid: 1000}]'
    run pf_run
    ended 0
    is "$(stat -c '%u %g %a' "$WORK/dev/mine")" "5 6 640"
    is "$(stat -c '%u %g %a' /dev/null)" "$before"
}

# Their owner is none of the namespace's: the kernel itself refuses. attack_escape.bats has a root to whom they belong.
@test "crun #1845: devices of a user namespace are the host's own, and stay as they are" {
    user_namespace
    before=$(stat -c '%u %g %a' /dev/null)
    script_is 'echo x >/dev/null && head -c 4 /dev/zero | wc -c; chmod 600 /dev/null 2>&1; chown 1:1 /dev/null 2>&1; stat -c %t:%T /dev/null'
    run pf_run
    ended 0
    is "$(head -n 1 <<<"$output")" 4
    is "$(tail -n 1 <<<"$output")" 1:3
    is "$(stat -c '%u %g %a' /dev/null)" "$before"
}

@test "devices: one that the host has no node for is made for a user namespace, with mode and owner" {
    user_namespace
    devices_are '[{path: "/dev/mine", type: "c", major: 1, minor: 5, fileMode: 111, uid: 10, gid: 11}, {path: "/dev/mine0", type: "c", major: 1, minor: 3},
      {path: "/dev/null", type: "c", major: 1, minor: 3, fileMode: 384}]'
    script_is 'stat -c "%n %t:%T %a %u:%g" /dev/mine /dev/mine0 /dev/null; head -c 4 /dev/mine | wc -c; echo x >/dev/mine0; grep " /dev/mine" /proc/self/mountinfo'
    run pf_run
    ended 0
    is "$(head -n 4 <<<"$output" | paste -sd,)" "/dev/mine 1:5 157 10:11,/dev/mine0 1:3 666 0:0,/dev/null 1:3 666 65534:65534,4"
    contains "$output" "nosuid,noexec"
    # with no uid of the container for its owner, it is an error as before
    configure '.linux.devices[0].uid = 100000'
    run pf_run
    ended 1 "linux.devices[0]"
    # a sandbox has the host's own node or none
    configure '.linux.devices[0].uid = 10'
    POLICY=''
    run pf_run
    ended 1 "/dev/mine"
}

@test "crun #1745: a read-only root without a /dev of its own: the devices of the image serve" {
    configure '.root.readonly = true | .mounts |= map(select(.destination | startswith("/dev") | not))'
    mknod -m 666 "$ROOT/dev/null" c 1 3
    command_is sh -c 'echo x >/dev/null && echo fine'
    is "$(pf_run)" fine
    # where nothing can be made at all
    find "$ROOT/dev" -mindepth 1 ! -name null -delete
    mount --bind "$ROOT" "$ROOT" && mount -o remount,bind,ro "$ROOT"
    run pf_run
    umount "$ROOT"
    ended 0 fine
    is "$(ls "$ROOT/dev")" null
}

@test "devices: a fifo, a trailing slash, one path twice, no mode" {
    devices_are '[{path: "/dev/fifo", type: "p"}, {path: "/dev/slash/", type: "c", major: 1, minor: 5},
      {path: "/dev/twice", type: "c", major: 1, minor: 3}, {path: "/dev/twice", type: "c", major: 1, minor: 3}, {path: "/dev/null", type: "c", major: 1, minor: 3}]'
    script_is 'test -p /dev/fifo && stat -c "%t:%T %a" /dev/slash /dev/twice'
    is "$(pf_run | xargs)" "1:5 666 1:3 666"
    POLICY=agent
    configure 'del(.linux.resources.devices)'
    command_is test -p /dev/fifo
    run pf_run
    # under the policy /dev has no devices of its own; a fifo is none
    ended 0
}

@test "devices: a type or number that there is not, and a path that is no path, are errors that name the field" {
    devices_are '[{path: "/dev/x", type: "a", major: 1, minor: 3}]'
    run pf_run
    ended 1 "linux.devices[0].type: expected c, b, u or p"
    devices_are '[{path: "/dev/x", type: "c", major: -1, minor: 3}]'
    run pf_run
    ended 1 "linux.devices[0].major"
    devices_are '[{path: "dev/x", type: "c", major: 1, minor: 3}]'
    run pf_run
    ended 1 "linux.devices[0].path: expected an absolute path"
    devices_are '[{path: "/dev/..", type: "c", major: 1, minor: 3}]'
    run pf_run
    ended 1 "linux.devices[0]"
}

@test "CVE-2026-41579: a /dev of the image that is a symbolic link leads nowhere" {
    mkdir "$WORK/volume"
    rm -rf "$ROOT/dev" && mkdir "$ROOT/volume" && ln -s /volume "$ROOT/dev"
    # who makes devices by path makes them in the volume
    unshare -m sh -c 'mount --bind "$1" "$2/volume" && exec chroot "$2" mknod /dev/mine c 1 3' - "$WORK/volume" "$ROOT"
    rm "$WORK/volume/mine"
    configure --arg source "$WORK/volume" '.mounts |= map(select(.destination | startswith("/dev") | not))
      | .mounts += [{destination: "/volume", type: "bind", source: $source, options: ["rbind"]}]'
    run pf_run
    ended 1 "/dev of the container's root is not a directory (CVE-2026-41579)"
    is "$(ls -A "$WORK/volume")" ""
}

@test "/dev/core leads to /proc/kcore where there is one" {
    [ -e /proc/kcore ] || skip "no /proc/kcore here"
    command_is readlink /dev/core
    is "$(pf_run)" /proc/kcore
}

# -- root, masks and propagation: other runtimes' faults ------------------------------------------------------------

@test "CVE-2019-18837: a link of the image as a mount point stays in the root" {
    ln -s /../../../../../../etc "$ROOT/out"
    mkdir "$WORK/source" && echo content >"$WORK/source/file"
    # by path it is the machine's
    is "$(unshare -m sh -c 'mount -t tmpfs tmpfs /etc && mkdir "$1/out/sub" && mount --bind "$2" "$1/out/sub" && cat /etc/sub/file' - "$ROOT" "$WORK/source")" content
    configure --arg source "$WORK/source" '.mounts += [{destination: "/out/sub", type: "bind", source: $source, options: ["rbind"]}]'
    command_is cat /etc/sub/file
    is "$(pf_run)" content
    [ ! -e /etc/sub ]
}

@test "CVE-2023-28642: /proc as a link of the image: masks and read-only paths are in force where it leads" {
    rmdir "$ROOT/proc" && mkdir "$ROOT/elsewhere" && ln -s elsewhere "$ROOT/proc"
    script_is 'wc -c </elsewhere/uptime; echo 77 >/elsewhere/sys/kernel/shmmni; cat /elsewhere/sys/kernel/shmmni'
    # without them
    configure '.linux.maskedPaths = [] | .linux.readonlyPaths = []'
    run pf_run
    [ "${lines[0]}" -gt 0 ]
    is "${lines[1]}" 77
    configure '.linux.maskedPaths = ["/proc/uptime"] | .linux.readonlyPaths = ["/proc/sys"]'
    run pf_run
    is "${lines[0]}" 0
    contains "${lines[1]}" "Read-only file system"
    lacks "$output" 77
}

@test "crun #950: read-only paths in a user namespace keep nosuid, nodev and noexec" {
    user_namespace
    configure '.linux.readonlyPaths = ["/proc/sys", "/dev/shm"]
      | .mounts |= map(if .destination == "/proc" then .options = ["nosuid", "nodev", "noexec"] else . end)'
    command_is awk '$5 == "/proc/sys" || $5 == "/dev/shm" { o[$5] = $6 } END { for (p in o) print p, o[p] }' /proc/self/mountinfo
    run pf_run
    ended 0
    for path in /proc/sys /dev/shm; do
        for flag in ro nosuid nodev noexec; do
            matches ",$(awk -v path="$path" '$1 == path { print $2 }' <<<"$output")," ",$flag,"
        done
    done
}

@test "youki #3536: a read-only root keeps the flags of its mount" {
    mount --bind "$ROOT" "$ROOT" && mount -o remount,bind,nosuid,nodev,noatime "$ROOT"
    configure '.root.readonly = true'
    command_is awk '$5 == "/" { print $6 }' /proc/self/mountinfo
    run pf_run
    umount "$ROOT"
    ended 0
    matches "$output" '^ro,nosuid,nodev,noatime'
}

@test "runc #1755, #4724: each word of rootfsPropagation, and one that is none" {
    command_is awk '$5 == "/" { for (i = 7; $i != "-"; i++) printf "%s ", $i; print "." }' /proc/self/mountinfo
    for word in shared rshared; do
        configure --arg word "$word" '.linux.rootfsPropagation = $word'
        matches "$(pf_run)" '^shared:[0-9]+ \.$'
    done
    for word in private rprivate; do
        configure --arg word "$word" '.linux.rootfsPropagation = $word'
        is "$(pf_run)" .
    done
    for word in unbindable runbindable; do
        configure --arg word "$word" '.linux.rootfsPropagation = $word'
        is "$(pf_run)" "unbindable ."
    done
    configure '.linux.rootfsPropagation = "sideways"'
    run pf_run
    ended 1 "linux.rootfsPropagation: expected shared, slave, private or unbindable"
}

@test "crun #1514, youki #3621: a root on a shared mount: slave hears of the host's mounts, and nothing goes back" {
    mount --bind "$ROOT" "$ROOT" && mount --make-shared "$ROOT"
    mkdir "$ROOT/later"
    configure '.linux.rootfsPropagation = "rslave" | .process.args = ["sleep", "1000"]'
    start_sleeper
    mount -t tmpfs hotplug "$ROOT/later"
    inside=$(pf exec "$ID" grep -c hotplug /proc/self/mountinfo || :)
    root=$(pf exec "$ID" awk '$5 == "/" { print $7 }' /proc/self/mountinfo)
    pf delete --force "$ID"
    outside=$(grep -c "$ROOT/proc" /proc/self/mountinfo || :)
    umount "$ROOT/later" && umount "$ROOT"
    is "$inside" 1
    matches "$root" '^master:'
    is "$outside" 0
}

@test "runc #2404, #4425, crun 1.15: after runs on a shared mount the host has the mounts that it had" {
    mount --bind "$WORK" "$WORK" && mount --make-rshared "$WORK"
    before=$(wc -l </proc/self/mountinfo)
    for _ in 1 2 3; do pf_run; done
    configure '.mounts += [{destination: "/data", type: "nosuchfs", source: "x"}]'
    run pf_run
    ended 1
    after=$(wc -l </proc/self/mountinfo)
    umount "$WORK"
    is "$after" "$before"
}

@test "maskedPaths: the host's null device does not change hands, and its mode cannot be changed from inside" {
    before=$(stat -c '%u %g %a %t:%T' /dev/null)
    echo secret >"$ROOT/etc/secret"
    configure '.linux.maskedPaths = ["/etc/secret"]'
    script_is 'chmod 600 /etc/secret 2>&1; chown 1000 /etc/secret 2>&1; echo x >/etc/secret && wc -c </etc/secret'
    run pf_run
    ended 0
    is "$(tail -n 1 <<<"$output")" 0
    is "$(grep -c "Read-only file system" <<<"$output")" 2
    is "$(stat -c '%u %g %a %t:%T' /dev/null)" "$before"
}
