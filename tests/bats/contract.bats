#!/usr/bin/env bats
# What engines call and read, a row each: conmon, podman, buildah, containerd's shim (go-runc), dockerd, CRI-O,
# conmon-rs, systemd. Words and exit codes: errors.bats; terminals: terminal.bats; hooks: hooks.bats.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

# -- the forms of the command line --------------------------------------------------------------------------------

@test "conmon: create with --no-pivot --no-new-keyring and both forms of options, then start, exec and delete as it calls them" {
    command_is sleep 1000
    timeout 20 "$PINFOLD" "--root=$STATE" --root "$STATE" --policy=unconfined --log-level debug create --bundle "$BUNDLE" \
        --pid-file "$WORK/pid" --no-new-keyring "$ID" </dev/null >"$WORK/out" 2>&1 3>&-
    is "$(cat "$WORK/out")" ""
    is "$(cat "$WORK/pid")" "$(state_of .pid)"
    pf start "$ID"
    # conmon-rs: no document, short options together, options end at the ID
    pf exec -d --pid-file="$WORK/exec" "$ID" sh -c 'sleep 997; :' --tty </dev/null >/dev/null 2>&1
    is "$(tr '\0' ' ' <"/proc/$(cat "$WORK/exec")/cmdline")" "sh -c sleep 997; : --tty "
    # podman: in an environment with nothing in it
    env -i "$PINFOLD" --root "$STATE" kill "$ID" 9 3>&-
    wait_status stopped
    env -i "$PINFOLD" --root "$STATE" delete --force "$ID" 3>&-
    env -i "$PINFOLD" --root "$STATE" delete --force "$ID" 3>&-
}

@test "go-runc: its global flags, long options with one dash, repeats; checkpoint and restore are parsed to the end" {
    global=("--root" "$STATE" --log "$WORK/log" --log-format json --rootless=true --debug)
    is "$("$PINFOLD" "${global[@]}" list --format=json)" "[]"
    run "$PINFOLD" "${global[@]}" checkpoint --image-path i --work-path w --leave-running --leave-running --tcp-established \
        --ext-unix-sk --shell-job --file-locks --page-server a --manage-cgroups-mode m --empty-ns network --lazy-pages \
        --status-fd 3 --pre-dump --parent-path ../p "$ID"
    ended 1 "not supported"
    run "$PINFOLD" "${global[@]}" restore --image-path i --work-path w --detach --pid-file p --console-socket s --no-pivot \
        -no-subreaper --tcp-close --lsm-profile selinux:x --lsm-mount-context c --bundle b "$ID"
    ended 1 "not supported"
    is "$(jq -r .level "$WORK/log")" error
    run "$PINFOLD" restore --lsm-mount-context
    ended 1 "requires an argument"
    run "$PINFOLD" checkpoint --help
    ended 0
}

@test "short options: alone, together, with their value attached; -- ends them; an unknown letter is an error" {
    command_is sleep 1000
    pf run -db "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1
    is "$(pf exec -u1000 -eA=1 "$ID" sh -c 'echo $(id -u) $A')" "1000 1"
    is "$(pf exec -- "$ID" echo --detach)" "--detach"
    run pf exec -dz "$ID" true
    ended 255 "unknown option -dz"
    pf delete -f "$ID"
}

@test "kill and delete --regex" {
    command_is sleep 1000
    pf run -d -b "$BUNDLE" "$ID-a1" </dev/null >/dev/null 2>&1
    pf run -d -b "$BUNDLE" "$ID-a2" </dev/null >/dev/null 2>&1
    pf run -d -b "$BUNDLE" "$ID-b" </dev/null >/dev/null 2>&1
    pf kill --regex "^$ID-a[12]\$" KILL
    wait_for bash -c "[ \"\$('$PINFOLD' --root '$STATE' list -f json | jq -c '[.[] | select(.status == \"stopped\") | .id]')\" = '[\"$ID-a1\",\"$ID-a2\"]' ]"
    pf delete --force --regex "^$ID-"
    is "$(pf list -q)" ""
    run pf kill --regex '(' KILL
    ended 1 "regular expression"
}

# -- what they read -----------------------------------------------------------------------------------------------

@test "--version: podman, dockerd and go-runc find their words, on standard output alone" {
    for flag in --version -v -V; do
        run "$PINFOLD" $flag
        ended 0
        matches "${lines[0]}" '^pinfold version [0-9.]+$'
        matches "${lines[1]}" '^commit: [0-9a-z-]+$'
        matches "${lines[2]}" '^spec: 1\.[0-9]+\.[0-9]+$'
    done
}

