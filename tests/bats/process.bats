#!/usr/bin/env bats
# config.md "Process", config-linux.md: what the container's first process is, read from inside.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

# A line of /proc/self/status inside the container.
status_line() { # NAME
    command_is grep "^$1:" /proc/self/status
    pf_run | cut -f2
}
all_capabilities() { # JQ-ARRAY of names for every set
    configure ".process.capabilities = ($1 as \$c | {bounding: \$c, effective: \$c, permitted: \$c, inheritable: [], ambient: []})"
}

@test "user: uid and gid, and no group of the caller's" {
    configure '.process.user = {uid: 1000, gid: 1000}'
    script_is 'id -u; id -g'
    is "$(pf_run | xargs)" "1000 1000"
    # who is only started has them
    contains "$(setpriv --groups 4711,4712 grep ^Groups: /proc/self/status)" "4711 4712"
    command_is grep ^Groups: /proc/self/status
    run setpriv --groups 4711,4712 timeout 20 "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID"
    is "$(xargs <<<"$output")" Groups:
}

@test "user: additional groups, in order, and no others" {
    configure '.process.user = {uid: 1000, gid: 1000, additionalGids: [29, 5000]}'
    is "$(status_line Groups | xargs)" "29 5000"
}

@test "umask: 0022 unless given" {
    script_is umask
    is "$(umask 077; pf_run)" 0022
    configure '.process.user.umask = 63'
    is "$(pf_run)" 0077
}

@test "working directory: made when it is missing, HOME and PWD do not matter" {
    configure '.process.cwd = "/made/for/it"'
    command_is pwd
    is "$(pf_run)" /made/for/it
}

@test "working directory that only the container's user may enter" {
    mkdir -m 700 "$ROOT/private"
    chown 1000:1000 "$ROOT/private"
    configure '.process.cwd = "/private" | .process.user = {uid: 1000, gid: 1000}
      | .process.capabilities = {}'
    command_is pwd
    is "$(pf_run)" /private
}

@test "working directory that is a file is an error" {
    configure '.process.cwd = "/etc/passwd"'
    run pf_run
    ended 1 /etc/passwd
}

@test "environment: exactly what is written, with newlines and '=' in values" {
    configure '.process.env = ["PATH=/bin:/usr/bin", "ONE=a=b", "TWO=first\nsecond", "HOME=/here"]'
    command_is env
    INHERITED_BY_NOBODY=1 run pf_run
    ended 0
    is "$(LC_ALL=C sort <<<"$output" | tr '\n' '|')" "HOME=/here|ONE=a=b|PATH=/bin:/usr/bin|TWO=first|second|"
}

@test "environment: HOME comes from the image's passwd when it is not given" {
    configure '.process.env = ["PATH=/bin:/usr/bin"] | .process.user = {uid: 1000, gid: 1000}'
    script_is 'echo $HOME'
    is "$(pf_run)" /home/user
}

@test "arguments arrive unchanged" {
    command_is printf '%s|' "" "a b" '$x' "'" '"' '*' $'\n'
    is "$(pf_run)" $'|a b|$x|\'|"|*|\n|'
}

@test "capabilities: each set is what is written" {
    configure '.process.capabilities = {bounding: ["CAP_CHOWN", "CAP_KILL", "CAP_NET_BIND_SERVICE"],
      effective: ["CAP_CHOWN"], permitted: ["CAP_CHOWN", "CAP_KILL"], inheritable: [], ambient: []}'
    command_is grep -E '^Cap' /proc/self/status
    # exec by root without ambient: permitted and effective become the bounding set, unless the runtime keeps root from it
    run pf_run
    contains "$output" "CapInh:"$'\t'"0000000000000000"
    contains "$output" "CapBnd:"$'\t'"0000000000000421"
    contains "$output" "CapAmb:"$'\t'"0000000000000000"
}

@test "capabilities: none at all" {
    configure '.process.capabilities = {}'
    command_is grep -E '^Cap(Prm|Eff|Bnd|Amb)' /proc/self/status
    run pf_run
    ended 0
    is "$(cut -f2 <<<"$output" | sort -u)" 0000000000000000
}

