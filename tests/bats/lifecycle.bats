#!/usr/bin/env bats
# create, start, state, kill, delete, run, list, ps, pause: the words and exit codes that engines match (runtime.md,
# "Lifecycle" and "Operations"; podman, containerd and CRI-O by their own sources).
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

@test "create, start, kill and delete go through created, running and stopped" {
    command_is sleep 1000
    pf_create
    is "$(state_of .status)" created
    pf start "$ID"
    is "$(state_of .status)" running
    pf kill "$ID" KILL
    wait_status stopped
    pf delete "$ID"
    run pf state "$ID"
    ended 1 "container does not exist"
}

@test "state: the fields of the specification, with their types" {
    configure '.annotations = {"org.example.key": "value"}'
    start_sleeper
    run pf state "$ID"
    ended 0
    is "$(jq -r .id <<<"$output")" "$ID"
    is "$(jq -r .bundle <<<"$output")" "$(realpath "$BUNDLE")"
    is "$(jq -r '.annotations["org.example.key"]' <<<"$output")" value
    matches "$(jq -r .ociVersion <<<"$output")" '^1\.[0-9]+\.[0-9]+'
    is "$(jq -r '.pid | type' <<<"$output")" number
    # CRI-O decodes it as RFC 3339
    matches "$(jq -r .created <<<"$output")" '^20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-9.]+Z$'
    is "$(tr '\0' ' ' <"/proc/$(jq -r .pid <<<"$output")/cmdline")" "sleep 1000 "
}

@test "state of a stopped container has pid 0" {
    pf_run --detach >/dev/null 2>&1
    wait_status stopped
    is "$(state_of .pid)" 0
}

@test "the command runs at start and not before" {
    mkdir "$BUNDLE/shared"
    configure --arg source "$BUNDLE/shared" '.mounts += [{destination: "/shared", type: "bind", source: $source, options: ["rbind", "rw"]}]'
    script_is 'echo ran > /shared/proof'
    pf_create
    sleep 0.3
    [ ! -e "$BUNDLE/shared/proof" ]
    pf start "$ID"
    wait_status stopped
    is "$(cat "$BUNDLE/shared/proof")" ran
}

@test "create reads config.json once: a later change has no effect" {
    script_is 'echo first'
    pf_create
    script_is 'echo second'
    pf start "$ID"
    wait_status stopped
    is "$(cat "$WORK/stdout")" first
}

@test "pid file: digits only, nothing after them" {
    command_is sleep 1000
    pf_create --pid-file "$WORK/pid"
    is "$(od -An -c "$WORK/pid" | tr -d ' \n')" "$(state_of .pid)"
}

@test "pid file: a relative path is the caller's, not the bundle's" {
    cd "$WORK"
    pf_create --pid-file here.pid
    [ -s "$WORK/here.pid" ]
    [ ! -e "$BUNDLE/here.pid" ]
}

@test "crun #504, #787: pid file: a longer one that was there is replaced as a whole" {
    printf '%0100d' 7 >"$WORK/pid"
    command_is sleep 1000
    pf_create --pid-file "$WORK/pid"
    is "$(cat "$WORK/pid")" "$(state_of .pid)"
}

@test "crun #787: the state file is replaced as a whole, by its name" {
    command_is sleep 1000
    pf_create
    exec 9<"$STATE/$ID/state.json"
    before=$(jq -c . "$STATE/$ID/state.json")
    pf start "$ID"
    # who had it open before reads the old one to its end, and not a mixture of two
    is "$(jq -c . <&9)" "$before"
    exec 9<&-
    jq -e . "$STATE/$ID/state.json"
    is "$(find "$STATE/$ID" -name 'state.json?*')" ""
}

@test "run passes the command's exit code on" {
    script_is 'exit 7'
    run pf_run
    ended 7
}

@test "run: 128 and the signal when the command was killed" {
    command_is sleep 1000
    timeout 20 "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID" </dev/null 3>&- &
    runner=$!
    wait_for pf state "$ID"
    wait_status running
    pf kill "$ID" KILL
    code=0; wait $runner || code=$?
    is "$code" 137
}

@test "run leaves no state behind" {
    run pf_run
    ended 0
    run pf state "$ID"
    ended 1 "container does not exist"
}

@test "run --detach returns while the container runs" {
    command_is sleep 1000
    pf_run --detach >/dev/null 2>&1
    is "$(state_of .status)" running
}

@test "run: standard input, output and error are the container's" {
    script_is 'cat; echo error >&2'
    run bash -c 'echo given | timeout 20 "$0" --root "$1" --policy unconfined run --bundle "$2" "$3" 2>"$4" 3>&-' \
        "$PINFOLD" "$STATE" "$BUNDLE" "$ID" "$WORK/error"
    ended 0
    is "$output" given
    is "$(cat "$WORK/error")" error
}

