#!/usr/bin/env bats
# process.scheduler, ioPriority, execCPUAffinity, linux.personality and memoryPolicy: read back from inside, for the container's
# process and for exec. And who may have them under the sandbox's policy.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

# Field of /proc/PID/stat: 18 priority, 19 nice, 40 rt_priority, 41 policy (proc(5)).
script_of_stat() {
    script_is 'read -r line </proc/self/stat; set -- ${line##*) }; shift 15; echo "nice $2 rt ${23} policy ${24}"'
}

@test "scheduler: policy, nice, and the real-time ones with their priority" {
    script_of_stat
    is "$(pf_run)" "nice $(nice) rt 0 policy 0"
    configure '.process.scheduler = {policy: "SCHED_BATCH", nice: 7}'
    is "$(pf_run)" "nice 7 rt 0 policy 3"
    configure '.process.scheduler = {policy: "SCHED_IDLE"}'
    is "$(pf_run)" "nice $(nice) rt 0 policy 5"
    configure '.process.scheduler = {policy: "SCHED_OTHER", nice: -5}'
    is "$(pf_run)" "nice -5 rt 0 policy 0"
    chrt -f 1 true || skip "no real-time budget here"
    configure '.process.scheduler = {policy: "SCHED_FIFO", priority: 3, flags: ["SCHED_FLAG_RESET_ON_FORK"]}'
    run pf --cgroup-manager disabled run --bundle "$BUNDLE" "$ID"
    ended 0 "rt 3 policy 1"
    configure '.process.scheduler = {policy: "SCHED_RR", priority: 9}'
    run pf --cgroup-manager disabled run --bundle "$BUNDLE" "$ID"
    ended 0 "rt 9 policy 2"
}

@test "scheduler: SCHED_FIFO and SCHED_RR in a cgroup, which v1 makes without a real-time budget" {
    chrt -f 1 true || skip "no real-time budget here"
    needs_real_time_budget 300000
    script_of_stat
    configure '.process.scheduler = {policy: "SCHED_FIFO", priority: 3, flags: ["SCHED_FLAG_RESET_ON_FORK"]}'
    run pf_run
    ended 0 "rt 3 policy 1"
    configure '.process.scheduler = {policy: "SCHED_RR", priority: 9}'
    run pf_run
    ended 0 "rt 9 policy 2"
    # another beside it, and a process of exec: it has the container's scheduler
    command_is sleep 1000
    pf_create && pf start "$ID"
    script_of_stat
    run pf exec "$ID" sh -c "$(jq -r '.process.args[2]' "$BUNDLE/config.json")"
    ended 0 "rt 9 policy 2"
    run pf run --bundle "$BUNDLE" "$ID-two" </dev/null
    ended 0 "rt 9 policy 2"
}

@test "scheduler: what this kernel does not have, and what is out of range, is one error with its field" {
    for case in '{policy: "SCHED_ISO"} #process.scheduler SCHED_ISO' \
        '{policy: "SCHED_FIFO"} #process.scheduler.priority' \
        '{policy: "SCHED_OTHER", priority: 5} #process.scheduler.priority' \
        '{policy: "SCHED_BATCH", nice: 20} #process.scheduler.nice' \
        '{policy: "SCHED_DEADLINE", runtime: 5} #process.scheduler' \
        '{policy: "SCHED_OTHER", flags: ["SCHED_FLAG_NONE"]} #process.scheduler.flags[0]'; do
        configure ".process.scheduler = ${case% #*}"
        run pf_run
        ended 1 "${case##*#}"
        is "${#lines[@]}" 1
    done
}

@test "scheduler and ioPriority in a user namespace: they are the machine's to give" {
    configure '.linux.namespaces += [{type: "user"}] | .process.scheduler = {policy: "SCHED_OTHER", nice: -3}
      | .linux.uidMappings = [{containerID: 0, hostID: 0, size: 65536}] | .linux.gidMappings = .linux.uidMappings'
    script_of_stat
    is "$(pf_run)" "nice -3 rt 0 policy 0"
}