@test "capabilities: absent means none" {
    configure 'del(.process.capabilities)'
    is "$(status_line CapBnd)" 0000000000000000
}

@test "capabilities: ambient reaches a user who is not root" {
    configure '.process.user = {uid: 1000, gid: 1000} | ["CAP_NET_BIND_SERVICE"] as $c
      | .process.capabilities = {bounding: $c, effective: $c, permitted: $c, inheritable: $c, ambient: $c}'
    command_is grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status
    run pf_run
    is "$(cut -f2 <<<"$output" | sort -u)" 0000000000000400
}

@test "capabilities: a user who is not root and has no ambient ones has none" {
    configure '.process.user = {uid: 1000, gid: 1000}'
    all_capabilities '["CAP_CHOWN"]'
    is "$(status_line CapEff)" 0000000000000000
}

@test "rlimits" {
    configure '.process.rlimits = [{type: "RLIMIT_NOFILE", soft: 128, hard: 256}, {type: "RLIMIT_CORE", soft: 0, hard: 0}]'
    command_is grep -E 'open files|core file' /proc/self/limits
    run pf_run
    matches "$output" 'Max open files +128 +256 '
    matches "$output" 'Max core file size +0 +0 '
}

@test "no_new_privs: on and off as written" {
    configure '.process.noNewPrivileges = true'
    is "$(status_line NoNewPrivs)" 1
    configure '.process.noNewPrivileges = false'
    is "$(status_line NoNewPrivs)" 0
}

@test "oom_score_adj: as written" {
    configure '.process.oomScoreAdj = 321'
    command_is cat /proc/self/oom_score_adj
    is "$(pf_run)" 321
}

@test "hostname and domainname" {
    configure '.hostname = "pen" | .domainname = "example.test"'
    script_is 'hostname; cat /proc/sys/kernel/domainname'
    is "$(pf_run | xargs)" "pen example.test"
    lacks "$(hostname)" pen
}

@test "hostname without a uts namespace is an error" {
    configure '.hostname = "pen" | .linux.namespaces |= map(select(.type != "uts"))'
    run pf_run
    ended 1 hostname
    lacks "$(hostname)" pen
}

@test "sysctl of the container's namespaces, with dots and with slashes" {
    configure '.linux.sysctl = {"net.ipv4.ip_forward": "1", "kernel.shmmni": "77", "net/ipv4/conf/lo/forwarding": "1"}'
    command_is cat /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/shmmni /proc/sys/net/ipv4/conf/lo/forwarding
    is "$(pf_run | xargs)" "1 77 1"
}

@test "sysctl of the whole machine is refused, and so is a network one without a network namespace" {
    before=$(cat /proc/sys/vm/swappiness)
    configure '.linux.sysctl = {"vm.swappiness": "11"}'
    run pf_run
    ended 1 vm.swappiness
    is "$(cat /proc/sys/vm/swappiness)" "$before"
    configure '.linux.sysctl = {"net.ipv4.ip_forward": "1"} | .linux.namespaces |= map(select(.type != "network"))'
    run pf_run
    ended 1 net.ipv4.ip_forward
    configure '.linux.sysctl = {"../../../etc/passwd": "x"}'
    run pf_run
    ended 1 'linux.sysctl["../../../etc/passwd"]: not a sysctl key'
}

@test "namespaces: a new one for each that is listed, the runtime's own for the others" {
    configure '.linux.namespaces = [{type: "pid"}, {type: "mount"}, {type: "ipc"}, {type: "uts"}, {type: "network"}]'
    script_is 'for n in ipc mnt net pid uts; do readlink /proc/self/ns/$n; done'
    run pf_run
    for name in ipc mnt net pid uts; do
        contains "$output" "$name:["
        lacks "$output" "$(readlink /proc/self/ns/$name)"
    done
    configure '.linux.namespaces |= map(select(.type != "ipc"))'
    command_is readlink /proc/self/ns/ipc
    is "$(pf_run)" "$(readlink /proc/self/ns/ipc)"
}

