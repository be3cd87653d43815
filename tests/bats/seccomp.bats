#!/usr/bin/env bats
# config-linux.md "Seccomp".
load helpers

setup() { setup_container; }
teardown() {
    [ -z "${AGENT_PID-}" ] || kill "$AGENT_PID" 2>/dev/null || :
    teardown_container
}

profile() { # JQ
    configure ".linux.seccomp = $1"
}
mode_of() {
    command_is grep '^Seccomp:' /proc/self/status
    pf_run | cut -f2
}

@test "no profile: no filter; a profile: a filter" {
    configure 'del(.linux.seccomp)'
    is "$(mode_of)" 0
    profile '{defaultAction: "SCMP_ACT_ALLOW", architectures: ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"], syscalls: []}'
    is "$(mode_of)" 2
}

@test "a call that is denied fails with the rule's errno" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO", errnoRet: 28}]}'
    script_is 'mkdir /x'
    run pf_run
    ended 1 "No space left on device"
}

@test "EPERM is the errno when none is given" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO"}]}'
    script_is 'mkdir /x'
    run pf_run
    ended 1 "Operation not permitted"
}

@test "a rule over arguments" {
    # kill(2) with signal 10 alone
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["kill"], action: "SCMP_ACT_ERRNO", errnoRet: 1, args: [{index: 1, value: 10, op: "SCMP_CMP_EQ"}]}]}'
    script_is 'sleep 5 & kill -10 $! 2>&1; kill -9 $! && echo ended'
    run pf_run
    contains "$output" "Operation not permitted"
    contains "$output" ended
}

@test "a killing rule kills" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_KILL_PROCESS"}]}'
    script_is 'mkdir /x; echo $?'
    run pf_run
    contains "$output" 159
}

@test "names of calls that this machine does not know are left out" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["no_such_call_ever", "mkdirat", "mkdir"], action: "SCMP_ACT_ERRNO"}]}'
    script_is 'mkdir /x'
    run pf_run
    ended 1 "Operation not permitted"
}

@test "an unknown action, operator, architecture or flag is an error that names it" {
    for case in '{defaultAction: "SCMP_ACT_NOSUCH"} SCMP_ACT_NOSUCH' \
        '{defaultAction: "SCMP_ACT_ALLOW", architectures: ["SCMP_ARCH_NOSUCH"]} SCMP_ARCH_NOSUCH' \
        '{defaultAction: "SCMP_ACT_ALLOW", flags: ["SECCOMP_FILTER_FLAG_NOSUCH"]} SECCOMP_FILTER_FLAG_NOSUCH' \
        '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["read"], action: "SCMP_ACT_ERRNO", args: [{index: 0, value: 1, op: "SCMP_CMP_NOSUCH"}]}]} SCMP_CMP_NOSUCH'; do
        profile "${case% *}"
        run pf_run
        ended 1 "${case##* }"
    done
}

@test "an allow list with a default of ENOSYS runs a shell" {
    # what podman's default profile does: unknown newer calls give ENOSYS, so that libc falls back
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["clone3", "openat2", "faccessat2", "statx"], action: "SCMP_ACT_ERRNO", errnoRet: 38}]}'
    script_is 'ls / >/dev/null && (echo child)'
    is "$(pf_run)" child
}

@test "a filter that denies what the runtime itself needs afterwards does not stop it (with no_new_privs)" {
    configure '.process.noNewPrivileges = true'
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["setuid", "setgid", "setgroups", "setresuid", "setresgid", "capset", "mount", "pivot_root", "chdir", "sendmsg", "close_range"], action: "SCMP_ACT_ERRNO"}]}'
    configure '.process.user = {uid: 1000, gid: 1000}'
    command_is id -u
    is "$(pf_run)" 1000
}

@test "exec is under the same filter" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO"}]}'
    start_sleeper
    run pf exec "$ID" mkdir /x
    ended 1 "Operation not permitted"
}

# -- actions, arguments, flags --------------------------------------------------------------------------------------

