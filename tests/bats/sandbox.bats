#!/usr/bin/env bats
# pinfold sandbox: a command of this machine, in a container made of this machine's own system directories.
load helpers

setup() {
    setup_container
    POLICY=''
    PROJECT=$WORK/project
    mkdir "$PROJECT"
    echo "print me" >"$PROJECT/file"
}
teardown() { teardown_container; }

box() { # WORD...
    (cd "$PROJECT" && timeout -k 5 30 "$PINFOLD" --root "$STATE" sandbox --id "$ID" "$@" </dev/null 3>&-)
}

@test "the command runs in the current directory, at its own path, and may write there" {
    run box -- sh -c 'pwd; cat file; echo new > made'
    ended 0
    is "$(xargs <<<"$output")" "$PROJECT print me"
    is "$(cat "$PROJECT/made")" new
}

@test "-w DIR" {
    mkdir "$WORK/other"
    run box -w "$WORK/other" -- sh -c 'pwd; touch x'
    ended 0 "$WORK/other"
    [ -e "$WORK/other/x" ]
}

@test "the exit code is the command's" {
    run box -- sh -c 'exit 5'
    ended 5
}

@test "-- may be left out" {
    run box echo said
    ended 0
    is "$output" said
}

@test "a command that is not there: 127's words, and a non-zero code" {
    run box -- nosuchcommand
    [ "$status" != 0 ]
    contains "$output" nosuchcommand
}

@test "the machine's programs are there, and cannot be changed" {
    run box -- sh -c 'ls /usr/bin >/dev/null && echo x > /usr/bin/ls'
    [ "$status" != 0 ]
    contains "$output" "Read-only file system"
}

@test "nothing of other people's: homes, /root, /var, /srv" {
    mkdir -p "$WORK/elsewhere" && echo private >"$WORK/elsewhere/file"
    run box -- sh -c "ls -A /home 2>/dev/null; ls -A /srv 2>/dev/null; cat $WORK/elsewhere/file 2>/dev/null; cat /etc/shadow 2>/dev/null; exit 0"
    lacks "$output" private
    lacks "$output" "root:"
}

@test "no credentials: the environment is filtered, the home is empty but for decoys" {
    GITHUB_TOKEN=fake4711 FINE=1 run box -- env
    lacks "$output" fake4711
    run box --env GIVEN=1 -- sh -c 'echo $GIVEN'
    contains "$output" 1
}

@test "no network" {
    run box -- bash -c 'exec 3<>/dev/tcp/1.2.3.4/443'
    [ "$status" != 0 ]
    contains "$output" "Connection refused"
    has_record net.address.literal
}

@test "a working directory that is a home or a system directory is refused or not writable as such" {
    run box -w / -- true
    [ "$status" != 0 ]
    run box -w /etc -- true
    [ "$status" != 0 ]
}

@test "nothing stays: no mount, no state, no process (checked by the teardown)" {
    run box -- sh -c 'sleep 100 & exit 0'
    ended 0
    is "$(ls -A "$STATE" 2>/dev/null | grep -v '^.sandboxes$')" ""
    is "$(ls -A "$STATE/.sandboxes" 2>/dev/null)" ""
}

@test "standard input reaches the command" {
    run bash -c 'cd "$1" && echo given | timeout 20 "$0" --root "$2" sandbox --id "$3" -- cat 3>&-' "$PINFOLD" "$PROJECT" "$STATE" "$ID"
    is "$output" given
}

@test "as a user who is not root" {
    setpriv --reuid 47110 --regid 47110 --clear-groups unshare -Ur true 2>/dev/null || skip "this machine lets ordinary users make no user namespace"
    chmod 755 "$WORK" "$BATS_RUN_TMPDIR"
    mkdir "$WORK/user" && cp "$PINFOLD" "$WORK/user/pinfold" && mkdir "$WORK/user/project" && chown -R 47110:47110 "$WORK/user"
    # a user of this mount namespace alone, with a home for its records
    { cat /etc/passwd; echo "pinfold-test:x:47110:47110::$WORK/user:/bin/sh"; } >"$WORK/passwd"
    mount --bind "$WORK/passwd" /etc/passwd
    run setpriv --reuid 47110 --regid 47110 --clear-groups env -i PATH="$PATH" HOME="$WORK/user" \
        timeout 20 "$WORK/user/pinfold" --root "$WORK/user/state" sandbox -w "$WORK/user/project" --id "$ID" -- sh -c 'echo x > made; touch /usr/bin/x; pwd' </dev/null 3>&-
    umount /etc/passwd
    contains "$output" "$WORK/user/project"
    contains "$output" "Read-only file system"
    is "$(cat "$WORK/user/project/made")" x
}