@test "runc #5329: features: every field that callers decode, and what this kernel takes" {
    "$PINFOLD" features >"$WORK/f" 2>"$WORK/e"
    [ ! -s "$WORK/e" ]
    is "$(jq -c .hooks "$WORK/f")" '["prestart","createRuntime","createContainer","startContainer","poststart","poststop"]'
    is "$(jq -c '[.mountOptions | index("ro", "rro", "rbind", "tmpcopyup") | type] | unique' "$WORK/f")" '["number"]'
    is "$(jq -c '[.linux.seccomp.actions | index("SCMP_ACT_ALLOW", "SCMP_ACT_NOTIFY") | type] | unique' "$WORK/f")" '["number"]'
    is "$(jq -c '[.linux.seccomp.operators | index("SCMP_CMP_EQ", "SCMP_CMP_MASKED_EQ") | type] | unique' "$WORK/f")" '["number"]'
    is "$(jq -r '.linux.seccomp.archs | index("SCMP_ARCH_X86_64") | type' "$WORK/f")" number
    is "$(jq -r '.linux.seccomp | .supportedFlags - .knownFlags | length' "$WORK/f")" 0
    is "$(jq -r '.linux.seccomp.supportedFlags | index("SECCOMP_FILTER_FLAG_TSYNC") | type' "$WORK/f")" number
    is "$(jq -r '[.linux.cgroup[] | type] | unique | join(" ")' "$WORK/f")" boolean
    is "$(jq -c '.linux | [.apparmor, .selinux, .intelRdt, .netDevices] | map(.enabled) | unique' "$WORK/f")" '[true]'
    is "$(jq -r '.annotations["org.opencontainers.runc.checkpoint.enabled"]' "$WORK/f")" false
    is "$(jq -r '.potentiallyUnsafeConfigAnnotations | index("dev.pinfold.") | type' "$WORK/f")" number
    is "$(jq -r '[.. | strings | select(test("\\s"))] | length' "$WORK/f")" 0
}

@test "spec: -b, --rootless; one that is there is kept" {
    mkdir "$WORK/new"
    "$PINFOLD" spec -b "$WORK/new" --rootless
    is "$(jq -r '[.linux.namespaces[].type] | index("user") | type' "$WORK/new/config.json")" number
    is "$(jq -c '.linux.uidMappings[0] | [.containerID, .size]' "$WORK/new/config.json")" '[0,1]'
    # CVE-2022-29162: no inheritable capabilities in the template
    is "$(jq -c '.process.capabilities.inheritable // []' "$WORK/new/config.json")" '[]'
    # a cgroup namespace where cgroups are those of v2 alone, as runc and crun have it
    case $(stat -fc %T /sys/fs/cgroup) in cgroup2fs) namespace=true ;; *) namespace=false ;; esac
    is "$(jq '[.linux.namespaces[].type] | index("cgroup") != null' "$WORK/new/config.json")" $namespace
    before=$(cat "$WORK/new/config.json")
    run "$PINFOLD" spec --bundle "$WORK/new"
    ended 1 "config.json exists"
    is "$(cat "$WORK/new/config.json")" "$before"
}

@test "list -f json: the objects of state, in one array, pid 0 when stopped" {
    pf run -d -b "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1
    wait_status stopped
    pf list -f json >"$WORK/list"
    is "$(wc -l <"$WORK/list")" 1
    is "$(jq -c '.[0] | [.id, .status, .pid, .bundle, .rootfs, .owner]' "$WORK/list")" "[\"$ID\",\"stopped\",0,\"$BUNDLE\",\"$ROOT\",\"root\"]"
    matches "$(jq -r '.[0].created' "$WORK/list")" '^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9:.]+Z$'
    is "$(pf state "$ID" | jq -cS .)" "$(jq -cS '.[0]' "$WORK/list")"
}

@test "--log: one object after a second failure, also of the command line; a file of somebody else's is only appended to" {
    for words in "state nope" "--no-such-flag" "start nope" "exec nope true"; do
        # shellcheck disable=SC2086
        run "$PINFOLD" --root "$STATE" --log "$WORK/log" --log-format json $words
        [ "$status" != 0 ]
        is "$(jq -s length "$WORK/log")" 1
        is "pinfold: $(jq -r .msg "$WORK/log")" "$output"
    done
    echo "kept" >"$WORK/other"
    run "$PINFOLD" --root "$STATE" --log "$WORK/other" --log-format json state nope
    is "$(head -n 1 "$WORK/other")" kept
    is "$(tail -n 1 "$WORK/other" | jq -r .level)" error
    run "$PINFOLD" --root "$STATE" --log "$WORK/text" state $'no"pe'
    matches "$(cat "$WORK/text")" '^time="20[^"]+Z" level=error msg="invalid container ID format"$'
}