@test "namespaces: joined by path" {
    unshare -u sh -c 'hostname joined; exec sleep 60' 3>&- &
    holder=$!
    wait_for bash -c "[ \"\$(readlink /proc/$holder/ns/uts)\" != '$(readlink /proc/self/ns/uts)' ]"
    wait_for bash -c "[ \"\$(nsenter -u -t $holder hostname)\" = joined ]"
    configure --arg path "/proc/$holder/ns/uts" 'del(.hostname) | .linux.namespaces |= (map(select(.type != "uts")) + [{type: "uts", path: $path}])'
    command_is hostname
    is "$(pf_run)" joined
    kill $holder
}

@test "namespaces: a path to another kind of namespace is an error" {
    configure 'del(.hostname) | .linux.namespaces |= (map(select(.type != "uts")) + [{type: "uts", path: "/proc/self/ns/net"}])'
    run pf_run
    [ "$status" = 1 ]
}

@test "user namespace: mappings as written, root inside is not root outside" {
    chmod 755 "$WORK" "$BATS_RUN_TMPDIR" "$BUNDLE"
    chown -R 100000:100000 "$ROOT/root" "$ROOT/home" "$ROOT/tmp"
    configure '.linux.namespaces += [{type: "user"}]
      | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 1000}, {containerID: 1000, hostID: 200000, size: 500}]
      | .linux.gidMappings = [{containerID: 0, hostID: 100000, size: 65536}]'
    script_is 'cat /proc/self/uid_map /proc/self/gid_map; id -u; sleep 0'
    run pf_run
    ended 0
    is "$(tr -s ' ' <<<"$output" | sed 's/^ //' | tr '\n' '|')" "0 100000 1000|1000 200000 500|0 100000 65536|0|"
}

@test "process 1 is the command, and nothing else of the runtime is in the container" {
    script_is 'for p in /proc/[0-9]*; do echo "${p#/proc/} $(cat $p/comm)"; done'
    run pf_run
    contains "$output" "1 sh"
    lacks "$output" pinfold
}

@test "only standard input, output and error are open" {
    command_is ls /proc/self/fd
    exec 7</etc/passwd 8</etc
    contains "$(ls /proc/self/fd | xargs)" "7 8" # who is only started has them
    run pf_run
    exec 7<&- 8<&-
    # 3 is ls's own
    is "$(xargs <<<"$output")" "0 1 2 3"
}

@test "--preserve-fds passes the next descriptors on, and no more" {
    script_is 'cat <&3; ls /proc/self/fd'
    run bash -c 'exec 3< <(echo passed) 4</etc/passwd; timeout 20 "$0" --root "$1" --policy unconfined run --preserve-fds 1 --bundle "$2" "$3" </dev/null' \
        "$PINFOLD" "$STATE" "$BUNDLE" "$ID"
    is "$(xargs <<<"$output")" "passed 0 1 2 3 4"
}

@test "signals: none is blocked and none is ignored, whatever the caller's mask" {
    command_is grep -E '^Sig(Blk|Ign)' /proc/self/status
    run python3 -c '
import signal, subprocess, sys
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
signal.signal(signal.SIGHUP, signal.SIG_IGN); signal.signal(signal.SIGPIPE, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.exit(subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, restore_signals=False).returncode)
' "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID"
    is "$(cut -f2 <<<"$output" | sort -u)" 0000000000000000
}

@test "the command leads a session and a process group of its own" {
    script_is 'read -r pid name state parent group session rest </proc/self/stat; echo $parent $group $session'
    # all are 1: the shell is process 1, its own leader
    run pf_run
    is "$output" "0 1 1"
}

@test "affinity and nice value are not the caller's" {
    command_is grep Cpus_allowed_list /proc/self/status
    all=$(grep Cpus_allowed_list /proc/self/status | cut -f2)
    run taskset -c 0 timeout 20 "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID"
    contains "$output" "$all"
}

@test "a session keyring of its own" {
    command_is sh -c 'cat /proc/keys 2>/dev/null; exit 0'
    run pf_run
    ended 0
    run pf run --no-new-keyring --bundle "$BUNDLE" "$ID"
    ended 0
}
