#!/usr/bin/env bats
# pinfold as a runtime handler of the Kubernetes Container Runtime Interface: pods and containers in containerd, called as
# the kubelet calls it. What a RuntimeClass names is the handler: pinfold (the agent policy) or pinfold-unconfined.

load engine.bash
load containerd.bash
load egress.bash

bats_require_minimum_version 1.5.0

setup_file() {
    engine_begin containerd ctr jq nft python3 iptables openssl
    [ -x /usr/lib/cni/bridge ] || skip "containernetworking-plugins is not installed"
    for PYTHON in python3 /usr/bin/python3 ''; do
        ! "$PYTHON" -c 'import grpc, google.protobuf' 2>/dev/null || break
    done
    [ -n "$PYTHON" ] || skip "python3-grpcio is not installed"
    export PYTHON
    node_begin
    containerd_begin
    ctr -n k8s.io images import "$HOUSE/image.tar" >/dev/null
    ctr -n k8s.io images import "$HOUSE/pause.tar" >/dev/null
    listen
    # the bridge is there as long as one pod is on it
    NAME=keep
    pod pinfold-unconfined || { grep -E "level=(warn|error|fatal)" "$HOUSE/containerd.log" | tail -20 >&2; return 1; }
    watch_bridges
}

teardown_file() {
    engine_end
}

setup() {
    NAME=t$BATS_TEST_NUMBER
}

# Nothing of a test's pods is left after StopPodSandbox and RemovePodSandbox.
teardown() {
    local id
    [ -e "$BATS_TEST_TMPDIR/pods" ] || return 0
    while read -r id; do
        cri StopPodSandbox "{\"pod_sandbox_id\": \"$id\"}" >/dev/null
        cri RemovePodSandbox "{\"pod_sandbox_id\": \"$id\"}" >/dev/null
    done <"$BATS_TEST_TMPDIR/pods"
    cat "$BATS_TEST_TMPDIR/pods" "$BATS_TEST_TMPDIR/containers" 2>/dev/null | while read -r id; do
        nothing_left_of "$id" || return 1
    done
    is "$(ls "/proc/$HOLDER/root/run/netns" | wc -l)" 1 # that of the first pod
}

# A node's own /etc/pinfold and /var/lib/kubelet: a copy of /etc and an empty /var/lib in the house's mount namespace.
node_begin() {
    cp -a /etc "$HOUSE/node-etc"
    rm -rf "$HOUSE/node-etc/pinfold"
    mkdir -p "$HOUSE/node-etc/pinfold/policies"
    cp "$HOUSE/etc/containers/policy.json" "$HOUSE/node-etc/containers/" 2>/dev/null || :
    inside sh -ec 'mount --bind "$1" /etc; mount -t tmpfs -o mode=755 tmpfs /var/lib' sh "$HOUSE/node-etc"
}
# A file of the node's /etc/pinfold.
node_file() { # NAME LINE...
    printf '%s\n' "${@:2}" >"$HOUSE/node-etc/pinfold/$1"
    chmod 644 "$HOUSE/node-etc/pinfold/$1"
}
# A pod's volumes as the kubelet makes them: the projected token of the service account, on a tmpfs of its own, and an emptyDir.
kubelet_volumes() {
    VOLUMES=/var/lib/kubelet/pods/$(cat /proc/sys/kernel/random/uuid)/volumes
    inside sh -ec 'token=$1/kubernetes.io~projected/kube-api-access-x7k2p
        mkdir -p "$token" "$1/kubernetes.io~empty-dir/shared"
        chmod 777 "$1/kubernetes.io~empty-dir/shared"
        mount -t tmpfs -o mode=1777 tmpfs "$token"
        mkdir "$token/..2026_01_01"
        ln -s ..2026_01_01 "$token/..data"
        for name in token ca.crt namespace; do
            echo shibboleth >"$token/..2026_01_01/$name"
            ln -s "..data/$name" "$token/$name"
        done' sh "$VOLUMES"
}
# What the kubelet adds to a container of that pod.
with_volumes() { # prints a JQ-EDIT
    printf '.mounts += [{container_path: "/var/run/secrets/kubernetes.io/serviceaccount", host_path: "%s", readonly: true}, {container_path: "/shared", host_path: "%s"}]' \
        "$VOLUMES/kubernetes.io~projected/kube-api-access-x7k2p" "$VOLUMES/kubernetes.io~empty-dir/shared"
}

cri() { # METHOD [JSON]
    inside "$PYTHON" "$ENGINES/cri" "$SOCKET" "$@"
}