# -- descriptors --------------------------------------------------------------------------------------------------

# Runs the runtime with descriptors 3 to 6 open but for 4, and nothing else of ours.
with_hole() { # WORD...
    timeout 20 python3 - "$PINFOLD" --root "$STATE" --policy "$POLICY" "$@" 3>&- <<'PY'
import os, subprocess, sys
for number in (3, 5, 6):
    read, write = os.pipe()
    os.dup2(write, number, inheritable=True)
os.set_inheritable(3, True)
def close():
    os.closerange(7, 100)
    try: os.close(4)
    except OSError: pass
sys.exit(subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, close_fds=False, preexec_fn=close).returncode)
PY
}

@test "youki #2893: --preserve-fds: those descriptors, holes among them stay holes, nothing else" {
    script_is 'echo $(ls /proc/self/fd)'
    # 4 is a hole, which ls itself then fills
    is "$(with_hole run --preserve-fds 3 --bundle "$BUNDLE" "$ID")" "0 1 2 3 4 5"
    script_is 'cat /proc/self/comm; for fd in 3 4 5 6 7 8; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; :'
    is "$(with_hole run --preserve-fds 3 --bundle "$BUNDLE" "$ID" | xargs)" "cat 3 5"
    is "$(with_hole run --bundle "$BUNDLE" "$ID" | xargs)" "cat"
    start_sleeper
    is "$(with_hole exec --preserve-fds=4 "$ID" sh -c 'for fd in 3 4 5 6 7 8; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; :' | xargs)" "3 5 6"
}

@test "LISTEN_FDS: the descriptors and the three variables, and nothing of it for another process" {
    script_is 'echo $LISTEN_FDS $LISTEN_PID $LISTEN_FDNAMES; for fd in 3 4 5 6; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; :'
    is "$(LISTEN_FDS=1 LISTEN_FDNAMES=web with_hole run --bundle "$BUNDLE" "$ID" | xargs)" "1 1 web 3"
    is "$(LISTEN_FDS=1 with_hole run --preserve-fds 3 --bundle "$BUNDLE" "$ID" | xargs)" "1 1 3 5 6"
    is "$(LISTEN_FDS=1 LISTEN_PID=1 with_hole run --bundle "$BUNDLE" "$ID" | xargs)" ""
    is "$(LISTEN_FDS=junk with_hole run --bundle "$BUNDLE" "$ID" | xargs)" ""
}

@test "agent: LISTEN_FDS that does not name the runtime itself hands nothing over" {
    POLICY=agent
    script_is 'echo "[$LISTEN_FDS]"; for fd in 3 4 5 6; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; :'
    is "$(LISTEN_FDS=1 with_hole run --bundle "$BUNDLE" "$ID" 2>"$WORK/error" | xargs)" "[]"
    contains "$(cat "$WORK/error")" LISTEN_PID
    # as systemd and conmon do it
    run timeout 20 bash -c 'export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@" 3</etc/hostname' - "$PINFOLD" --root "$STATE" run --bundle "$BUNDLE" "$ID" </dev/null
    is "$(xargs <<<"$output")" "[1] 3"
}

@test "--pidfd-socket: create and exec send a descriptor of the very process" {
    command_is sleep 1000
    cat >"$WORK/receive.py" <<'PY'
import array, os, socket, subprocess, sys
path, call = sys.argv[1], sys.argv[2:]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path); listener.listen(1); listener.settimeout(20)
process = subprocess.Popen(call, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
connection, _ = listener.accept()
data, ancillary, _, _ = connection.recvmsg(64, socket.CMSG_SPACE(64))
descriptors = array.array("i", ancillary[0][2])
info = open(f"/proc/self/fdinfo/{descriptors[0]}").read()
assert len(data) >= 1 and len(descriptors) == 1 and process.wait(20) == 0
print([l.split()[1] for l in info.splitlines() if l.startswith("Pid:")][0])
PY
    is "$(timeout 30 python3 "$WORK/receive.py" "$WORK/1" "$PINFOLD" --root "$STATE" --policy unconfined create --bundle "$BUNDLE" --pidfd-socket "$WORK/1" "$ID" 3>&-)" "$(state_of .pid)"
    pf start "$ID"
    is "$(timeout 30 python3 "$WORK/receive.py" "$WORK/2" "$PINFOLD" --root "$STATE" exec --detach --pid-file "$WORK/pid" --pidfd-socket "$WORK/2" "$ID" sleep 996 3>&-)" "$(cat "$WORK/pid")"
    run pf exec --detach --pid-file "$WORK/none" --pidfd-socket "$WORK/nowhere" "$ID" sleep 995
    ended 255 "pidfd socket $WORK/nowhere"
}

