#!/usr/bin/env bats
# log.inside: what a container sees of its own denials, so that a program in it can tell a boundary from a fault.
load helpers

setup() {
    setup_container
    POLICY=agent
}
teardown() { teardown_container; }

policy_is() { # YAML
    printf '%s\n' "$1" >"$WORK/p.yaml"
    POLICY=$WORK/p.yaml
}
bind_at() { # DESTINATION SOURCE
    configure --arg destination "$1" --arg source "$2" '.mounts += [{destination: $destination, type: "bind", source: $source, options: ["rbind", "rw"]}]'
}
# What the container printed of the file, one member of each line; without what hardening took from the engine's
# configuration, capabilities.
seen() { # JQ-FILTER
    jq -r "select(.reason != \"capability.dropped\") | $1" <<<"$output"
}

@test "each denial is one line with its reason, object, sentence and remedy" {
    configure '.process.env += ["MY_TOKEN=value"]'
    script_is 'exec 2>/dev/null; touch /x; mount -t tmpfs none /tmp; nc -w 2 1.2.3.4 443 </dev/null; cat "$PINFOLD_DENIALS"'
    run pf_run
    is "$status" 0
    is "$(seen '[.reason, .object] | join(" ")')" "credential.env.removed MY_TOKEN
fs.write.read_only /x
syscall.not_allowed mount
net.address.literal 1.2.3.4 port 443"
    is "$(seen 'select(.reason == "net.address.literal").remedy')" 'network: {allowed_hosts: ["1.2.3.4:443"]}'
    is "$(seen 'select(.reason == "fs.write.read_only").message | length > 10')" true
    is "$(seen '.time | test("^20..-..-..T..:..:..[.]...Z$")' | sort -u)" true
    # the same denials as outside
    is "$(records '.action_id == 2' | jq -r .status_detail | sort -u)" "$(jq -r .reason <<<"$output" | sort -u)"
}

@test "a README beside it says what it is; exec has the variable too" {
    start_sleeper
    run pf exec "$ID" sh -c 'cat "${PINFOLD_DENIALS%/*}/README"; echo "$PINFOLD_DENIALS"'
    ended 0 "A denial is a boundary, not a fault"
    contains "$output" /run/pinfold/denials.jsonl
    run pf exec --env PINFOLD_DENIALS=/elsewhere "$ID" sh -c 'echo "$PINFOLD_DENIALS"; stat -c "%a %u" /run/pinfold "$PINFOLD_DENIALS"'
    is "$output" "/run/pinfold/denials.jsonl
755 0
444 0"
}

@test "nobody in the container changes it: not by writing, removing, moving or mounting, and root neither" {
    script_is 'cd /run/pinfold || exit 9
        for try in "echo x >>denials.jsonl" "echo x >new" "rm -f denials.jsonl" "mv denials.jsonl other" "mv /run/pinfold /run/other" \
            "mount -o remount,rw /run/pinfold" "umount /run/pinfold" "truncate -s 0 README"; do
            sh -c "$try" 2>/dev/null && echo "changed by $try"
        done
        mkdir -p /tmp/r && ln -s /tmp/r /run/pinfold2 && rmdir /run/pinfold 2>/dev/null; ls /run/pinfold'
    run pf_run
    is "$output" "README
denials.jsonl"
}

@test "an entrypoint that gives all of /run to its user goes on; what lies there stays root's, and unchanged" {
    configure '.process.capabilities |= map_values(["CAP_CHOWN", "CAP_FOWNER", "CAP_DAC_OVERRIDE"])'
    script_is 'chown -R 1000:1000 /run && chmod -R 777 /run && stat -c "%u %a" /run /run/pinfold /run/pinfold/denials.jsonl
        chown 1000 /usr 2>/dev/null || echo denied; echo x >>/run/pinfold/denials.jsonl'
    run pf_run
    is "$(sed 's/.*denials.jsonl: //' <<<"$output")" "1000 777
0 755
0 444
denied
Read-only file system"
}

@test "it shows nothing of the machine: no path of a mount's source, none of the policy's file, no process" {
    mkdir -p "$WORK/secret-place/project"
    python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$WORK/secret-place/project/docker.sock"
    bind_at /work "$WORK/secret-place/project"
    policy_is 'version: 1'
    script_is 'touch /x 2>/dev/null; cat "$PINFOLD_DENIALS"'
    run pf_run
    contains "$(seen .reason)" fs.write.read_only
    contains "$(seen .reason)" mount.socket.refused
    lacks "$output" secret-place
    lacks "$output" p.yaml
    lacks "$output" '"pid"'
}