# A pod under HANDLER; its id is $POD, its configuration $POD_CONFIG.
pod() { # HANDLER [JQ-EDIT]
    POD_CONFIG=$(jq -cn --arg name "$NAME" --arg logs "$HOUSE/tmp/$NAME" '{metadata: {name: $name, uid: ($name + "-uid"), namespace: "default"},
        hostname: "shed", log_directory: $logs, linux: {cgroup_parent: "/kubepods", security_context: {namespace_options: {pid: 1}}}} | '"${2:-.}")
    POD=$(cri RunPodSandbox "$(jq -cn --arg handler "$1" --argjson config "$POD_CONFIG" '{config: $config, runtime_handler: $handler}')" | jq -r .pod_sandbox_id)
    [ -n "$POD" ] || return 1
    [ -z "${BATS_TEST_TMPDIR-}" ] || echo "$POD" >>"$BATS_TEST_TMPDIR/pods"
}
# A created container in $POD; its id is $CONTAINER.
create() { # NAME JQ-EDIT COMMAND...
    local config
    config=$(jq -cn --arg name "$1" --arg image "$IMAGE" '{metadata: {name: $name}, image: {image: $image}, command: $ARGS.positional,
        log_path: ($name + ".log"), linux: {security_context: {namespace_options: {pid: 1}}}} | '"$2" --args -- "${@:3}")
    CONTAINER=$(cri CreateContainer "$(jq -cn --arg pod "$POD" --argjson config "$config" --argjson sandbox "$POD_CONFIG" \
        '{pod_sandbox_id: $pod, config: $config, sandbox_config: $sandbox}')" | jq -r .container_id)
    [ -n "$CONTAINER" ] || return 1
    echo "$CONTAINER" >>"$BATS_TEST_TMPDIR/containers"
}
# The same, started.
container() { # NAME JQ-EDIT COMMAND...
    create "$@" && cri StartContainer "{\"container_id\": \"$CONTAINER\"}" >/dev/null
}
# ExecSync: output, errors and exit code of a command.
execute() { # ID COMMAND...
    local answer
    answer=$(cri ExecSync "$(jq -cn --arg id "$1" '{container_id: $id, cmd: $ARGS.positional}' --args -- "${@:2}")") || return 99
    jq -j .stdout <<<"$answer"
    jq -j .stderr <<<"$answer" >&2
    return "$(jq .exit_code <<<"$answer")"
}
exec_in() { # ID COMMAND...: the quicker way
    ctr -n k8s.io task exec --exec-id "e$RANDOM$RANDOM" "$@"
}
status_of() { # ID: state (1 running, 2 exited), exit code, reason
    cri ContainerStatus "{\"container_id\": \"$1\"}" | jq -r '.status | "\(.state) \(.exit_code) \(.reason)"'
}
ended_with() { # ID STATE...: waits for it
    local try
    for try in $(seq 50); do
        [ "$(status_of "$1")" != "$2" ] || return 0
        sleep 0.1
    done
    is "$(status_of "$1")" "$2"
}
cgroup_of() { # ID CONTROLLER FILE: what is in it
    cat "/proc/$HOLDER/root/sys/fs/cgroup/$2/kubepods/$1/$3"
}