# -- readiness ----------------------------------------------------------------------------------------------------

# A service manager: prints what it is told, and answers the barrier.
manager() { # SOCKET OUTPUT
    timeout 60 python3 -c '
import array, os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sys.argv[1])
with open(sys.argv[2], "w") as out:
    while True:
        data, ancillary, _, _ = s.recvmsg(4096, socket.CMSG_SPACE(4 * 8))
        print(data.decode().strip(), file=out, flush=True)
        if data.startswith(b"BARRIER"):
            os.close(array.array("i", ancillary[0][2])[0])
            break
' "$1" "$2" >/dev/null 2>&1 </dev/null 3>&- &
    wait_for test -S "$1"
}

@test "crun #414, runc #3291: NOTIFY_SOCKET: the container has a socket of its own; start relays READY=1, MAINPID and a barrier, and nothing else" {
    manager "$WORK/manager" "$WORK/told"
    # busybox has no datagrams over Unix sockets: the message is sent from outside, to the socket inside
    script_is 'echo $NOTIFY_SOCKET; exec sleep 1000'
    NOTIFY_SOCKET=$WORK/manager pf_create
    [ -d "$STATE/$ID/notify" ]
    NOTIFY_SOCKET=$WORK/manager pf start "$ID" >/dev/null 2>&1 &
    starter=$!
    wait_for test -S "$STATE/$ID/notify/notify.sock"
    pid=$(state_of .pid)
    is "$(stat -c %a "/proc/$pid/root/run/notify/notify.sock")" 777
    # it does not return before, and holds no lock meanwhile
    sleep 0.3
    kill -0 $starter
    is "$(state_of .status)" running
    python3 -c 'import socket,sys; s=socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect(sys.argv[1]); s.send(b"STATUS=no\nX=1"); s.send(b"STATUS=x\nREADY=1\nMAINPID=1")' \
        "/proc/$pid/root/run/notify/notify.sock"
    wait $starter
    is "$(xargs <"$WORK/told")" "READY=1 MAINPID=$pid BARRIER=1"
    is "$(cat "$WORK/stdout")" /run/notify/notify.sock
    is "$(jq -r '[.process.env[] | select(startswith("NOTIFY"))] | length' "$STATE/$ID/config.json")" 0
}

@test "NOTIFY_SOCKET: a container that ends, or is deleted, before it is ready does not keep start" {
    manager "$WORK/manager" "$WORK/told"
    command_is true
    NOTIFY_SOCKET=$WORK/manager pf_create
    LIMIT=10 NOTIFY_SOCKET=$WORK/manager pf start "$ID"
    pf delete --force "$ID"
    command_is sleep 1000
    NOTIFY_SOCKET=$WORK/manager pf_create
    NOTIFY_SOCKET=$WORK/manager pf start "$ID" >/dev/null 2>&1 &
    starter=$!
    wait_status running
    LIMIT=10 pf delete --force "$ID"
    wait $starter || :
    # without the variable nothing of it is there
    pf_create
    [ ! -e "$STATE/$ID/notify" ]
}

@test "crun #262: a manager that sets NOTIFY_SOCKET for everything: run, and create and start of one name again and again" {
    manager "$WORK/manager" "$WORK/told"
    script_is 'test -S "$NOTIFY_SOCKET" && exit 6'
    for try in 1 2 3; do
        code=0
        LIMIT=10 NOTIFY_SOCKET=$WORK/manager pf_run || code=$?
        is "$code" 6
        NOTIFY_SOCKET=$WORK/manager pf_create
        LIMIT=10 NOTIFY_SOCKET=$WORK/manager pf start "$ID"
        NOTIFY_SOCKET=$WORK/manager pf delete --force "$ID"
        [ ! -e "$STATE/$ID" ]
    done
    # a path that a hand-made directory occupies is no reason to fail either
    mkdir -p "$ROOT/run/notify/notify.sock"
    code=0
    LIMIT=10 NOTIFY_SOCKET=$WORK/manager pf_run || code=$?
    is "$code" 6
}