@test "every action does what it says" {
    local status
    for case in 'SCMP_ACT_KILL 159' 'SCMP_ACT_KILL_THREAD 159' 'SCMP_ACT_KILL_PROCESS 159' 'SCMP_ACT_TRAP 159' \
        'SCMP_ACT_ERRNO 1' 'SCMP_ACT_TRACE 1' 'SCMP_ACT_LOG 0' 'SCMP_ACT_ALLOW 0'; do
        # SIGSYS is 31; with no tracer attached TRACE is ENOSYS
        profile "{defaultAction: \"SCMP_ACT_ALLOW\", syscalls: [{names: [\"mkdir\", \"mkdirat\"], action: \"${case% *}\"}]}"
        script_is 'mkdir /x 2>/dev/null; s=$?; rmdir /x 2>/dev/null; exit $s'
        run pf_run
        ended "${case#* }"
    done
}

@test "youki #3489: a rule over several arguments holds only where all of them do" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["kill"], action: "SCMP_ACT_ERRNO", errnoRet: 28,
        args: [{index: 0, value: 1, op: "SCMP_CMP_EQ"}, {index: 1, value: 0, op: "SCMP_CMP_EQ"}]}]}'
    script_is 'sleep 9 & kill -0 1; kill -0 $! && echo other; kill -9 $!'
    run pf_run
    ended 0 "No space left on device"
    contains "$output" other
}

@test "two conditions on one argument are alternatives" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["kill"], action: "SCMP_ACT_ERRNO", errnoRet: 28,
        args: [{index: 1, value: 10, op: "SCMP_CMP_EQ"}, {index: 1, value: 12, op: "SCMP_CMP_EQ"}]}]}'
    script_is 'sleep 9 & for s in 10 12 0; do kill -$s $! 2>/dev/null; echo $s=$?; done; kill -9 $!'
    is "$(pf_run | tr '\n' ' ')" '10=1 12=1 0=0 '
}

@test "flags: TSYNC, LOG and SPEC_ALLOW are taken; WAIT_KILLABLE_RECV needs a listener" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", flags: ["SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW"],
        syscalls: [{names: ["mkdir"], action: "SCMP_ACT_ERRNO"}]}'
    is "$(mode_of)" 2
    profile '{defaultAction: "SCMP_ACT_ALLOW", flags: ["SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"]}'
    run pf_run
    ended 1 SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
}

@test "no flags: a filter costs no mitigation against speculation (crun #683: nor does it log)" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", flags: null, syscalls: [{names: ["mkdir"], action: "SCMP_ACT_ERRNO"}]}'
    configure '.process.noNewPrivileges = true'
    command_is grep -E '^Speculation_Store_Bypass:.*(force mitigated)' /proc/self/status
    run pf_run
    ended 1
}

@test "runc #4219: an empty list of architectures is the native one" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", architectures: [], syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO"}]}'
    script_is 'mkdir /x'
    run pf_run
    ended 1 "Operation not permitted"
}

@test "a filter that is larger than the kernel takes is one error, and nothing is left" {
    # jq: 3000 rules that cannot be joined
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [range(3000) | {names: ["kill"], action: "SCMP_ACT_ERRNO", args: [{index: 0, value: ., op: "SCMP_CMP_EQ"}]}]}'
    run pf_run
    ended 1 "the kernel takes 4096"
}

@test "crun #156: unknown calls are named in a warning; with the annotation they are an error" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["no_such_call_ever", "nor_this_one", "mkdirat", "no_such_call_ever"], action: "SCMP_ACT_ERRNO"}]}'
    run pf_run
    ended 0 "warning: linux.seccomp.syscalls: unknown system calls are ignored: no_such_call_ever nor_this_one"
    configure '.annotations["run.oci.seccomp_fail_unknown_syscall"] = "1"'
    run pf_run
    ended 1 'unknown system call "no_such_call_ever"'
}

@test "runc #4900: personality of the runtime itself is not in the filter's way" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["personality", "rt_sigprocmask", "close_range", "capset", "setgroups", "setresuid"], action: "SCMP_ACT_KILL_PROCESS"}]}'
    configure '.process.noNewPrivileges = true'
    command_is true
    run pf_run
    ended 0
}

# -- calls newer than the profile -----------------------------------------------------------------------------------

# Exit status: the errno of system call NUMBER.
errno_of() { # NUMBER
    command_is /syscall "$1"
    run pf_run
    echo "$status"
}