@test "kill: by number, by name with and without SIG, TERM when none is given" {
    script_is 'trap "echo usr1" USR1; trap "echo hup" HUP; trap "echo term; exit 3" TERM; echo ready; while :; do sleep 0.05; done'
    pf_create
    pf start "$ID"
    wait_for grep -q ready "$WORK/stdout"
    pf kill "$ID" 10
    wait_for grep -q usr1 "$WORK/stdout"
    pf kill "$ID" SIGHUP
    wait_for grep -q hup "$WORK/stdout"
    pf kill "$ID"
    wait_status stopped
    is "$(cat "$WORK/stdout" | tr '\n' ' ')" "ready usr1 hup term "
}

@test "kill: an unknown signal is refused and nothing is sent" {
    start_sleeper
    run pf kill "$ID" NOSUCH
    ended 1 NOSUCH
    run pf kill "$ID" 4096
    ended 1 4096
    is "$(state_of .status)" running
}

@test "kill --all reaches every process of the container" {
    script_is 'sleep 1000 & sleep 1001 & echo ready; wait'
    pf_create
    pf start "$ID"
    wait_for grep -q ready "$WORK/stdout"
    pf kill --all "$ID" KILL
    wait_status stopped
}

@test "kill of a created container ends it" {
    pf_create
    pf kill "$ID" KILL
    wait_status stopped
}

@test "delete --force ends a running container" {
    start_sleeper
    pid=$(state_of .pid)
    pf delete --force "$ID"
    process_ended "$pid"
}

@test "delete --force of nothing is no error" {
    run pf delete --force nothing-of-this-name
    ended 0
    is "$output" ""
}

@test "the same id can be used again after delete" {
    pf_create && pf delete --force "$ID"
    pf_create && pf delete --force "$ID"
}

@test "list: a table, ids with --quiet, an array with --format json" {
    start_sleeper
    run pf list
    contains "${lines[0]}" ID
    contains "$output" "$ID"
    is "$(pf list --quiet)" "$ID"
    is "$(pf list --format json | jq -r '.[0].id')" "$ID"
    is "$(pf list -f json | jq -r '.[0].status')" running
}

@test "list of an empty state directory is an empty array or null" {
    matches "$(pf list --format json)" '^(\[\]|null)$'
}

@test "ps --format json: process ids of the host, as numbers" {
    script_is 'sleep 1000 & exec sleep 1000'
    pf_create && pf start "$ID"
    wait_for bash -c "[ \"\$('$PINFOLD' --root '$STATE' ps --format json '$ID' | jq length)\" = 2 ]"
    pid=$(state_of .pid)
    pf ps --format json "$ID" | jq -e --argjson pid "$pid" 'index($pid) != null'
}

@test "pause and resume: the state says paused, the container stands still" {
    script_is 'while :; do echo tick; sleep 0.05; done'
    pf_create && pf start "$ID"
    wait_for grep -q tick "$WORK/stdout"
    pf pause "$ID"
    is "$(state_of .status)" paused
    before=$(wc -l <"$WORK/stdout")
    sleep 0.4
    is "$(wc -l <"$WORK/stdout")" "$before"
    pf resume "$ID"
    is "$(state_of .status)" running
    wait_for bash -c "[ \$(wc -l <'$WORK/stdout') -gt $before ]"
}

@test "delete --force of a paused container" {
    start_sleeper
    pf pause "$ID"
    pf delete --force "$ID"
    run pf state "$ID"
    ended 1 "container does not exist"
}

@test "a container whose init ended and was not reaped counts as stopped" {
    start_sleeper
    kill -9 "$(state_of .pid)"
    wait_status stopped
    pf delete "$ID"
}

@test "create under a subreaper: init is its child when create has ended" {
    command_is sleep 1000
    run python3 - "$PINFOLD" "$STATE" "$BUNDLE" "$ID" <<'PY'
import ctypes, json, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER, as conmon and the shim do
pinfold, state, bundle, name = sys.argv[1:]
call = [pinfold, "--root", state, "--policy", "unconfined"]
null = subprocess.DEVNULL
subprocess.run(call + ["create", "--bundle", bundle, name], stdin=null, stdout=null, stderr=null, check=True)
pid = json.loads(subprocess.check_output(call + ["state", name]))["pid"]
status = open(f"/proc/{pid}/status").read()
parent = int([l for l in status.splitlines() if l.startswith("PPid")][0].split()[1])
assert parent == os.getpid(), f"parent {parent}, not {os.getpid()}"
subprocess.run(call + ["delete", "--force", name], check=True)
PY
    ended 0
}

@test "runc #5208: a hundred short runs, one after the other, all end" {
    for number in $(seq 100); do
        timeout 10 "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID" </dev/null 3>&- || return 1
    done
}

