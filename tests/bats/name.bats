#!/usr/bin/env bats
# The name of the link that pinfold is called by selects the policy: engines that can give a runtime no flag need it.
load helpers

setup() {
    setup_container
    mkdir "$WORK/bin"
    POLICY=''
}
teardown() { teardown_container; }

# What a container sees of its policy, run by a link called NAME.
by_name() { # NAME [OPTION...]
    local PINFOLD=$PINFOLD
    ln -sf "$(readlink -f "$PINFOLD")" "$WORK/bin/$1"
    PINFOLD=$WORK/bin/$1
    shift
    script_is 'grep NoNewPrivs: /proc/self/status; touch /x && echo written'
    configure '.process.noNewPrivileges = false'
    pf "$@" run --bundle "$BUNDLE" "$ID" </dev/null
}

@test "pinfold-unconfined is pinfold --policy unconfined" {
    run by_name pinfold-unconfined
    ended 0 written
    contains "$output" "NoNewPrivs:	0"
}

@test "pinfold-agent, pinfold and another name have the agent policy" {
    for name in pinfold-agent pinfold crun unconfined pinfold-; do
        run by_name "$name"
        ended 1 "NoNewPrivs:	1"
        contains "$output" "Read-only file system"
    done
}

@test "--policy is stronger than the name" {
    run by_name pinfold-unconfined --policy agent
    ended 1 "Read-only file system"
    run by_name pinfold-agent --policy unconfined
    ended 0 written
}

@test "a name without such a policy fails and says so" {
    run by_name pinfold-nosuch
    ended 1 nosuch
    [ ! -e "$STATE/$ID" ]
}

@test "the container's own exec keeps the policy of its create, whatever the name then is" {
    configure '.process.noNewPrivileges = false'
    start_sleeper
    ln -sf "$(readlink -f "$PINFOLD")" "$WORK/bin/pinfold-unconfined"
    PINFOLD=$WORK/bin/pinfold-unconfined run pf exec "$ID" sh -c 'grep NoNewPrivs: /proc/self/status; touch /x'
    ended 1 "NoNewPrivs:	1"
    contains "$output" "Read-only file system"
}

@test "the state directory of uid 0 of a user's namespace is the user's, not root's" {
    local user=61234 directory=$WORK/runtime
    mkdir -m 700 "$directory"
    chown $user:$user "$directory"
    chmod 755 "$WORK" && chmod 711 "$BATS_RUN_TMPDIR"
    install -m 755 "$PINFOLD" "$WORK/bin/pinfold"
    as_user_root() { setpriv --reuid $user --regid $user --clear-groups unshare -U -r env -i PATH="$PATH" "$@" "$WORK/bin/pinfold" create --bundle "$WORK/none" "$ID"; }
    mkdir "$WORK/none"
    cp "$BUNDLE/config.json" "$WORK/none/"
    chmod -R a+rX "$WORK/none"
    # it fails, because there is no root there; where it kept its state until then is the question
    run as_user_root XDG_RUNTIME_DIR="$directory"
    ended 1
    lacks "$output" "/run/pinfold"
    [ -d "$directory/pinfold" ]
    # root's own variable counts for nothing
    XDG_RUNTIME_DIR=$directory/mine run "$PINFOLD" create --bundle "$WORK/none" "$ID"
    ended 1
    [ ! -e "$directory/mine" ]
}
