#!/usr/bin/env bats
# The filesystem section of a policy: what is readable, writable, hidden and protected, and Landlock behind the mounts.
load helpers

setup() {
    setup_container
    POLICY=agent
    mkdir "$WORK/project"
}
teardown() { teardown_container; }

faults() {
    [ -x "${PINFOLD_FAULTS-}" ] || skip "no build with fault points (make pinfold-faults)"
    PINFOLD=$PINFOLD_FAULTS
}
mount_at() { # DESTINATION SOURCE OPTION...
    local destination=$1 source=$2
    shift 2
    jq --arg source "$source" --arg destination "$destination" '.mounts += [{destination: $destination, type: "bind", source: $source,
        options: ["rbind", $ARGS.positional[]]}]' "$BUNDLE/config.json" --args "$@" >"$WORK/c" && cp "$WORK/c" "$BUNDLE/config.json"
}
as_user() { # uid 1000 in the container
    configure '.process.user = {uid: 1000, gid: 1000}'
}

# -- Landlock -----------------------------------------------------------------------------------------------------

# In the container's mount namespace, as nobody inside can.
make_root_writable() {
    nsenter -t "$(state_of .pid)" -m -p mount -o remount,rw,bind /
}

@test "Landlock: a root that is writable after all is not written to, by the container and by exec" {
    script_is 'while [ ! -e /tmp/go ]; do sleep 0.1; done; touch /etc/by-init; touch /tmp/done; sleep 1000'
    pf_create && pf start "$ID"
    make_root_writable
    run pf exec "$ID" touch /etc/by-exec
    ended 1 "Permission denied"
    pf exec "$ID" touch /tmp/go
    wait_for pf exec "$ID" test -e /tmp/done
    [ ! -e "$ROOT/etc/by-init" ] && [ ! -e "$ROOT/etc/by-exec" ]
    pf delete --force "$ID"
    # without it, the mount was all there is
    faults
    PINFOLD_WITHOUT=landlock pf_create && pf start "$ID"
    make_root_writable
    pf exec "$ID" touch /etc/by-exec
    [ -e "$ROOT/etc/by-exec" ]
}

@test "Landlock: where it is missing the default policy runs, and says so" {
    faults
    command_is true
    PINFOLD_WITHOUT=landlock run pf_run
    ended 0
    has_record mechanism.degraded '.message | contains("Landlock")'
    is "$(records '.status_detail == "mechanism.degraded"' | wc -l)" 1
}

@test "Landlock: where it is there nothing is said" {
    run pf_run
    ended 0
    is "$(denials mechanism.degraded)" 0
}

@test "Landlock: what programs do stays possible" {
    mount_at /work "$WORK/project" rw
    mkdir "$WORK/project/a" "$WORK/project/b"
    # rename and link between directories, temporary files, pipes and descriptors by name, devices, /proc, message queues
    script_is 'set -e; cd /work; echo x >a/file; mv a/file b/file; ln b/file a/hard; ln -s ../b a/soft; mv b c; rm -r c a
        echo x >/dev/stdout; echo x >/dev/stderr; echo x | cat /dev/stdin >/dev/null; : >/dev/full || :; echo 5 >/proc/self/oom_score_adj
        mkfifo /tmp/fifo; (echo through >/tmp/fifo) & cat /tmp/fifo; echo x >/dev/shm/x; : >/dev/mqueue/x; mkdir /run/d; cp /bin/busybox /tmp/echo
        /tmp/echo executed; echo end'
    run pf_run
    is "$(tail -n 3 <<<"$output" | xargs)" "through executed end"
    is "$(ls "$WORK/project")" ""
}

@test "Landlock: a file outside that the program was given as a descriptor can be opened again" {
    script_is 'echo once >/dev/stdout; cat /dev/stdin'
    echo given >"$WORK/in"
    pf run --bundle "$BUNDLE" "$ID" <"$WORK/in" >"$WORK/out"
    contains "$(cat "$WORK/out")" given
}

# -- protected ----------------------------------------------------------------------------------------------------

repository() { # [OWNER]
    mkdir -p "$WORK/project/.git/hooks"
    echo 'original' >"$WORK/project/.git/hooks/pre-commit"
    chown -R "${1:-0}" "$WORK/project"
    mount_at /work "$WORK/project" rw
    attack='cd /work; echo evil >.git/hooks/pre-commit; echo evil >.git/hooks/post-checkout; rm .git/hooks/pre-commit; mv .git/hooks .git/old; rm -rf .git/hooks
        mv .git aside && mkdir -p .git/hooks && echo evil >.git/hooks/pre-commit
        ln -s /tmp .git/hooks/link; chmod 777 .git/hooks; echo fine >.git/index && mv .git/index .git/index2 && echo git-works'
    script_is "$attack"
}
hooks_of() {
    (cd "$WORK/project/.git/hooks" && head -n 1 -- * && ls -ld . | cut -c 1-10) | xargs
}

@test "protected: .git/hooks of a mounted project is read-only, as root and as uid 1000; its parents cannot be put aside" {
    repository
    POLICY=unconfined run pf_run
    contains "$(hooks_of)" evil
    for owner in 0 1000; do
        rm -rf "$WORK/project"
        configure '.mounts |= map(select(.destination != "/work"))'
        [ "$owner" = 0 ] || as_user
        repository "$owner"
        run pf_run
        contains "$output" git-works
        is "$(hooks_of)" "original drwxr-xr-x"
        [ ! -e "$WORK/project/aside" ]
    done
    has_record fs.write.read_only '.file.path == "/work/.git/hooks/pre-commit"'
}

@test "protected: in exec too" {
    repository
    start_sleeper
    run pf exec "$ID" sh -c "$attack"
    is "$(hooks_of)" "original drwxr-xr-x"
}

@test "protected: hooks that are missing in a repository are an empty directory that stays so" {
    repository 1000
    as_user
    rm -r "$WORK/project/.git/hooks"
    run pf_run
    is "$(ls -A "$WORK/project/.git/hooks")" ""
    is "$(stat -c '%u %F' "$WORK/project/.git/hooks")" "1000 directory"
    [ ! -e "$WORK/project/aside" ]
}

@test "protected: a worktree's .git file stays what it is" {
    echo "gitdir: /elsewhere" >"$WORK/project/.git"
    mount_at /work "$WORK/project" rw
    script_is 'cd /work; echo "gitdir: /work/evil" >.git; rm .git; mv .git x; echo end'
    run pf_run
    contains "$output" end
    is "$(cat "$WORK/project/.git")" "gitdir: /elsewhere"
}

@test "protected: a project without a repository is left alone" {
    mount_at /work "$WORK/project" rw
    script_is 'echo x >/work/file'
    run pf_run
    ended 0
    is "$(ls -A "$WORK/project")" file
}

# -- decoys -------------------------------------------------------------------------------------------------------