@test "agent: NOTIFY_SOCKET of the caller is relayed; what the image or the configuration says of one is not" {
    POLICY=agent
    manager "$WORK/manager" "$WORK/told"
    command_is sleep 1000
    NOTIFY_SOCKET=$WORK/manager pf_create
    NOTIFY_SOCKET=$WORK/manager pf start "$ID" >/dev/null 2>&1 &
    starter=$!
    wait_for test -S "$STATE/$ID/notify/notify.sock"
    pid=$(state_of .pid)
    # the mount is read-only: no other file can be put there
    run nsenter -m -t "$pid" --root="/proc/$pid/root" /bin/touch /run/notify/x
    [ "$status" != 0 ]
    python3 -c 'import socket,sys; s=socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect(sys.argv[1]); s.send(b"READY=1")' \
        "/proc/$pid/root/run/notify/notify.sock"
    wait $starter
    is "$(xargs <"$WORK/told")" "READY=1 MAINPID=$pid BARRIER=1"
}

# -- exec as CRI-O calls it ---------------------------------------------------------------------------------------

@test "CRI-O: attached exec with terminal true and no console socket has its own pty, follows SIGWINCH, passes the exit code on" {
    start_sleeper
    jq '.process | .terminal = true | .args = ["sh", "-c", "tty; trap \"stty size; exit 6\" WINCH; stty size; while :; do sleep 0.1; done"]' "$BUNDLE/config.json" >"$WORK/p.json"
    run timeout 40 python3 - "$PINFOLD" --root "$STATE" exec --process "$WORK/p.json" "$ID" 3>&- <<'PY'
import fcntl, os, pty, select, signal, struct, sys, termios, time
pid, master = pty.fork()
if pid == 0:
    os.execve(sys.argv[1], sys.argv[1:], {"CRI_O_EXTERNAL": "1"})
def size(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
size(24, 80)
text, resized, until = b"", False, time.time() + 30
while time.time() < until:
    if select.select([master], [], [], 0.2)[0]:
        try: chunk = os.read(master, 4096)
        except OSError: break
        if not chunk: break
        text += chunk
    if b"24 80" in text and not resized:
        size(40, 132); resized = True
_, status = os.waitpid(pid, 0)
print(text.decode().replace("\r", ""), "status", os.waitstatus_to_exitcode(status))
PY
    ended 0
    matches "$output" '/dev/pts/[0-9]+'
    contains "$output" "24 80"
    contains "$output" "40 132"
    contains "$output" "status 6"
}

@test "exec --ignore-paused waits for the container to be resumed" {
    start_sleeper
    pf pause "$ID"
    run pf exec "$ID" true
    ended 255 paused
    pf exec --ignore-paused "$ID" echo said >"$WORK/said" &
    executor=$!
    sleep 0.5
    is "$(cat "$WORK/said")" ""
    pf resume "$ID"
    wait $executor
    is "$(cat "$WORK/said")" said
}

# -- the state directory ------------------------------------------------------------------------------------------

@test "state directory: for root whatever XDG_RUNTIME_DIR says; for root of a user namespace there" {
    mkdir -p "$WORK/xdg/pinfold/$ID-seen"
    chmod 700 "$WORK/xdg/pinfold"
    lacks "$(XDG_RUNTIME_DIR=$WORK/xdg "$PINFOLD" list -q)" "$ID-seen"
    is "$(XDG_RUNTIME_DIR=$WORK/xdg unshare -U -r "$PINFOLD" list -q)" "$ID-seen"
    chmod 755 "$BATS_RUN_TMPDIR" "$WORK"
    chown -R 1000:1000 "$WORK/xdg"
    is "$(XDG_RUNTIME_DIR=$WORK/xdg setpriv --reuid 1000 --regid 1000 --clear-groups "$PINFOLD" list -q 2>&1)" "$ID-seen"
}

@test "state directory: made with the sticky bit, for nobody else" {
    pf_create
    is "$(stat -c %a "$STATE")" 1700
    is "$(stat -c %a "$STATE/$ID")" 700
}

@test "delete --force of a container whose state file is broken, or that has none" {
    mkdir -p "$STATE/$ID"
    pf delete --force "$ID"
    [ ! -e "$STATE/$ID" ]
    mkdir -p "$STATE/$ID"
    echo '{"id": ' >"$STATE/$ID/state.json"
    run pf delete "$ID"
    ended 1 state.json
    run pf delete --force "$ID"
    ended 0 "warning: container $ID"
    [ ! -e "$STATE/$ID" ]
}

@test "crun #660, #1200, runc #4231: creating and deleting one name over and over, while others list, look and delete, never fails with anything but the known words" {
    command_is sleep 1000
    touch "$WORK/go"
    while [ -e "$WORK/go" ]; do pf list -f json; pf state "$ID"; done >/dev/null 2>"$WORK/readers" &
    reader=$!
    while [ -e "$WORK/go" ]; do pf delete --force "$ID"; done >/dev/null 2>"$WORK/deleters" &
    deleter=$!
    for try in $(seq 15); do
        pf_create || cat "$WORK/stderr" >>"$WORK/creators"
        pf delete --force "$ID" 2>>"$WORK/deleters" || :
    done
    rm "$WORK/go"
    wait $reader $deleter || :
    is "$(grep -vE 'does not exist' "$WORK/readers")" ""
    is "$(grep -vE 'does not exist' "$WORK/deleters")" ""
    is "$(cat "$WORK/creators" 2>/dev/null)" ""
}

# -- processes ----------------------------------------------------------------------------------------------------

# known: crun status of exiting inits; exec into a dying container fails with setns EBADF elsewhere
@test "exec into a container whose init was just killed: it is not running, whatever the kernel still says" {
    for try in 1 2 3 4 5; do
        start_sleeper
        kill -9 "$(state_of .pid)"
        run pf exec "$ID" true
        ended 255
        matches "$output" '(container not running|cannot exec in a stopped container)$'
        run pf start "$ID"
        ended 1 "container not running"
        run pf kill "$ID" TERM
        ended 1
        is "$output" "pinfold: container not running"
        pf delete "$ID"
    done
}

@test "an init that is a zombie counts as stopped" {
    command_is sleep 1000
    # the parent does not reap
    timeout 30 python3 - "$PINFOLD" "$STATE" "$BUNDLE" "$ID" 3>&- <<'PY'
import ctypes, json, os, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
pinfold, state, bundle, name = sys.argv[1:]
call, null = [pinfold, "--root", state, "--policy", "unconfined"], subprocess.DEVNULL
subprocess.run(call + ["create", "--bundle", bundle, name], stdin=null, stdout=null, stderr=null, check=True)
see = lambda: json.loads(subprocess.check_output(call + ["state", name]))
pid = see()["pid"]
os.kill(pid, 9)
for _ in range(50):
    if open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z": break
    time.sleep(0.1)
assert (see()["status"], see()["pid"]) == ("stopped", 0), see()
subprocess.run(call + ["delete", name], check=True)
assert os.waitpid(pid, 0)[1] == 9
PY
}

@test "crun #1442: SIGWINCH to a run without a terminal does not end it" {
    script_is 'sleep 5; exit 5' # seen while it runs, also on a slow machine
    timeout 30 "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID" </dev/null 3>&- &
    runner=$!
    wait_for pf state "$ID"
    wait_status running
    kill -WINCH $(pgrep -P $runner -x pinfold || echo $runner)
    code=0; wait $runner || code=$?
    is "$code" 5
}

@test "the caller's supplementary groups are kept where the annotation asks, and not under the agent policy" {
    configure '.annotations = {"run.oci.keep_original_groups": "1"} | .process.user.additionalGids = [29]'
    command_is grep Groups /proc/self/status
    is "$(timeout 20 setpriv --groups 77,78 "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID" 3>&- | cut -f2 | xargs)" "77 78"
    is "$(timeout 20 setpriv --groups 77,78 "$PINFOLD" --root "$STATE" run --bundle "$BUNDLE" "$ID" 3>&- | cut -f2 | xargs)" "29"
    has_record policy.annotation.ignored
}

@test "twenty containers one after the other and ten at once leave nothing behind" {
    command_is true
    for number in $(seq 20); do
        pf create --bundle "$BUNDLE" "$ID-$number" </dev/null >/dev/null 2>&1
        pf start "$ID-$number"
        pf delete --force "$ID-$number"
    done
    pids=()
    for number in $(seq 10); do
        (pf create --bundle "$BUNDLE" "$ID-c$number" </dev/null && pf start "$ID-c$number" && pf delete --force "$ID-c$number") >"$WORK/c$number" 2>&1 &
        pids+=($!)
    done
    wait "${pids[@]}"
    is "$(cat "$WORK"/c[0-9]*)" ""
    is "$(ls "$STATE")" ""
}
