#!/usr/bin/env bats
# `pinfold explain` and `pinfold why`: what they say is what holds.
load helpers
load escapes

setup() {
    setup_container
    POLICY=''
}
teardown() { teardown_container; }

@test "explain: every line of the policy with its origin, each change with its rule, mechanisms, limits, volumes, hooks" {
    mkdir "$WORK/volume"
    configure --arg volume "$WORK/volume" '.process.env += ["GITHUB_TOKEN=value4711"]
      | .mounts += [{destination: "/data", type: "bind", source: $volume, options: ["rbind", "rw"]},
                    {destination: "/fixed", type: "bind", source: $volume, options: ["rbind", "ro"]}]
      | .hooks = {createRuntime: [{path: "/bin/true"}], startContainer: [{path: "/bin/false"}]}'
    pf explain --bundle "$BUNDLE" --json >"$WORK/explained"
    is "$(jq -c '.lines[] | select(.key == "network.mode")' "$WORK/explained")" '{"key":"network.mode","value":"allowlist","origin":"built-in agent"}'
    is "$(jq '[.lines[] | select(.origin == null)] | length' "$WORK/explained")" 0
    is "$(jq -r '.changes[] | select(.subject == "GITHUB_TOKEN") | .kind + " " + .rule' "$WORK/explained")" "removed credentials.inherit_user_credentials: false"
    is "$(jq -r '.mechanisms[] | select(.name == "network wall") | .state' "$WORK/explained")" enforced
    is "$(jq -r '.mechanisms[] | select(.how == null) | .name' "$WORK/explained")" ""
    is "$(jq -c '.unlimited | contains(["limits.memory", "limits.time"]), index("limits.pids")' "$WORK/explained" | xargs)" "true null"
    is "$(jq -c .persistent "$WORK/explained")" "[{\"path\":\"/data\",\"kind\":\"$WORK/volume\"}]"
    is "$(jq -c .hooks "$WORK/explained")" '[{"kind":"createRuntime","path":"/bin/true"}]'
    run pf explain --bundle "$BUNDLE"
    ended 0 "built-in agent"
    contains "$output" "createRuntime    /bin/true"
    contains "$output" "/data  ($WORK/volume)"
    contains "$output" "Without a limit"
    lacks "$output" value4711
}

@test "explain ID: what create has left says the same as before, also when the bundle has changed since" {
    configure '.process.env += ["GITHUB_TOKEN=value4711"]'
    command_is sleep 1000
    pf explain --bundle "$BUNDLE" --json | jq -S 'del(.config)' >"$WORK/before"
    pf_create
    configure '.process.env += ["NPM_TOKEN=fake"]'
    pf explain --json "$ID" | jq -S . >"$WORK/stored"
    jq -S . "$STATE/$ID/enforcement.json" | diff - "$WORK/stored"
    diff "$WORK/before" "$WORK/stored"
    contains "$(pf explain "$ID")" GITHUB_TOKEN
    in_none value4711 "$STATE/$ID/enforcement.json"
    is "$(stat -c %a "$STATE/$ID/enforcement.json")" 600
}

@test "explain ID: a mechanism that this machine lacks is not called enforced" {
    grep -q ':pids:' /proc/self/cgroup || skip "this machine has no v1 pids controller"
    command_is sleep 1000
    pf --cgroup-manager disabled create --bundle "$BUNDLE" "$ID" </dev/null >"$WORK/stdout" 2>"$WORK/stderr"
    is "$(pf explain --json "$ID" | jq -r '.mechanisms[] | select(.name == "number of processes") | .state')" unavailable
    contains "$(pf explain --json "$ID" | jq -c .unlimited)" limits.pids
}

@test "explain: a policy that confines nothing, both an ID and a bundle, an ID that is none" {
    run pf explain --bundle "$BUNDLE" --policy unconfined
    ended 0 "confines nothing"
    run pf explain --bundle "$BUNDLE" "$ID"
    ended 1 "not both"
    run pf explain "$ID"
    ended 1 "does not exist"
    POLICY=unconfined
    start_sleeper
    run pf explain "$ID"
    ended 1 "confines nothing"
}

