#!/usr/bin/env bats
# Escapes by what a container is given: mounts of credentials and sockets in disguise, variables and descriptors that come
# along with exec, and the processes of another container.
load helpers
load escapes

setup() {
    setup_container
    command -v gcc >/dev/null || skip "no C compiler"
    mkdir "$WORK/data"
}
teardown() {
    [ -z "${SERVER-}" ] || kill "$SERVER" 2>/dev/null || :
    teardown_container
}

bind() { # SOURCE OPTION...: at /data
    local source=$1
    shift
    configure --arg source "$source" --arg options "$*" '.mounts += [{destination: "/data", type: "bind", source: $source, options: ($options | split(" "))}]'
}
# A daemon's socket, which tells a secret to whoever connects.
serve() { # PATH
    python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("ready", flush=True)
while True:
    try:
        s.accept()[0].send(b"escape-marker-4711")
    except OSError:
        pass' "$1" </dev/null >"$WORK/server" 2>&1 3>&- &
    SERVER=$!
    wait_for grep -q ready "$WORK/server"
}
# It works without the policy, and with it no container is made, for this reason.
is_refused() { # REASON ATTEMPT
    is "$(attempt_under unconfined "$2")" "$2 worked"
    contains "$(attempt_under agent "$2")" "$1"
    is "$(ls -A "$STATE")" ""
}

@test "escapes: a daemon's socket in a directory that is mounted read-only" {
    serve "$WORK/data/docker.sock"
    prepare() { bind "$WORK/data" rbind ro; }
    check_rows <<'ROWS'
data_socket  worked  ECONNREFUSED  any:mount.socket.refused:/data/docker.sock
ROWS
}

@test "escapes: a daemon's socket behind a symbolic link, a bind of a bind, and a file of another name" {
    mkdir "$WORK/run" "$WORK/bound"
    serve "$WORK/run/innocent"
    ln -s "$WORK/run/innocent" "$WORK/link"
    touch "$WORK/bound/file"
    mount --bind "$WORK/run/innocent" "$WORK/bound/file"
    for source in "$WORK/link" "$WORK/bound/file"; do
        prepare() { configure --arg source "$source" '.mounts += [{destination: "/data/docker.sock", type: "bind", source: $source, options: ["bind"]}]'; }
        is_refused mount.socket.refused data_socket
    done
    umount "$WORK/bound/file"
}

@test "escapes: keys inside a mounted project" {
    mkdir "$WORK/data/.ssh"
    echo escape-marker-4711 >"$WORK/data/.ssh/id_ed25519"
    prepare() { bind "$WORK/data" rbind rw; }
    check_rows <<'ROWS'
data_key  worked  ENOENT  any:credential.mount.removed:/data/.ssh
ROWS
}

@test "escapes: a workspace that is a symbolic link to a place of the host" {
    mkdir -p "$WORK/home/.ssh"
    echo escape-marker-4711 >"$WORK/home/.ssh/secret"
    ln -s "$WORK/home/.ssh" "$WORK/workspace"
    prepare() { bind "$WORK/workspace" rbind rw; }
    is_refused mount.credential.refused data_read
    ln -sfn /etc "$WORK/workspace"
    contains "$(attempt_under agent data_read)" mount.host_path.refused
}

@test "escapes: a symbolic link in the workspace to a file of the host leads to the container's own" {
    echo escape-marker-4711 >"$WORK/secret"
    ln -s "$WORK/secret" "$WORK/data/link"
    # where it leads to, followed on the host
    contains "$(cat "$WORK/data/link")" escape-marker-4711
    prepare() { bind "$WORK/data" rbind rw; }
    check_rows <<'ROWS'
data_symlink  ENOENT  ENOENT  -
ROWS
}

@test "escapes: a hook in a mounted repository, which the host's git would run" {
    prepare() {
        rm -rf "$WORK/data" && mkdir -p "$WORK/data/.git/hooks"
        bind "$WORK/data" rbind rw
    }
    check_rows <<'ROWS'
data_hook            worked  EROFS  fs.write.read_only
data_hook_by_rename  worked  EBUSY  -   # a mount point stays where it is
ROWS
}