# SIGCHLD as the caller left it: ignored or blocked survives execve, and then a child's end is not seen, or not how it was.
with_sigchld() { # default|ignored|blocked WORD...
    timeout 30 python3 -c '
import os, signal, sys
if sys.argv[1] == "ignored": signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if sys.argv[1] == "blocked": signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
os.execvp(sys.argv[2], sys.argv[2:])' "$@"
}

@test "runc #5208, #5210: run and attached exec see the end of a command that ends at once, however the caller has SIGCHLD" {
    local how number
    # the control: a program that only waits does not learn the exit code where it is ignored
    is "$(with_sigchld ignored python3 -c 'import os
pid = os.fork()
pid or os._exit(7)
try: print(os.waitpid(pid, 0)[1] >> 8)
except ChildProcessError: print("not known")')" "not known"
    script_is 'exit 7'
    for how in default ignored blocked; do
        for number in 1 2; do
            run with_sigchld $how "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID" </dev/null 3>&-
            is "$status" 7
        done
        POLICY=agent run with_sigchld $how "$PINFOLD" --root "$STATE" run --bundle "$BUNDLE" "$ID" </dev/null 3>&-
        is "$status" 7
    done
    start_sleeper
    for how in default ignored blocked; do
        for number in 1 2 3; do
            run with_sigchld $how "$PINFOLD" --root "$STATE" exec "$ID" sh -c 'exit 7' </dev/null 3>&-
            is "$status" 7
        done
    done
}

@test "runc #5208: a hook that fails is one that fails, also where the caller ignores SIGCHLD" {
    printf '#!/bin/sh\nexit 9\n' >"$WORK/bad" && chmod 755 "$WORK/bad"
    configure --arg path "$WORK/bad" '.hooks.createRuntime = [{path: $path}]'
    run with_sigchld ignored "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$BUNDLE" "$ID" </dev/null 3>&-
    ended 1 "hooks.createRuntime[0]: $WORK/bad ended with exit status 9"
}

@test "crun #422: delete and delete --force while the container ends by itself" {
    local number
    script_is 'exec sleep "$(cat /delay)"'
    for number in $(seq 6); do
        echo "0.0$((number % 6))" >"$ROOT/delay"
        pf_create && pf start "$ID"
        if [ $((number % 2)) = 0 ]; then
            run pf delete --force "$ID"
            ended 0
        else
            # not stopped yet, or gone: nothing in between
            run pf delete "$ID"
            [ "$status" = 0 ] || contains "$output" "that is not stopped"
            pf delete --force "$ID"
        fi
        is "$output" "${output:+pinfold: cannot delete container $ID that is not stopped: running}"
        run pf state "$ID"
        ended 1 "does not exist"
    done
}

@test "two containers at once do not disturb each other" {
    script_is 'sleep 0.3; exit $(hostname)'
    configure '.hostname = "11"'
    first=$BUNDLE
    new_bundle "$WORK/second"
    script_is 'sleep 0.1; exit $(hostname)'
    configure '.hostname = "22"'
    second=$BUNDLE
    timeout 20 "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$first" "$ID-1" </dev/null 3>&- &
    one=$!
    timeout 20 "$PINFOLD" --root "$STATE" --policy unconfined run --bundle "$second" "$ID-2" </dev/null 3>&- &
    two=$!
    code=0; wait $one || code=$?
    is "$code" 11
    code=0; wait $two || code=$?
    is "$code" 22
}

@test "update changes a limit of a running container" {
    start_sleeper
    path=$(awk -F: '$2 == "pids" { print $3 }' "/proc/$(state_of .pid)/cgroup")
    [ -n "$path" ] && [ -d "/sys/fs/cgroup/pids$path" ] || skip "no v1 pids hierarchy"
    pf update --pids-limit 77 "$ID" || echo '{"pids": {"limit": 77}}' | pf update --resources - "$ID"
    is "$(cat "/sys/fs/cgroup/pids$path/pids.max")" 77
}

@test "features: JSON on standard output and not a byte on standard error" {
    "$PINFOLD" features >"$WORK/features" 2>"$WORK/error"
    is "$(cat "$WORK/error")" ""
    matches "$(jq -r .ociVersionMin "$WORK/features")" '^1\.'
    matches "$(jq -r .ociVersionMax "$WORK/features")" '^1\.'
    is "$(jq -r '.linux.namespaces | index("network") != null' "$WORK/features")" true
    is "$(jq -r '.mountOptions | index("rro") != null' "$WORK/features")" true
    lacks "$(jq -r '.. | strings' "$WORK/features" | tr '\n' '|')" $'\n'
}

@test "--version: a first line with the word version, and a commit" {
    run "$PINFOLD" --version
    ended 0
    matches "${lines[0]}" '^pinfold version [0-9]+\.[0-9]+\.[0-9]+'
    contains "$output" "commit: "
}