@test "a call newer than every one that the profile names is ENOSYS, an older one the default" {
    command -v cc >/dev/null || skip "no C compiler"
    cat >"$WORK/syscall.c" <<'C'
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) { return argc == 2 && syscall(atol(argv[1]), -1, 0, 0, 0, 0, 0) == -1 ? errno : 0; }
C
    cc -static -o "$ROOT/syscall" "$WORK/syscall.c"
    local allowed
    allowed='["read","write","openat","close","fstat","newfstatat","mmap","mprotect","munmap","brk","arch_prctl","set_tid_address","set_robust_list","rseq","prlimit64","readlink","readlinkat","getrandom","execve","exit_group","uname"]'
    # rseq is 334; 165 is mount, 435 clone3
    profile "{defaultAction: \"SCMP_ACT_ERRNO\", syscalls: [{names: $allowed, action: \"SCMP_ACT_ALLOW\"}]}"
    configure '.process.noNewPrivileges = true'
    is "$(errno_of 165)" 1
    is "$(errno_of 435)" 38
    is "$(errno_of 452)" 38
    # a default that kills would do so to every program of a newer libc
    profile "{defaultAction: \"SCMP_ACT_KILL_PROCESS\", syscalls: [{names: $allowed, action: \"SCMP_ACT_ALLOW\"}]}"
    is "$(errno_of 165)" 159
    is "$(errno_of 435)" 38
    # named: what the rule says
    profile "{defaultAction: \"SCMP_ACT_ERRNO\", syscalls: [{names: $allowed, action: \"SCMP_ACT_ALLOW\"}, {names: [\"clone3\"], action: \"SCMP_ACT_ERRNO\", errnoRet: 28}]}"
    is "$(errno_of 435)" 28
    is "$(errno_of 434)" 1
    is "$(errno_of 437)" 38
    # a default that lets through lets through
    profile '{defaultAction: "SCMP_ACT_LOG", syscalls: [{names: ["mkdir"], action: "SCMP_ACT_ERRNO"}]}'
    is "$(errno_of 437)" 22
}

# What the filter that the kernel gets says to calls with these numbers and bad arguments, in the ABI of an audit
# architecture: "allow", "errno N" or the kernel's number for the rest. A machine need not have that ABI.
filter_says() { # AUDIT-ARCHITECTURE NUMBER...
    command_is true
    pf_create
    python3 -c '
import struct, sys
data = open(sys.argv[1], "rb").read()[24:] # behind the header of process/seccomp.c
code = list(struct.iter_unpack("HBBI", data))
def verdict(call):
    a = at = 0
    while True:
        op, yes, no, k = code[at]
        at += 1
        if op == 0x20: a = struct.unpack_from("I", call, k)[0]
        elif op == 0x54: a &= k
        elif op == 0x05: at += k
        elif op == 0x06: return k
        else: at += yes if {0x15: a == k, 0x25: a > k, 0x35: a >= k, 0x45: a & k}[op] else no
for number in sys.argv[3:]:
    k = verdict(struct.pack("iIQ6Q", int(number), int(sys.argv[2], 0), 0, 0xffffffff, 0, 0, 0, 0, 0))
    print("allow" if k == 0x7fff0000 else f"errno {k & 0xffff}" if k >> 16 == 5 else hex(k))' "$STATE/$ID/seccomp.bpf" "$@"
    pf delete --force "$ID"
}