@test "ioPriority: class and level" {
    for case in 'IOPRIO_CLASS_BE 3 #best-effort: prio 3' 'IOPRIO_CLASS_IDLE 0 #idle' 'IOPRIO_CLASS_RT 1 #realtime: prio 1'; do
        read -r class level <<<"${case% #*}"
        configure --arg class "$class" --argjson level "$level" '.process.ioPriority = {class: $class, priority: $level}'
        command_is sleep 1000
        pf_create
        is "$(ionice -p "$(state_of .pid)")" "${case##*#}"
        pf delete --force "$ID"
    done
}

@test "exec: scheduler and ioPriority are the container's, or its document's (runc #4585)" {
    configure '.process.scheduler = {policy: "SCHED_BATCH", nice: 4} | .process.ioPriority = {class: "IOPRIO_CLASS_BE", priority: 6}'
    start_sleeper
    pf exec --detach "$ID" sleep 998
    process=$(pf ps --format json "$ID" | jq "map(select(. != $(state_of .pid)))[0]")
    is "$(ionice -p "$process")" "best-effort: prio 6"
    contains "$(chrt -p "$process")" SCHED_BATCH
    jq '.process | .args = ["sleep", "997"] | .ioPriority = {class: "IOPRIO_CLASS_IDLE"} | del(.scheduler)' "$BUNDLE/config.json" >"$WORK/process.json"
    pf exec --detach --pid-file "$WORK/pid" --process "$WORK/process.json" "$ID"
    is "$(ionice -p "$(cat "$WORK/pid")")" "idle"
    contains "$(chrt -p "$(cat "$WORK/pid")")" SCHED_BATCH
}

@test "execCPUAffinity: final is what the process has; initial is for the way into the cgroup" {
    [ "$(nproc --all)" -ge 2 ] || skip "one processor"
    start_sleeper
    document() { # AFFINITY
        jq ".process | .args = [\"grep\", \"Cpus_allowed_list\", \"/proc/self/status\"] | .execCPUAffinity = $1" "$BUNDLE/config.json" >"$WORK/process.json"
    }
    document '{initial: "0", final: "1"}'
    is "$(pf exec --process "$WORK/process.json" "$ID" | cut -f2)" 1
    document '{initial: "0"}'
    is "$(pf exec --process "$WORK/process.json" "$ID" | cut -f2)" "$(grep Cpus_allowed_list "/proc/$(state_of .pid)/status" | cut -f2)"
    document '{final: "8000"}'
    run pf exec --process "$WORK/process.json" "$ID"
    ended 255 "process.execCPUAffinity.final"
    document '{final: "1-"}'
    run pf exec --process "$WORK/process.json" "$ID"
    ended 255 "execCPUAffinity.final: expected a list of processors like 0-3,7"
    is "${#lines[@]}" 1
}

@test "execCPUAffinity is not for the container's own process; the caller's affinity reaches neither (runc #4041)" {
    configure '.process.execCPUAffinity = {initial: "0", final: "0"}'
    command_is grep Cpus_allowed_list /proc/self/status
    all=$(grep Cpus_allowed_list /proc/self/status | cut -f2)
    is "$(pf_run | cut -f2)" "$all"
    configure 'del(.process.execCPUAffinity)'
    start_sleeper
    run timeout 20 taskset -c 0 "$PINFOLD" --root "$STATE" exec "$ID" grep Cpus_allowed_list /proc/self/status 3>&-
    is "$(cut -f2 <<<"$output")" "$all"
}

@test "personality: LINUX32 for the container and for exec; LINUX otherwise, whatever the caller has" {
    [ "$(uname -m)" = x86_64 ] || skip "uname -m says it on x86_64"
    command_is cat /proc/self/personality
    run setarch -R timeout 20 "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID"
    ended 0 00000000
    configure '.linux.personality = {domain: "LINUX32"}'
    is "$(pf_run)" 00000008
    start_sleeper
    is "$(pf exec "$ID" uname -m)" i686
}

@test "personality under the engine's seccomp profile that denies it: set before the filter (runc #4900)" {
    configure '.linux.personality = {domain: "LINUX32"} | .process.noNewPrivileges = true
      | .linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["personality", "set_mempolicy", "sched_setattr", "ioprio_set"], action: "SCMP_ACT_ERRNO"}]}
      | .process.scheduler = {policy: "SCHED_BATCH"} | .process.ioPriority = {class: "IOPRIO_CLASS_IDLE"} | .linux.memoryPolicy = {mode: "MPOL_LOCAL"}'
    command_is cat /proc/self/personality
    is "$(pf_run)" 00000008
}