# -- why ----------------------------------------------------------------------------------------------------------

@test "why: allow or deny, by which line, and the exit status says so" {
    run pf why ENV=GITHUB_TOKEN
    ended 3 "deny: the environment variable GITHUB_TOKEN"
    contains "$output" "credentials.inherit_user_credentials: false (built-in agent)"
    contains "$output" "credentials: {environment: [GITHUB_TOKEN]}"
    run pf why ENV=EDITOR
    ended 0 "allow: "
    run pf why ENV=EDITOR=ghp_0123456789abcdefghijABCDEFGHIJ012345
    ended 3 "shape of a GitHub token"
    run pf why ptrace
    ended 3 "processes: {ptrace: true}"
    run pf why 'socket(40, 1, 0)' getpid
    ended 3 "allow: the system call getpid"
    run pf why /tmp/new
    ended 0 "filesystem.scratch: /tmp"
    run pf why /etc/passwd
    ended 3 "filesystem.default: deny"
    run pf why --read /etc/passwd
    ended 0 "allow: reading"
    run pf why --read /root/.ssh/id_rsa
    ended 3 decoys
    run pf why example.org:443
    ended 3 network.allowed_hosts
    run pf why --policy unconfined ptrace /etc/passwd ENV=GITHUB_TOKEN example.org
    ended 0 "confines nothing"
    run pf why
    ended 1 expected
    run pf why 'socket(x)'
    ended 1 "socket(x)"
    run pf why --container nobody /tmp
    ended 1 "does not exist"
    run pf why --help
    ended 0 "3 one is denied"
}

@test "why: without a bundle a path is taken to be there, and a glob of filesystem.hidden hides it" {
    printf 'version: 1\nfilesystem: {hidden: ["/workspace/**/.env", "/secrets*"]}\n' >"$WORK/hidden.yaml"
    for path in /workspace/.env /workspace/a/b/.env /secrets1/x/y; do
        run pf why --policy "$WORK/hidden.yaml" -r "$path"
        ended 3 "by filesystem.hidden: "
        contains "$output" "hidden.yaml:2:"
    done
    run pf why --policy "$WORK/hidden.yaml" -r /workspace/env
    ended 0 "allow: "
}

@test "why HOST: names, names below, ports, addresses and ranges; a private address needs a line that says so" {
    cat >"$WORK/policy.yaml" <<'YAML'
version: 1
network: {allowed_hosts: ["example.org", "*.cdn.example.net:8443", {host: 10.1.0.0/16, ports: [443], private: true}, "8.0.0.0/5:443"]}
YAML
    local question
    for question in example.org example.org:443 EXAMPLE.ORG. a.cdn.example.net:8443 a.b.cdn.example.net:8443 10.1.2.3:443 8.8.8.8:443; do
        run pf why --policy "$WORK/policy.yaml" "$question"
        ended 0 "$WORK/policy.yaml:2:"
    done
    for question in example.org:22 www.example.org example.org.evil.net cdn.example.net:8443 xcdn.example.net:8443 a.cdn.example.net 10.2.0.1:443 \
        10.1.2.3:80 169.254.169.254 127.0.0.1 "[2001:db8::1]:443"; do
        run pf why --policy "$WORK/policy.yaml" "$question"
        ended 3 "network.allowed_hosts does not name it"
    done
    for question in "*.example.org" "not a host" 10.0.0.0/8 https://example.org; do
        run pf why --policy "$WORK/policy.yaml" "$question"
        ended 1 host
    done
    run pf why example.org
    ended 3 'network: {allowed_hosts: ["example.org'
}