@test "runc #3474: a new call is ENOSYS through another ABI of the machine too" {
    [ "$(uname -m)" = x86_64 ] || skip "int 0x80 is of x86"
    command -v cc >/dev/null || skip "no C compiler"
    local allowed
    allowed='["read","write","openat","open","close","fstat","newfstatat","mmap","mprotect","munmap","brk","arch_prctl","set_tid_address","set_robust_list","rseq","prlimit64","readlink","readlinkat","getrandom","execve","exit_group","uname"]'
    configure '.process.noNewPrivileges = true'
    # 6 is close and allowed, 21 mount and denied, 435 clone3 and 452 fchmodat2 are newer
    profile "{defaultAction: \"SCMP_ACT_ERRNO\", architectures: [\"SCMP_ARCH_X86_64\"], syscalls: [{names: $allowed, action: \"SCMP_ACT_ALLOW\"}]}"
    is "$(filter_says 0x40000003 6 21 435 | xargs)" "0x0 0x0 0x0"
    profile "{defaultAction: \"SCMP_ACT_ERRNO\", architectures: [\"SCMP_ARCH_X86_64\", \"SCMP_ARCH_X86\"], syscalls: [{names: $allowed, action: \"SCMP_ACT_ALLOW\"}]}"
    is "$(filter_says 0x40000003 6 21 435 452 | paste -sd,)" "allow,errno 1,errno 38,errno 38"
    # the same numbers are others here: 6 is lstat, 21 access, 3 close
    is "$(filter_says 0xc000003e 6 21 435 3 | paste -sd,)" "errno 1,errno 1,errno 38,allow"
    # and by the kernel, where it has the ABI: a bad descriptor to close says so
    cat >"$WORK/syscall.c" <<'C'
#include <stdlib.h>
int main(int argc, char **argv) { long result; __asm__ volatile("int $0x80" : "=a"(result) : "a"(atol(argv[1])), "b"(-1), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11"); return result < 0 ? -result : 0; }
C
    cc -static -o "$ROOT/syscall" "$WORK/syscall.c"
    run "$ROOT/syscall" 6
    [ "$status" = 9 ] || return 0
    is "$(errno_of 6)" 9
    is "$(errno_of 21)" 1
    is "$(errno_of 435)" 38
    is "$(errno_of 452)" 38
}

# -- listenerPath ---------------------------------------------------------------------------------------------------

# An agent; $AGENT is its socket, $WORK/agent.log what it was told.
start_agent() { # [NUMBER=ERRNO...]
    AGENT=$WORK/agent.sock
    "$PINFOLD_TESTS/bats/seccomp-agent" "$AGENT" "$WORK/agent.log" "$@" 3>&- >"$WORK/agent.out" 2>&1 &
    AGENT_PID=$!
    wait_for test -S "$AGENT"
}
stop_agent() {
    is "$(cat "$WORK/agent.out")" ''
    kill "$AGENT_PID"
    wait "$AGENT_PID" || :
    AGENT_PID=''
}
notify() { # NAME...
    local names
    names=$(jq -cn '$ARGS.positional' --args -- "$@")
    profile "{defaultAction: \"SCMP_ACT_ALLOW\", listenerPath: \"$AGENT\", listenerMetadata: \"of this test\", syscalls: [{names: $names, action: \"SCMP_ACT_NOTIFY\"}]}"
}

@test "listenerPath: the agent gets the container process state and the listener, and answers" {
    start_agent 83=28 258=28
    notify mkdir mkdirat
    configure '.annotations.key = "value" | .process.args = ["sh", "-c", "mkdir /x; sleep 1000"]'
    pf_create
    [ ! -s "$WORK/agent.log" ] || fail "asked before start"
    pf start "$ID"
    wait_for grep -q 'No space left' "$WORK/stderr"
    is "$(jq -c '[.fds, .metadata, .state.status, .state.id, .state.bundle, .state.annotations.key]' "$WORK/agent.log")" \
        "[[\"seccompFd\"],\"of this test\",\"creating\",\"$ID\",\"$BUNDLE\",\"value\"]"
    is "$(jq .pid "$WORK/agent.log")" "$(state_of .pid)"
    is "$(jq .state.pid "$WORK/agent.log")" "$(state_of .pid)"
    is "$(jq -r '[.ociVersion, .state.ociVersion] | unique | length' "$WORK/agent.log")" 1
    stop_agent
}

@test "listenerPath: a startContainer hook runs without the agent, which is the program's: what notifies fails" {
    start_agent 83=28 258=28
    notify mkdir mkdirat
    mkdir -m 777 "$ROOT/hook"
    configure '.hooks.startContainer = [{path: "/bin/sh", args: ["sh", "-c", "mkdir /hook/x 2>/hook/said; ls /proc/self/fd | wc -l >/hook/fds"]}] |
        .process.args = ["true"]'
    run pf_run
    ended 0
    contains "$(cat "$ROOT/hook/said")" "Function not implemented"
    is "$(cat "$ROOT/hook/fds")" 4
    is "$(grep -c . "$WORK/agent.log")" 1
    stop_agent
}

@test "listenerPath: exec sends its own listener" {
    start_agent 83=28 258=28
    notify mkdir mkdirat
    start_sleeper
    run pf exec "$ID" mkdir /x
    ended 1 "No space left on device"
    is "$(jq -sc 'map(.state.status)' "$WORK/agent.log")" '["creating","running"]'
    is "$(jq -sc '.[1] | .pid != .state.pid' "$WORK/agent.log")" true
    is "$(jq -sc '.[1].state.pid' "$WORK/agent.log")" "$(state_of .pid)"
    stop_agent
}

@test "crun #1002: no deadlock where sendmsg, futex, close and execve are themselves notified" {
    start_agent
    notify sendmsg sendto recvmsg recvfrom futex close execve write nanosleep sched_yield
    command_is echo done
    is "$(LIMIT=20 pf_run)" done
    grep -qx 'call 59' "$WORK/agent.log.calls"
    # nothing of ours went through the filter: the first call that was asked about is execve
    is "$(head -1 "$WORK/agent.log.calls")" 'call 59'
    stop_agent
}

@test "runc #4796: nobody but the agent keeps the listener: without it a notified call is ENOSYS" {
    start_agent
    notify mkdir mkdirat
    start_sleeper
    run pf exec "$ID" mkdir /x
    ended 0
    stop_agent
    LIMIT=10 run pf exec "$ID" mkdir /y
    ended 255 listenerPath
    script_is 'read x; mkdir /y'
    pf delete --force "$ID"
    rm "$AGENT"
    start_agent
    mkfifo "$WORK/in"
    pf create --bundle "$BUNDLE" "$ID" <"$WORK/in" >"$WORK/stdout" 2>"$WORK/stderr" 3>&- &
    exec 9>"$WORK/in"
    wait $!
    pf start "$ID"
    stop_agent
    echo go >&9
    exec 9>&-
    wait_status stopped
    contains "$(cat "$WORK/stderr")" "Function not implemented"
}

@test "listenerPath: no agent there is an error of start that names it" {
    AGENT=$WORK/nobody.sock
    notify mkdir
    run pf_run
    ended 1 "linux.seccomp.listenerPath $WORK/nobody.sock"
}

@test "SCMP_ACT_NOTIFY needs a listenerPath, and a listenerPath an absolute path" {
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir"], action: "SCMP_ACT_NOTIFY"}]}'
    run pf_run
    ended 1 "without a listenerPath"
    profile '{defaultAction: "SCMP_ACT_ALLOW", listenerPath: "warden", syscalls: [{names: ["mkdir"], action: "SCMP_ACT_NOTIFY"}]}'
    run pf_run
    ended 1 'listenerPath: expected an absolute path'
    profile '{defaultAction: "SCMP_ACT_NOTIFY", listenerPath: "/run/x.sock"}'
    run pf_run
    ended 1 defaultAction
}

@test "a listenerPath that is longer than a socket address" {
    local deep=$WORK/$(printf 'd%.0s' $(seq 120))
    mkdir "$deep"
    start_agent 83=28 258=28
    mv "$AGENT" "$deep/agent.sock"
    AGENT=$deep/agent.sock
    notify mkdir mkdirat
    command_is mkdir /x
    run pf_run
    ended 1 "No space left on device"
    stop_agent
}

@test "agent: with a listenerPath the user's agent has the listener, and denied calls stay denied" {
    POLICY=agent
    start_agent 83=28 258=28
    notify mkdir mkdirat mount umount2 setns
    configure '.linux.seccomp.architectures = ["SCMP_ARCH_X86_64"]'
    script_is 'mkdir /tmp/x; mount -t tmpfs tmpfs /tmp 2>&1; echo kept'
    run pf_run
    ended 0 "No space left on device"
    contains "$output" "permission denied (are you root?)"
    contains "$output" kept
    # the agent was never asked about a call that the sandbox denies: its "continue" would have allowed it
    is "$(sort -u "$WORK/agent.log.calls")" 'call 83'
    has_record mechanism.degraded '.message | contains("not recorded one by one")'
    is "$(denials syscall.not_allowed)" 0
    run pf explain --bundle "$BUNDLE"
    contains "$output" "recorded as mechanism.degraded"
    stop_agent
}

@test "agent: a profile that denies the calls by which the listener is handed over" {
    POLICY=agent
    profile '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["sendmsg", "recvfrom", "recvmsg", "close", "futex", "nanosleep", "sched_yield"], action: "SCMP_ACT_ERRNO"}]}'
    script_is 'mount -t tmpfs tmpfs /tmp; echo ended'
    run pf_run
    ended 0 "permission denied (are you root?)"
    contains "$output" ended
    has_record syscall.not_allowed
}
