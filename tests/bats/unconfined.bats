#!/usr/bin/env bats
# --policy unconfined adds nothing: what is in config.json is what the container gets.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

@test "environment: secrets and all, as written" {
    configure '.process.env = ["PATH=/bin:/usr/bin", "GITHUB_TOKEN=fake", "AWS_SECRET_ACCESS_KEY=fake", "LD_PRELOAD=", "HOME=/"]'
    command_is env
    is "$(pf_run | LC_ALL=C sort | xargs)" "AWS_SECRET_ACCESS_KEY=fake GITHUB_TOKEN=fake HOME=/ LD_PRELOAD= PATH=/bin:/usr/bin"
}

@test "status: no filter, no no_new_privs, the capabilities that were written, the groups that were written" {
    configure 'del(.linux.seccomp) | .process.noNewPrivileges = false | .process.user.additionalGids = [7]
      | ["CAP_CHOWN", "CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_NET_RAW"] as $c | .process.capabilities = {bounding: $c, effective: $c, permitted: $c}'
    command_is grep -E '^(Seccomp|Seccomp_filters|NoNewPrivs|CapBnd|CapEff|Groups):' /proc/self/status
    run pf_run
    is "$(sed 's/[[:space:]]*$//' <<<"$output" | tr '\t\n' ' |')" \
        "Groups: 7|CapEff: 0000000000203001|CapBnd: 0000000000203001|NoNewPrivs: 0|Seccomp: 0|Seccomp_filters: 0|"
}

@test "mounts: those of config.json and no others" {
    configure '.linux.maskedPaths = [] | .linux.readonlyPaths = []'
    command_is awk '{ print $5 }' /proc/self/mountinfo
    run pf_run
    is "$(LC_ALL=C sort -u <<<"$output" | grep -v '^/sys/fs/cgroup/.' | xargs)" \
        "$( (echo /; jq -r '.mounts[].destination' "$BUNDLE/config.json") | LC_ALL=C sort -u | xargs)"
}

@test "files: nothing of pinfold is in the container, keys are what the image has" {
    mkdir "$ROOT/root/.ssh" && echo real >"$ROOT/root/.ssh/id_rsa"
    configure '.process.user.uid = 0'
    script_is 'cat /root/.ssh/id_rsa; ls -A /run; ls -A /root/.ssh; ls /root/.aws 2>&1 | grep -c such; touch /x && echo written'
    is "$(pf_run | xargs)" "real id_rsa 1 written"
}

@test "host namespaces are allowed" {
    configure 'del(.hostname) | .linux.namespaces |= map(select(.type == "mount" or .type == "pid"))'
    script_is 'readlink /proc/self/ns/net; readlink /proc/self/ns/ipc'
    is "$(pf_run | xargs)" "$(readlink /proc/self/ns/net) $(readlink /proc/self/ns/ipc)"
}

@test "network: a new namespace is as the kernel makes it: no route, no rule" {
    script_is 'cat /proc/net/route | wc -l; cat /proc/net/ipv6_route | grep -c default; ls /sys/class/net'
    is "$(pf_run | xargs)" "1 0 lo"
    start_sleeper
    is "$(nsenter -n -t "$(state_of .pid)" nft list ruleset)" ""
}

@test "mount(2) works where the capability is there" {
    configure '["CAP_SYS_ADMIN"] as $c | .process.capabilities = {bounding: $c, effective: $c, permitted: $c}'
    script_is 'mount -t tmpfs none /tmp && echo mounted'
    is "$(pf_run)" mounted
}

@test "any mount source is taken, /etc and a socket too" {
    configure '.mounts += [{destination: "/hostetc", type: "bind", source: "/etc", options: ["rbind", "ro"]}]'
    command_is test -f /hostetc/passwd
    run pf_run
    ended 0
}

@test "no supervisor stays beside the container" {
    start_sleeper
    pid=$(state_of .pid)
    is "$(own_processes)" ""
}

@test "no record is written" {
    run pf_run
    ended 0
    is "$(records | jq -r .class_uid | grep -vE '^(6002|5019)$' || :)" ""
}