@test "explain and why: while a policy learns, what is let through is not called denied" {
    printf 'version: 1\non_denied_action: log_only\n' >"$WORK/policy.yaml"
    POLICY=$WORK/policy.yaml
    script_is 'mount -t tmpfs none /tmp; touch /made && echo made'
    run pf why mount /made
    ended 0 "on_denied_action: log_only"
    run pf_run
    contains "$output" made
    is "$(pf explain --json --bundle "$BUNDLE" | jq -r '.mechanisms[] | select(.name == "root file system" or .name == "system calls") | .state' | xargs)" "off off"
}

@test "why --container: the policy that the container was created with" {
    printf 'version: 1\ncredentials: {environment: [GITHUB_TOKEN]}\n' >"$WORK/policy.yaml"
    POLICY=$WORK/policy.yaml
    start_sleeper
    POLICY=''
    run pf why --container "$ID" ENV=GITHUB_TOKEN
    ended 0 "credentials.environment: GITHUB_TOKEN ($WORK/policy.yaml:2:"
    run pf why ENV=GITHUB_TOKEN
    ended 3
}

# Both lists are lines "QUESTION allow|deny".
agree() { # ASKED ENFORCED LEAST
    local differences
    more_than "$(wc -l <"$1")" "$3"
    differences=$(diff "$1" "$2") || { printf '%s\n' "why says (<), and what is so (>):" "$differences" | head -40 >&2; return 1; }
}
# What `why` says of each line on standard input; the question is put where the %s is.
asked() { # FORMAT [OPTION...]
    local format=$1 questions
    shift
    mapfile -t questions
    # shellcheck disable=SC2059
    printf "$format\\0" "${questions[@]}" | xargs -0 "$PINFOLD" --root "$STATE" why --bundle "$BUNDLE" "$@" --json >"$WORK/answers" || [ $? = 123 ]
    paste -d ' ' <(printf '%s\n' "${questions[@]}") <(jq -r 'if .allowed then "allow" else "deny" end' "$WORK/answers")
}

@test "why and what is enforced agree: variables" {
    local first second
    for first in GITHUB GH MY DB AWS AZURE OPENAI NPM PIP SSH GPG CI MAX_OUTPUT PUBLIC KEYBOARD; do
        for second in _TOKEN _TOKENS _KEY _SECRET _PASSWORD _PASS _REGION _URL _NAME _FILE _ID _HOST _AUTH TOKEN KEY ""; do
            echo "$first$second"
        done
    done | sort -u >"$WORK/names"
    configure --rawfile names "$WORK/names" '.process.env += ($names | split("\n") | map(select(. != "") | . + "=some value"))'
    command_is env
    pf_run >"$WORK/env"
    asked 'ENV=%s' <"$WORK/names" >"$WORK/asked"
    while read -r first; do
        grep -q "^$first=" "$WORK/env" && echo "$first allow" || echo "$first deny"
    done <"$WORK/names" >"$WORK/enforced"
    more_than "$(grep -c allow "$WORK/enforced")" 20
    more_than "$(grep -c deny "$WORK/enforced")" 20
    agree "$WORK/asked" "$WORK/enforced" 200
}

@test "why and what is enforced agree: paths" {
    command -v gcc >/dev/null || skip "no C compiler"
    local directory
    mkdir -p "$WORK/data/.git/hooks" "$WORK/data/sub" "$WORK/fixed"
    configure --arg data "$WORK/data" --arg fixed "$WORK/fixed" '.process.cwd = "/work" | .process.env += ["HOME=/root"]
      | .mounts += [{destination: "/data", type: "bind", source: $data, options: ["rbind", "rw"]},
                    {destination: "/data/fixed", type: "bind", source: $fixed, options: ["rbind", "ro"]}]'
    mkdir -p "$WORK/data/fixed"
    for directory in / /etc /bin /usr /usr/bin /lib /home /home/user /root /root/.ssh /work /tmp /var /var/tmp /run /dev/shm /data /data/sub \
        /data/.git /data/.git/hooks /data/fixed /sys /sys/kernel; do
        printf "${directory%/}/%s\n" made .hidden passwd x.c Makefile
    done >"$WORK/paths"
    printf '%s\n' /etc/passwd /etc/group /bin/busybox /dev/null /dev/zero /proc/self/comm /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness >>"$WORK/paths"
    install_attempts enforced_paths
    command_is /attempt/enforced_paths
    pf run --bundle "$BUNDLE" "$ID" <"$WORK/paths" >"$WORK/out"
    asked %s <"$WORK/paths" >"$WORK/asked"
    # a directory of the kernel takes no new file from anybody
    sed -E 's/ worked$/ allow/; s/ (EROFS|EACCES|EPERM|ENOENT)$/ deny/' "$WORK/out" >"$WORK/enforced"
    more_than "$(grep -c allow "$WORK/enforced")" 20
    more_than "$(grep -c deny "$WORK/enforced")" 20
    agree "$WORK/asked" "$WORK/enforced" 100
}