@test "a pod with two containers: one network and hostname, exec, logs, stats, update, stop" {
    pod pinfold
    matches "$(cri PodSandboxStatus "{\"pod_sandbox_id\": \"$POD\"}" | jq -r '.status | "\(.state) \(.network.ip) \(.runtime_handler)"')" '^0 10\.89\.8\.[0-9]+ pinfold$'
    container first '.linux.resources = {memory_limit_in_bytes: 67108864, cpu_period: 100000, cpu_quota: 50000, cpu_shares: 512, cpuset_cpus: "0"}' \
        sh -c 'echo begun; echo wrong >&2; trap "exit 9" TERM; mkdir /tmp/www; echo served >/tmp/www/index.html; httpd -p 8080 -h /tmp/www; while :; do sleep 0.1; done'
    first=$CONTAINER
    container second . sleep 1000
    second=$CONTAINER
    # exec
    is "$(execute "$first" hostname) $(execute "$second" hostname)" "shed shed"
    is "$(execute "$first" readlink /proc/self/ns/net)" "$(execute "$second" readlink /proc/self/ns/net)"
    is "$(execute "$second" wget -qO- http://127.0.0.1:8080/)" served
    run execute "$first" sh -c 'echo out; exit 5'
    ended 5 out
    run execute "$first" no-such-command
    ended 99 "executable file not found in \$PATH"
    # logs, as the kubelet reads them: time, stream, F, line
    is "$(cut -d' ' -f2- "$HOUSE/tmp/$NAME/first.log" | sort)" $'stderr F wrong\nstdout F begun'
    # limits, and their update
    is "$(cgroup_of "$first" memory memory.limit_in_bytes) $(cgroup_of "$first" cpu cpu.cfs_quota_us) $(cgroup_of "$first" cpu cpu.shares) $(cgroup_of "$first" cpuset cpuset.cpus)" \
        "67108864 50000 512 0"
    cri UpdateContainerResources "{\"container_id\": \"$first\", \"linux\": {\"memory_limit_in_bytes\": 134217728, \"cpu_quota\": 25000, \"cpu_period\": 100000}}" >/dev/null
    is "$(cgroup_of "$first" memory memory.limit_in_bytes) $(cgroup_of "$first" cpu cpu.cfs_quota_us)" "134217728 25000"
    stats=$(cri ContainerStats "{\"container_id\": \"$first\"}")
    is "$(jq -r .stats.attributes.metadata.name <<<"$stats")" first
    more_than "$(jq .stats.cpu.usage_core_nano_seconds.value <<<"$stats")" 0
    more_than "$(jq .stats.memory.working_set_bytes.value <<<"$stats")" 0
    # stop: by the signal that it catches; by force
    cri StopContainer "{\"container_id\": \"$first\", \"timeout\": 10}" >/dev/null
    is "$(status_of "$first")" "2 9 Error"
    cri StopContainer "{\"container_id\": \"$second\", \"timeout\": 0}" >/dev/null
    is "$(status_of "$second")" "2 137 Error"
    cri RemoveContainer "{\"container_id\": \"$second\"}" >/dev/null
    run status_of "$second"
    contains "$output" NOT_FOUND
}

@test "exit codes: 0, 3, out of memory; a command that is not there fails StartContainer" {
    pod pinfold
    container zero . true
    ended_with "$CONTAINER" "2 0 Completed"
    container three . sh -c 'exit 3'
    ended_with "$CONTAINER" "2 3 Error"
    container hungry '.linux.resources.memory_limit_in_bytes = 33554432' tail /dev/zero
    ended_with "$CONTAINER" "2 137 OOMKilled"
    run container missing . no-such-command
    ended 1 "executable file not found in \$PATH"
    run container "not-executable" . /etc/passwd
    ended 1 "permission denied"
}

@test "a container with a terminal, a user, a read-only root, mounts and a pod's sysctls" {
    mkdir -p "$HOUSE/work"
    pod pinfold '.linux.sysctls = {"net.ipv4.ip_forward": "1"}'
    container terminal '.tty = true | .working_dir = "/tmp" | .envs = [{key: "COLOUR", value: "red"}] |
        .mounts = [{container_path: "/workspace", host_path: "'"$HOUSE/work"'", readonly: true}] |
        .linux.security_context += {run_as_user: {value: 1000}, readonly_rootfs: true}' \
        sh -c 'tty; id -u; pwd; echo $COLOUR; touch /x /workspace/x 2>&1 | grep -c Read-only; cat /proc/sys/net/ipv4/ip_forward'
    ended_with "$CONTAINER" "2 0 Completed"
    is "$(cut -d' ' -f4 "$HOUSE/tmp/$NAME/terminal.log" | tr -d '\r' | xargs)" "/dev/pts/0 1000 /tmp red 2 1"
}

@test "a pod of the handler pinfold-unconfined is a plain one; the agent policy refuses the node's network" {
    pod pinfold-unconfined '.linux.security_context.namespace_options.network = 2 | .hostname = ""'
    container plain '.envs = [{key: "GITHUB_TOKEN", value: "x"}] | .linux.security_context.namespace_options.network = 2' \
        sh -c 'touch /x && echo written; ls /sys/class/net | grep -c cni0; echo $GITHUB_TOKEN'
    ended_with "$CONTAINER" "2 0 Completed"
    is "$(cut -d' ' -f4 "$HOUSE/tmp/$NAME/plain.log" | xargs)" "written 1 x"
    run pod pinfold '.linux.security_context.namespace_options.network = 2 | .hostname = "" | .metadata.name += "-node"'
    ended 1 namespace.host.refused
}

