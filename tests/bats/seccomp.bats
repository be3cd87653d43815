#!/usr/bin/env bats
# config-linux.md "Seccomp".
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

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