@test "why and what is enforced agree: system calls and their arguments" {
    command -v gcc >/dev/null || skip "no C compiler"
    local family type
    {
        for family in $(seq 1 45); do
            for type in 1 2 5; do echo "socket $family $type 0"; done
        done
        for type in $(seq 0 22); do echo "socket 16 3 $type"; done
        for type in $(seq 8 31); do echo "unshare $((1 << type))"; done
        for type in 17 25 26 27 28 29 30; do echo "clone $((1 << type | 17)) 0 0 0 0"; done
        for type in $(seq $((0x5401)) $((0x5430))); do echo "ioctl 0 $type 0"; done
        for family in mount umount2 pivot_root move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr setns ptrace process_vm_readv \
            process_vm_writev pidfd_getfd kcmp bpf perf_event_open keyctl add_key request_key io_uring_setup io_uring_enter io_uring_register \
            userfaultfd open_by_handle_at kexec_load reboot init_module finit_module delete_module swapon swapoff acct quotactl settimeofday \
            clock_settime syslog fanotify_init getpid getppid getuid geteuid getgid getegid gettid sched_yield sync getpgrp umask times getcpu \
            alarm inotify_init1 epoll_create1 eventfd2 timerfd_create memfd_create getrusage getrlimit uname sysinfo \
            getitimer sched_getaffinity membarrier getrandom dup fsync close_range; do echo "$family"; done
    } | sort -u >"$WORK/calls"
    # the numbers of this machine, from the compiler's headers
    local name
    for name in $(cut -d' ' -f1 "$WORK/calls" | sort -u); do echo "$name __NR_$name"; done |
        gcc -E -P -include sys/syscall.h -x c - | grep -E '^[a-z0-9_]+ [0-9]+$' >"$WORK/numbers"
    install_attempts enforced_calls
    awk 'NR == FNR { number[$1] = $2; next }
        $1 in number { name = $1; sub(/^[^ ]+ ?/, ""); rest = $0; gsub(/ /, ","); print name "(" $0 ") " number[name] " " rest }' \
        "$WORK/numbers" "$WORK/calls" >"$WORK/questions"
    command_is /attempt/enforced_calls
    pf run --bundle "$BUNDLE" "$ID" <"$WORK/questions" >"$WORK/out"
    cut -d' ' -f1 "$WORK/questions" | asked %s >"$WORK/asked"
    # What the kernel itself says of arguments that are none is no denial of ours; nor, for netlink, that it lacks a protocol.
    sed -E 's/ (EPERM|ENOSYS|EAFNOSUPPORT)$/ deny/; /^socket\(16,/ s/ (EINVAL|EPROTONOSUPPORT)$/ deny/; s/ [A-Za-z0-9]+$/& /; / deny/! s/ [A-Za-z0-9]+ *$/ allow/; s/ +$//' "$WORK/out" >"$WORK/enforced"
    more_than "$(grep -c allow "$WORK/enforced")" 50
    more_than "$(grep -c deny "$WORK/enforced")" 50
    agree "$WORK/asked" "$WORK/enforced" 250
}
