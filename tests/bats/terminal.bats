#!/usr/bin/env bats
# Terminals: script(1) stands for a person's, a small receiver for an engine's console socket.
load helpers

setup() {
    setup_container
    configure '.process.terminal = true'
}
teardown() { teardown_container; }

# The runtime under a terminal; the terminal's carriage returns are taken out.
in_terminal() { # WORD...
    local words
    printf -v words ' %q' timeout --foreground -k 5 20 "$PINFOLD" --root "$STATE" --policy unconfined "$@"
    script -qec "$words" /dev/null 3>&- | tr -d '\r'
    return "${PIPESTATUS[0]}"
}

@test "run with a terminal: the command has one of its own, as its controlling terminal" {
    script_is 'tty; test -t 0 && test -t 1 && test -t 2 && echo three; ls -l /dev/console | cut -c1; echo > /dev/tty && echo controlling'
    run in_terminal run --bundle "$BUNDLE" "$ID"
    contains "$output" /dev/pts/0
    contains "$output" three
    contains "$output" controlling
}

@test "run with a terminal passes the exit code on" {
    script_is 'exit 9'
    run in_terminal run --bundle "$BUNDLE" "$ID"
    ended 9
}

@test "run with a terminal: all output arrives" {
    script_is 'seq 20000; echo last'
    run in_terminal run --bundle "$BUNDLE" "$ID"
    ended 0
    is "$(wc -l <<<"$output")" 20001
    is "$(tail -n 1 <<<"$output")" last
}

# known: a process of another process group that sets a terminal up is stopped, and then cannot even be terminated.
@test "run with a terminal that another process group has: it runs, and is not stopped" {
    script_is 'tty; exit 5'
    # without --foreground, timeout(1) makes a process group of its own; the colon keeps the shell from becoming timeout
    run script -qec "timeout -k 5 20 '$PINFOLD' --root '$STATE' --policy unconfined run --bundle '$BUNDLE' '$ID'; echo status \$?; :" /dev/null 3>&-
    contains "$output" /dev/pts/0
    contains "$output" 'status 5'
}

@test "exec with a terminal" {
    configure '.process.terminal = false'
    start_sleeper
    run in_terminal exec --tty "$ID" sh -c 'tty; exit 4'
    ended 4 /dev/pts/
}

@test "create with a terminal and no console socket is an error, and so is a socket without a terminal" {
    run pf create --bundle "$BUNDLE" "$ID"
    ended 1 console
    configure '.process.terminal = false'
    run pf create --console-socket "$WORK/socket" --bundle "$BUNDLE" "$ID"
    ended 1 console
}

# Receives one descriptor as conmon does: one byte or more, exactly one descriptor, then reads what comes from it, into
# $WORK/received.
receive_at() { # SOCKET
    receiver "$1" "$WORK/received" &
    wait_for test -S "$1"
}
receiver() { # SOCKET OUTPUT
    timeout 30 python3 -c '
import array, os, socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
directory, name = os.path.split(sys.argv[1])
os.chdir(directory)
listener.bind(name)
listener.listen(1)
connection, _ = listener.accept()
data, ancillary, flags, _ = connection.recvmsg(4096, socket.CMSG_SPACE(4 * 8))
descriptors = array.array("i", ancillary[0][2])
out = open(sys.argv[2], "w")
print("bytes", len(data) >= 1, "descriptors", len(descriptors), "terminal", os.isatty(descriptors[0]), file=out, flush=True)
try:
    while True:
        chunk = os.read(descriptors[0], 4096)
        if not chunk:
            break
        out.write(chunk.decode()); out.flush()
except OSError:
    pass
' "$1" "$2" >/dev/null 2>&1 </dev/null 3>&-
}

@test "create with a console socket: the terminal's master end is sent" {
    receive_at "$WORK/socket"
    script_is 'tty; echo said'
    pf_create --console-socket "$WORK/socket"
    pf start "$ID"
    wait_status stopped
    wait_for grep -q said "$WORK/received"
    is "$(head -n 1 "$WORK/received")" "bytes True descriptors 1 terminal True"
    contains "$(tr -d '\r' <"$WORK/received")" /dev/pts/0
}

@test "youki #2915: a console socket whose path is longer than an address holds" {
    long=$WORK/$(printf '%0120d' 1)
    mkdir "$long"
    receive_at "$long/socket"
    script_is 'echo said'
    pf_create --console-socket "$long/socket"
    pf start "$ID"
    wait_for grep -q said "$WORK/received"
}