@test "it stays below 256 KiB, and says when earlier lines were left out" {
    # Each name another one, so that none is a repeat; fewer than the burst of the log.
    name=$(printf "%0200d" 0)
    mkdir -p "$ROOT/$name/$name/$name/$name"
    script_is 'cd /0*/0*/0*/0* || exit 9; i=0
        while [ $i -lt 300 ]; do touch $i 2>/dev/null; i=$((i + 1)); done
        stat -c %s "$PINFOLD_DENIALS"; head -n 1 "$PINFOLD_DENIALS"; tail -n 1 "$PINFOLD_DENIALS" | grep -c "/299"'
    run pf_run
    is "$status" 0
    [ "${lines[0]}" -le 262144 ]
    contains "${lines[1]}" "Earlier denials were left out"
    is "${lines[2]}" 1
}

@test "hostile names are one line of JSON, harmless on a terminal" {
    script_is 'touch "$(printf "/a\nb\033[31m\",\"reason\":\"none\"\377")" 2>/dev/null; cat "$PINFOLD_DENIALS"'
    run pf_run
    is "$(grep -c . <<<"$output")" "$(jq -c . <<<"$output" | wc -l)"
    is "$(seen .reason)" fs.write.read_only
    is "$(seen '.object | contains("\n")')" true
    lacks "$output" $'\033'
}

@test "log.inside: false, and unconfined: no directory and no variable" {
    policy_is 'log: {inside: false}'
    script_is 'echo "${PINFOLD_DENIALS-none}"; ls -d /run/pinfold 2>/dev/null || echo absent'
    run pf_run
    is "$output" "none
absent"
    POLICY=unconfined run pf_run
    is "$output" "none
absent"
}

@test "it is readable where filesystem.readable is narrower, and to a user" {
    configure '.process.user = {uid: 1000, gid: 1000}'
    policy_is 'filesystem: {readable: [/bin], scratch: [/tmp]}'
    script_is 'cat /etc/passwd 2>/dev/null; cat "$PINFOLD_DENIALS"'
    run pf_run
    is "$(seen .reason)" fs.read.not_granted
}

@test "nothing is left in a directory of the user's: a bind at /run, a symlink of the image" {
    mkdir "$WORK/run" "$WORK/volume"
    bind_at /run "$WORK/run"
    script_is 'echo "${PINFOLD_DENIALS-none}"'
    run pf_run
    ended 0 none
    is "$(ls -A "$WORK/run")" ""
    run pf explain --bundle "$BUNDLE"
    contains "$output" "a mount of the engine's is at /run/pinfold"

    configure '.mounts |= map(select(.destination != "/run"))'
    bind_at /volume "$WORK/volume"
    rm -rf "$ROOT/run" && ln -s /volume "$ROOT/run"
    policy_is 'filesystem: {scratch: [/tmp]}'
    script_is 'ls -A /volume; echo done'
    run pf_run
    ended 0 done
    is "$(ls -A "$WORK/volume")" ""
}

@test "as a user who is not root" {
    setpriv --reuid 47110 --regid 47110 --clear-groups unshare -Ur true 2>/dev/null || skip "this machine lets ordinary users make no user namespace"
    chmod 755 "$WORK" "$BATS_RUN_TMPDIR"
    mkdir "$WORK/user" && cp "$PINFOLD" "$WORK/user/pinfold" && mkdir "$WORK/user/project" && chown -R 47110:47110 "$WORK/user"
    { cat /etc/passwd; echo "pinfold-test:x:47110:47110::$WORK/user:/bin/sh"; } >"$WORK/passwd"
    mount --bind "$WORK/passwd" /etc/passwd
    run setpriv --reuid 47110 --regid 47110 --clear-groups env -i PATH="$PATH" HOME="$WORK/user" \
        timeout 20 "$WORK/user/pinfold" --root "$WORK/user/state" sandbox -w "$WORK/user/project" --id "$ID" -- \
        sh -c 'touch /usr/bin/x 2>/dev/null; cat "$PINFOLD_DENIALS"' </dev/null 3>&-
    umount /etc/passwd
    is "$(seen '[.reason, .object] | join(" ")')" "fs.write.read_only /usr/bin/x"
}