@test "the agent policy in a pod: token of the service account, secrets and devices removed, --privileged hardened" {
    mkdir -p "$HOUSE/token"
    echo shibboleth >"$HOUSE/token/token"
    pod pinfold '.linux.security_context.privileged = true'
    container agent '.envs = [{key: "GITHUB_TOKEN", value: "shibboleth"}] | .linux.security_context.privileged = true |
        .mounts = [{container_path: "/var/run/secrets/kubernetes.io/serviceaccount", host_path: "'"$HOUSE/token"'", readonly: true}]' sleep 1000
    run execute "$CONTAINER" sh -c 'cat /var/run/secrets/kubernetes.io/serviceaccount/token; tr "\0" "\n" </proc/1/environ'
    lacks "$output" shibboleth
    is "$(execute "$CONTAINER" grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status)" $'CapEff:\t00000000800004fb\nNoNewPrivs:\t1\nSeccomp:\t2'
    run execute "$CONTAINER" touch /usr/x
    ended 1 "Read-only file system"
    is "$(execute "$CONTAINER" sh -c 'ls /dev | sort | paste -sd" "')" "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero"
    records_of "$CONTAINER" '.status_detail == "credential.env.removed"' >/dev/null
    records_of "$CONTAINER" '.status_detail == "credential.mount.removed"' >/dev/null
}

# What the policies of the tests below are told by: the words of what this container may do.
CAN='touch /workspace/x 2>/dev/null && echo workspace; touch /etc/x 2>/dev/null && echo etc; chown 1000 /tmp 2>/dev/null && echo chown
    [ -s /etc/group ] && echo group; [ "$FIELD_TOKEN" = furrow ] && echo token; [ "$GITHUB_TOKEN" = shibboleth ] && echo github
    cat /var/run/secrets/kubernetes.io/serviceaccount/token 2>/dev/null; touch /shared/x 2>/dev/null && echo shared; :'
# A container of the pod with the kubelet's volumes and two secrets.
pod_container() { # NAME
    container "$1" '.envs = [{key: "FIELD_TOKEN", value: "furrow"}, {key: "GITHUB_TOKEN", value: "shibboleth"}] | '"$(with_volumes)" sleep 1000
}
field_policy() {
    node_file policies/field.yaml 'filesystem: {writable: ["@mounts", /workspace], hidden: [/etc/group]}' \
        'network: {mode: none}' 'processes: {capabilities: []}' 'credentials: {environment: [FIELD_TOKEN]}'
}

# Without this one, the two that follow could not fail.
@test "unconfined, a pod has the service account's token and all that the policy field would take" {
    kubelet_volumes
    pod pinfold-unconfined
    pod_container plain
    is "$(execute "$CONTAINER" sh -c "$CAN" | xargs)" "workspace etc chown group token github shibboleth shared"
}

@test "dev.pinfold.policy of a pod: what is selectable holds in both of its containers and their execs; the token is absent" {
    field_policy
    node_file config.yaml 'selectable: [field]'
    kubelet_volumes
    pod pinfold '.annotations = {"dev.pinfold.policy": "field"}'
    pod_container first
    first=$CONTAINER
    pod_container second
    for each in "$first" "$CONTAINER"; do
        is "$(execute "$each" sh -c "$CAN" | xargs)" "workspace token shared"
        run execute "$each" reach tcp 10.89.8.1 9000
        ended 1 ECONNREFUSED
        # and so the record says, which names the line that would have let the token in
        is "$(records_of "$each" '.status_detail == "policy.applied"' | jq -r .policy.name)" field
        record=$(records_of "$each" '.status_detail == "credential.mount.removed"')
        is "$(jq -r .finding_info.title <<<"$record" | grep -c serviceaccount)" 1
        is "$(jq -r .action_id <<<"$record")" 2
        records_of "$each" '.status_detail == "credential.env.removed" and (.message | contains("GITHUB_TOKEN"))' >/dev/null
    done
    # the remedy of the record, as it stands, and nothing else lets it in
    jq -r .unmapped.remedy <<<"$record" >"$BATS_TEST_TMPDIR/remedy"
    node_file policies/field.yaml "$(cat "$BATS_TEST_TMPDIR/remedy")"
    cri StopContainer "{\"container_id\": \"$first\", \"timeout\": 0}" >/dev/null
    pod pinfold '.annotations = {"dev.pinfold.policy": "field"} | .metadata.name += "-again"'
    pod_container again
    is "$(execute "$CONTAINER" sh -c "$CAN" | xargs)" "chown group shibboleth shared"
}