@test "escapes: a token that the engine mounts by itself" {
    echo escape-marker-4711 >"$WORK/data/secret"
    prepare() {
        ln -s /var/run/secrets/kubernetes.io/serviceaccount "$ROOT/data"
        configure --arg source "$WORK/data" '.mounts += [{destination: "/var/run/secrets/kubernetes.io/serviceaccount", type: "bind", source: $source, options: ["rbind", "ro"]}]'
    }
    check_rows <<'ROWS'
data_read  worked  ENOENT  any:credential.mount.removed:serviceaccount
ROWS
}

@test "escapes: variables that an image, the engine or exec brings" {
    prepare() { configure '.process.env += ["INNOCENT=postgres://user:escape-marker-4711@db/x", "DB_PASSWORD=escape-marker-4711"]'; }
    check_rows <<'ROWS'
came_variable           worked  absent  any:credential.env.removed:DB_PASSWORD
came_first_environment  worked  absent  any:credential.env.removed:INNOCENT
ROWS
}

@test "escapes: exec with a token in its environment, by flag and by process file; a descriptor of its caller" {
    echo escape-marker-4711 >"$WORK/leaked"
    install_attempts came_variable came_descriptor
    jq '.process | .args = ["/attempt/came_variable"] | .env += ["NPM_TOKEN=escape-marker-4711"]' "$BUNDLE/config.json" >"$WORK/process.json"
    for POLICY in unconfined agent; do
        ID=$PREFIX-$POLICY LOG=$LOGS/$PREFIX-$POLICY.jsonl
        start_sleeper
        by_flag=$(pf exec --env GITHUB_TOKEN=escape-marker-4711 "$ID" /attempt/came_variable)
        by_file=$(pf exec --process "$WORK/process.json" "$ID")
        descriptor=$(pf exec "$ID" /attempt/came_descriptor 9<"$WORK/leaked")
        [ "$POLICY" = agent ] || is "$by_flag/$by_file" "came_variable worked/came_variable worked"
    done
    # no descriptor is inherited under any policy; the caller's child that is no container has it
    is "$("$ROOT/attempt/came_descriptor" 9<"$WORK/leaked")" "came_descriptor worked"
    is "$by_flag/$by_file/$descriptor" "came_variable absent/came_variable absent/came_descriptor absent"
    has_record credential.env.removed '.message | contains("GITHUB_TOKEN")'
    has_record credential.env.removed '.message | contains("NPM_TOKEN")'
}

@test "escapes: a process of another container, in a process-id namespace that both share" {
    # Both run as root with the same capabilities: to the kernel they are alike.
    victim() { # POLICY
        POLICY=$1 ID=$PREFIX-victim
        new_bundle "$WORK/victim-$1"
        privileged
        echo escape-marker-4711 >"$ROOT/secret"
        configure '.process.env += ["INNOCENT_NAME=escape-marker-4711"]'
        start_sleeper
        VICTIM=$(state_of .pid)
    }
    attack() { # NAME...
        ID=$PREFIX-$POLICY
        new_bundle "$WORK/$POLICY"
        privileged
        install_attempts "$@"
        configure --arg path "/proc/$VICTIM/ns/pid" '.process.env += ["PEER=1"]
          | .linux.namespaces |= map(if .type == "pid" then .path = $path else . end)'
        command_is /attempt/run "$@"
        pf_run 2>&1
    }
    names=(process_trace process_read process_write process_descriptor process_compare process_environment process_root process_memory)
    victim unconfined
    found=$(attack "${names[@]}")
    printf '%s\n' "$found"
    # EFAULT: the victim, another program, has nothing to write to at that address
    is "$(grep -cE ' (worked|EFAULT)$' <<<"$found")" ${#names[@]}
    pf delete --force "$PREFIX-victim"
    victim agent
    found=$(attack "${names[@]}")
    LOG=$LOGS/$PREFIX-agent.jsonl
    RECORDS=$(record_lines)
    for name in process_{trace,read,write,descriptor,compare}; do
        is "$(result_of $name "$found")" EPERM
        recorded $name syscall.not_allowed
    done
    pf delete --force "$PREFIX-victim"
    # Landlock keeps what /proc shows of them apart as well; a kernel without it does not (attack_escape.bats).
    if [ "$(pf explain --json --bundle "$WORK/agent" | jq -r '.mechanisms[] | select(.name == "landlock") | .state')" = enforced ]; then
        for name in process_{environment,root,memory}; do
            matches "$(result_of $name "$found")" '^(EACCES|EPERM)$'
        done
    fi
}