@test "personality: flags are refused, and so is another domain" {
    configure '.linux.personality = {domain: "LINUX", flags: ["ADDR_NO_RANDOMIZE"]}'
    run pf_run
    ended 1 "linux.personality.flags"
    configure '.linux.personality = {domain: "BSD"}'
    run pf_run
    ended 1 "linux.personality.domain"
}

@test "memoryPolicy: every mode, seen in numa_maps; and none is inherited" {
    [ -e /proc/self/numa_maps ] || skip "a kernel without memory nodes"
    script_is 'cut -d" " -f2 /proc/self/numa_maps | sort -u | xargs'
    is "$(pf_run)" default
    configure '.linux.memoryPolicy = {mode: "MPOL_BIND", nodes: "0"}'
    contains "$(pf_run)" bind:0
    configure '.linux.memoryPolicy = {mode: "MPOL_BIND", nodes: "0", flags: ["MPOL_F_STATIC_NODES"]}'
    contains "$(pf_run)" bind=static:0
    configure '.linux.memoryPolicy = {mode: "MPOL_INTERLEAVE", nodes: "0"}'
    contains "$(pf_run)" interleave:0
    configure '.linux.memoryPolicy = {mode: "MPOL_PREFERRED", nodes: "0"}'
    contains "$(pf_run)" prefer:0
    configure '.linux.memoryPolicy = {mode: "MPOL_LOCAL"}'
    contains "$(pf_run)" local
    start_sleeper
    contains "$(pf exec "$ID" sh -c 'cat /proc/self/numa_maps')" local
}

@test "crun #2181: memoryPolicy with empty nodes, a node that is not there, bad lists and flags is one error" {
    for case in '{mode: "MPOL_BIND"} #linux.memoryPolicy.nodes' '{mode: "MPOL_BIND", nodes: ""} #linux.memoryPolicy.nodes' \
        '{mode: "MPOL_BIND", nodes: "0-"} #linux.memoryPolicy.nodes' '{mode: "MPOL_BIND", nodes: "900"} #linux.memoryPolicy MPOL_BIND' \
        '{mode: "MPOL_NONE", nodes: "0"} #linux.memoryPolicy.mode' '{nodes: "0"} #linux.memoryPolicy.mode' \
        '{mode: "MPOL_BIND", nodes: "0", flags: ["MPOL_F_X"]} #linux.memoryPolicy.flags[0]'; do
        configure ".linux.memoryPolicy = ${case% #*}"
        run pf_run
        ended 1 "${case##*#}"
        is "${#lines[@]}" 1
    done
}

@test "agent: real time, a negative nice value and real-time I/O are cut as CAP_SYS_NICE is, and recorded; exec too" {
    POLICY=agent
    configure '.process.scheduler = {policy: "SCHED_FIFO", priority: 50} | .process.ioPriority = {class: "IOPRIO_CLASS_RT", priority: 0}
      | .process.apparmorProfile = "unconfined"'
    start_sleeper
    pid=$(state_of .pid)
    is "$(ionice -p "$pid")" "best-effort: prio 0"
    contains "$(chrt -p "$pid")" SCHED_OTHER
    has_record capability.dropped '.message | test("SCHED_FIFO")'
    has_record capability.dropped '.message | test("IOPRIO_CLASS_RT")'
    jq '.process | .args = ["sleep", "997"] | .scheduler = {policy: "SCHED_OTHER", nice: -20}' "$BUNDLE/config.json" >"$WORK/process.json"
    pf exec --detach --pid-file "$WORK/pid" --process "$WORK/process.json" "$ID"
    is "$(ps -o ni= -p "$(cat "$WORK/pid")" | xargs)" 0
    has_record capability.dropped '.message | test("nice -20")'
}

@test "agent: a lower priority than others is the sandbox's to have" {
    POLICY=agent
    configure '.process.scheduler = {policy: "SCHED_IDLE"} | .process.ioPriority = {class: "IOPRIO_CLASS_IDLE"}'
    start_sleeper
    contains "$(chrt -p "$(state_of .pid)")" SCHED_IDLE
    is "$(ionice -p "$(state_of .pid)")" idle
}