@test "dev.pinfold.policy of a pod: what is not selectable is ignored and recorded, in both of its containers" {
    field_policy
    node_file policies/wide.yaml 'filesystem: {writable: [/]}' 'credentials: {inherit_user_credentials: true}'
    kubelet_volumes
    for asked in wide field unconfined; do
        node_file config.yaml 'selectable: [other]'
        [ "$asked" != wide ] || rm "$HOUSE/node-etc/pinfold/config.yaml"
        pod pinfold '.annotations = {"dev.pinfold.policy": "'"$asked"'"} | .metadata.name += "-'"$asked"'"'
        for each in first second; do
            pod_container "$each"
            is "$(execute "$CONTAINER" sh -c "$CAN" | xargs)" "chown group shared"
            is "$(records_of "$CONTAINER" '.status_detail == "policy.applied"' | jq -r .policy.name)" agent
            record=$(records_of "$CONTAINER" '.status_detail == "policy.annotation.ignored"')
            contains "$(jq -r .message <<<"$record")" "asks for the policy \"$asked\", which is not selectable"
            records_of "$CONTAINER" '.status_detail == "credential.mount.removed"' >/dev/null
        done
        # the pause container too
        records_of "$POD" '.status_detail == "policy.annotation.ignored"' >/dev/null
    done
}

@test "annotations of a pod narrow, item by item; what would widen is recorded" {
    kubelet_volumes
    pod pinfold '.annotations = {"dev.pinfold.processes.capabilities": "[]", "dev.pinfold.filesystem.writable": "[/etc]",
        "dev.pinfold.credentials.environment": "[GITHUB_TOKEN]", "other.annotation": "x"}'
    pod_container narrow
    is "$(execute "$CONTAINER" sh -c "$CAN" | xargs)" "group"
    is "$(records_of "$CONTAINER" '.status_detail == "policy.annotation.ignored"' | wc -l)" 2
}

@test "a published port of a pod is answered under the agent policy" {
    pod pinfold '.port_mappings = [{container_port: 8080, host_port: 18083}]'
    container server . sh -c 'mkdir /tmp/www && echo served >/tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www'
    for try in $(seq 20); do
        run inside python3 -c 'import urllib.request; print(urllib.request.urlopen("http://10.89.8.1:18083/", timeout=2).read().decode())'
        [ "$status" != 0 ] || break
        sleep 0.2
    done
    ended 0 served
}

# Without this one, the next test could not fail.
@test "without the wall everything gets out of a pod" {
    pod pinfold-unconfined
    container plain . sleep 1000
    forget_sent
    run exec_in "$CONTAINER" reach tcp 10.89.8.1 9000
    ended 0 sent
    run exec_in "$CONTAINER" reach udp 10.89.8.1 9000
    ended 0 sent
    sleep 0.2
    is "$(arrived tcp) $(arrived udp)" "19 8"
}

@test "nothing gets out of a pod, from either of its containers" {
    pod pinfold
    container first . sleep 1000
    first=$CONTAINER
    container second . sleep 1000
    walled "$first" 10.89.8.1
    run exec_in "$CONTAINER" reach tcp 203.0.113.7 443
    ended 1 ECONNREFUSED
    # A namespace has one packet log: that of the first container with its wall, here the pause container.
    record=$(records_of "$POD" '.status_detail == "net.address.literal" and .dst_endpoint.ip == "203.0.113.7"')
    is "$(jq -r .actor.process.cmd_line <<<"$record")" "reach tcp 203.0.113.7 443"
    # the wall stays while one of them is there
    cri StopContainer "{\"container_id\": \"$CONTAINER\", \"timeout\": 0}" >/dev/null
    run exec_in "$first" reach tcp 10.89.8.1 9000
    ended 1 ECONNREFUSED
}

# -- allowed hosts --------------------------------------------------------------------------------------------------

@test "allowed hosts for a pod with two containers: one broker, whose records are in the pod's own log" {
    far_end
    node_file policy.yaml "$(cat "$HOSTS_POLICY")"
    pod pinfold '.dns_config = {servers: ["10.77.0.1"]}'
    programs='.mounts = [["/usr", "/usr"], ["/usr/lib", "/lib"], ["/usr/lib64", "/lib64"] | {container_path: .[1], host_path: .[0], readonly: true}]'
    container first "$programs" sleep 1000
    first=$CONTAINER
    container second "$programs" sleep 1000
    rm "$HOUSE/node-etc/pinfold/policy.yaml"
    the_hosts "$first" "$POD"
    the_hosts "$CONTAINER" "$POD"
}