@test "exec --detach with a console socket, a process file and a pid file (as conmon calls it)" {
    configure '.process.terminal = false'
    start_sleeper
    receive_at "$WORK/socket"
    jq '.process | .terminal = true | .args = ["sh", "-c", "tty; echo said"]' "$BUNDLE/config.json" >"$WORK/process.json"
    pf exec --pid-file "$WORK/pid" --process "$WORK/process.json" --detach --console-socket "$WORK/socket" "$ID"
    matches "$(cat "$WORK/pid")" '^[0-9]+$'
    wait_for grep -q said "$WORK/received"
}

@test "consoleSize is the size of the terminal" {
    configure '.process.consoleSize = {height: 33, width: 111}'
    script_is 'stty size'
    receive_at "$WORK/socket"
    pf_create --console-socket "$WORK/socket"
    pf start "$ID"
    wait_for grep -q "33 111" "$WORK/received"
}

# known: crun 1.19.1: 100% CPU while nobody reads, and an exec that hung when its output was unread
@test "crun 1.19.1: a reader that is slow: nothing is lost, the runtime sleeps meanwhile" {
    script_is 'head -c 300000 /dev/zero | tr "\0" x; echo; echo last; exit 4'
    run timeout 60 python3 - "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID" 3>&- <<'PY'
import os, pty, sys, time
pid, master = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
time.sleep(3)  # it has started and fills what is between
ticks = lambda: sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))
before = ticks()
time.sleep(2)
spent = ticks() - before
text = b""
while True:
    try: chunk = os.read(master, 65536)
    except OSError: break
    if not chunk: break
    text += chunk
_, status = os.waitpid(pid, 0)
print("bytes", text.count(b"x"), "last", text.rstrip().endswith(b"last"), "status", os.waitstatus_to_exitcode(status), "busy", spent > 50)
PY
    is "$output" "bytes 300000 last True status 4 busy False"
}

@test "crun #1717: an exec whose output goes to a full pipe that does not block sleeps, and loses nothing" {
    configure '.process.terminal = false'
    start_sleeper
    run timeout 60 python3 - "$PINFOLD" --root "$STATE" exec --tty "$ID" sh -c 'head -c 300000 /dev/zero | tr "\0" x; echo; echo last; exit 4' 3>&- <<'PY'
import fcntl, os, pty, subprocess, sys, time
read, write = os.pipe()
fcntl.fcntl(write, fcntl.F_SETFL, os.O_NONBLOCK)
master, slave = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=write, stderr=write)
os.close(write)
time.sleep(2)
ticks = lambda: sum(map(int, open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))
before = ticks()
time.sleep(2)
spent = ticks() - before
text = b""
while chunk := os.read(read, 65536): text += chunk
print("bytes", text.count(b"x"), "last", text.rstrip().endswith(b"last"), "status", process.wait(10), "busy", spent > 20)
PY
    is "$output" "bytes 300000 last True status 4 busy False"
}

@test "crun #1717: an exec whose reader is gone for good ends with its command, without a core burnt" {
    configure '.process.terminal = false'
    start_sleeper
    run timeout 60 python3 - "$PINFOLD" --root "$STATE" exec --tty "$ID" sh -c 'trap "" HUP; n=0; while [ $n -lt 30 ]; do echo line; sleep 0.1; n=$((n + 1)); done; exit 4' 3>&- <<'PY'
import os, pty, subprocess, sys, time
read, write = os.pipe()
master, slave = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=write, stderr=write)
os.close(write)
os.read(read, 4)
os.close(read)
time.sleep(0.5)
ticks = lambda: sum(map(int, open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))
before = ticks()
time.sleep(1)
print("busy", ticks() - before > 20, "status", process.wait(20))
PY
    is "$output" "busy False status 4"
}

@test "a terminal that is closed under the runtime ends the wait with the container, not before" {
    configure '.process.terminal = false'
    start_sleeper
    run timeout 40 python3 - "$PINFOLD" --root "$STATE" exec --tty "$ID" sh -c 'trap "" HUP; sleep 1; exit 7' 3>&- <<'PY'
import os, pty, sys, time
read, write = os.pipe()
if os.fork() == 0:
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.argv[1], sys.argv[1:])
    time.sleep(0.5)
    os.close(master)
    _, status = os.waitpid(pid, 0)
    os.write(write, str(status).encode())
    os._exit(0)
os.close(write)
print("ended", len(os.read(read, 64)) > 0)
PY
    is "$output" "ended True"
}
