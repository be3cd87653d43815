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
    [ ! -e "$ROOT/etc/by-init" ]
    [ ! -e "$ROOT/etc/by-exec" ]
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
    mount_at /project "$WORK/project" rw
    mkdir "$WORK/project/a" "$WORK/project/b"
    # rename and link between directories, temporary files, pipes and descriptors by name, devices, /proc, message queues
    script_is 'set -e; cd /project; echo x >a/file; mv a/file b/file; ln b/file a/hard; ln -s ../b a/soft; mv b c; rm -r c a
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

# -- readable -----------------------------------------------------------------------------------------------------

policy() { # YAML: the policy of what follows
    printf 'version: 1\n%s\n' "$1" >"$WORK/policy.yaml"
    POLICY=$WORK/policy.yaml
}
# /data has a secret, /project is the project; both belong to everybody, so that only the sandbox denies.
secret() {
    mkdir "$WORK/data"
    echo top-secret >"$WORK/data/file"
    echo project >"$WORK/project/file"
    chmod -R a+rwX "$WORK/data" "$WORK/project"
    mount_at /data "$WORK/data" "${1:-ro}"
    mount_at /project "$WORK/project" "${2:-rw}"
}

@test "readable: what no line names is EACCES, for root and for uid 1000; in exec too" {
    secret
    look='cat /data/file; ls /data; cat /etc/passwd; cat /project/file; cat /proc/self/comm; echo x >/project/new && rm /project/new && echo written'
    script_is "$look"
    POLICY=unconfined run pf_run
    contains "$output" top-secret
    policy 'filesystem: {readable: [/bin, /usr, /lib, /project]}'
    for user in 0 1000; do
        configure --argjson user "$user" '.process.user = {uid: $user, gid: $user}'
        script_is "$look"
        run pf_run
        lacks "$output" top-secret
        lacks "$output" root:x:0
        is "$(grep -c "Permission denied" <<<"$output")" 3
        contains "$output" project
        contains "$output" written
        start_sleeper
        run pf exec "$ID" sh -c "$look"
        lacks "$output" top-secret
        is "$(grep -c "Permission denied" <<<"$output")" 3
        contains "$output" written
        pf delete --force "$ID"
    done
}

@test "readable: the image without the mounts; a mount by its path" {
    secret ro ro
    script_is 'cat /data/file; cat /project/file; grep -c root:x:0 /etc/passwd'
    policy 'filesystem: {readable: ["@image", /project]}'
    run pf_run
    contains "$output" "/data/file': Permission denied"
    contains "$output" project
    is "$(tail -n 1 <<<"$output")" 1
}

@test "readable: a symbolic link of the image is followed in the image, and not to a mount" {
    secret ro ro
    mkdir "$ROOT/opt" && echo tool >"$ROOT/opt/tool" && ln -s opt "$ROOT/link" && ln -s /data "$ROOT/trap"
    policy 'filesystem: {readable: [/bin, /link]}'
    command_is cat /opt/tool
    run pf_run
    ended 0 tool
    policy 'filesystem: {readable: [/bin, /trap]}'
    command_is cat /data/file
    run pf_run
    ended 1 "/trap is a symbolic link to /data"
    lacks "$output" top-secret
}

@test "readable: without Landlock a written line is not put in place, unless best_effort names it" {
    faults
    secret ro ro
    command_is cat /data/file
    export PINFOLD_WITHOUT=landlock
    policy 'filesystem: {readable: ["@image"]}'
    run pf_run
    ended 1 "mechanism.unavailable: filesystem.readable"
    lacks "$output" top-secret
    run pf state "$ID"
    ended 1 "does not exist"
    policy 'filesystem: {readable: ["@image"]}
enforcement: {best_effort: [filesystem.readable]}'
    run pf_run
    ended 0 top-secret
    has_record mechanism.degraded '.message | contains("everything in the container may be read")'
}

@test "readable: globs" {
    secret ro ro
    mkdir "$WORK/data/a" "$WORK/data/b" && echo one >"$WORK/data/a/read.me" && echo two >"$WORK/data/b/other"
    script_is 'cat /data/a/read.me; cat /data/b/other'
    policy 'filesystem: {readable: [/bin, "/data/*/read.*"]}'
    run pf_run
    contains "$output" one
    lacks "$output" two
}

@test "readable: ~, @cwd, a glob, the engine's own files and what is writable, for root and for uid 1000; names stay visible" {
    secret ro rw
    chmod 777 "$ROOT/root" "$ROOT/home/user"
    echo home >"$ROOT/root/mine" && echo home >"$ROOT/home/user/mine"
    mkdir -p "$ROOT/srv/app" "$ROOT/opt" && echo app >"$ROOT/srv/app/code" && echo beside >"$ROOT/srv/beside" && echo other >"$ROOT/opt/echo"
    echo one >"$WORK/data/read.me"
    configure '.process.cwd = "/srv/app"'
    policy 'filesystem: {readable: [/bin, "~", "@cwd", "/data/*.me"]}'
    for user in 0 1000; do
        configure --argjson user "$user" '.process.user = {uid: $user, gid: $user}'
        script_is 'cd /srv/app; cat code ~/mine /data/read.me /project/file; echo x >/tmp/x && cat /tmp/x; head -c 0 /dev/null /proc/self/stat
            for each in /srv/beside /opt/echo /data/file /etc/passwd; do cat $each && echo READ $each; done
            ls /srv; stat -c %n:%s /srv/beside; cat /bin/true >/dev/null && echo end'
        configure --arg home "$([ "$user" = 0 ] && echo /root || echo /home/user)" '.process.env += ["HOME=" + $home]'
        run pf_run
        is "$(grep -c "Permission denied" <<<"$output")" 5 # with ls /srv
        lacks "$output" READ
        is "$(grep -v "denied" <<<"$output" | sed '/^==>/d; /^$/d' | xargs)" "app home one project x /srv/beside:7 end"
    done
}

@test "readable: where Landlock is forced away best_effort may name the mechanism; an annotation is a written line too" {
    faults
    secret ro ro
    command_is cat /data/file
    export PINFOLD_WITHOUT=landlock
    policy 'filesystem: {readable: ["@image"]}
enforcement: {best_effort: [landlock]}'
    for user in 0 1000; do
        configure --argjson user "$user" '.process.user = {uid: $user, gid: $user}'
        ID=$ID-$user LOG=$LOGS/$ID.jsonl
        run pf_run
        ended 0 top-secret
        has_record mechanism.degraded '.message | contains("everything in the container may be read")'
        is "$(records '.status_detail == "mechanism.degraded"' | wc -l)" 1
    done
    # best_effort of something else is not enough
    policy 'filesystem: {readable: ["@image"]}
enforcement: {best_effort: [filesystem.writable]}'
    run pf_run
    ended 1 "mechanism.unavailable: filesystem.readable ($WORK/policy.yaml:2:24)"
    POLICY=agent
    configure '.annotations = {"dev.pinfold.filesystem.readable": "[\"@image\"]"}'
    run pf_run
    ended 1 "mechanism.unavailable: filesystem.readable (annotation dev.pinfold.filesystem.readable"
    lacks "$output" top-secret
    [ ! -e "$STATE/$ID" ]
    # a list that is as wide as the default needs nothing
    configure '.annotations = {}'
    policy 'filesystem: {readable: ["@mounts", "@image"]}'
    run pf_run
    ended 0 top-secret
    # and writable is by mounts
    policy 'filesystem: {writable: [/tmp]}'
    script_is 'echo x >/project/by-work || echo denied'
    run pf_run
    ended 0 denied
}

# "PATH PROGRAM COUNT" of each denied read.
denied_reads() {
    records '.status_detail == "fs.read.not_granted"' | jq -r '"\(.file.path) \(.actor.process.name) \(.count // 1)"' |
        awk '{ n[$1 " " $2] += $3 } END { for (each in n) print each, n[each] }' | sort
}

@test "readable: each denied read is a record with a remedy, which as it stands lets it pass; what Landlock is not asked about leaves none" {
    secret ro rw
    mkdir "$ROOT/opt" && ln "$ROOT/bin/busybox" "$ROOT/opt/tool" && cp "$ROOT/bin/busybox" "$ROOT/opt/echo"
    echo beside >"$ROOT/etc/beside" && chmod 600 "$ROOT/etc/beside" && chown 5:5 "$ROOT/etc/beside"
    ln -s /data/file "$ROOT/bin/to-data"
    # by path, by a symlink, from a directory, by a magic link; listed; executed
    try='cat /data/file; cat /bin/to-data; cd /data; cat file; cat /proc/self/cwd/file; ls /data; /opt/echo true; echo end'
    # not asked, not there, denied by the mode, of a hard link to what may be read, or granted
    quiet='stat -c %s /data/file; cat /data/missing; cat /etc/beside; [ -r /opt/echo ]; echo x >/tmp/y; cat /tmp/y /project/file; /opt/tool true; echo </dev/null'
    for user in 0 1000; do
        configure --argjson user "$user" '.process.user = {uid: $user, gid: $user}'
        script_is "$try; $quiet"
        ID=$PREFIX-$user LOG=$LOGS/$ID.jsonl
        policy 'filesystem: {readable: [/bin/busybox, /project]}'
        run pf_run
        lacks "$output" top-secret
        contains "$output" end
        is "$(denied_reads)" $'/data ls 1\n/data/file cat 4\n/opt/echo sh 1'
        check=${CHECK_OCSF:-$(readlink -f "$PINFOLD_TESTS/../../shared/bin/check-ocsf")}
        [ ! -x "$check" ] || "$check" "$LOG"
        # the remedies
        for each in /data/file /opt/echo; do
            remedy=$(records ".file.path == \"$each\"" | head -n 1 | jq -r .unmapped.remedy)
            is "$remedy" "filesystem: {readable: [\"/bin/busybox\",\"/project\",\"$each\"]}"
            policy "$remedy"
            script_is 'cat /data/file; /opt/echo other-ran; echo end'
            ID=$PREFIX-$user-remedy-${each##*/} LOG=$LOGS/$ID.jsonl
            run pf_run
            is "$(grep -c -e top-secret -e other-ran <<<"$output") $(denied_reads | wc -l)" "1 1"
            ID=$PREFIX-$user LOG=$LOGS/$ID.jsonl
        done
        # all of them at once
        pf policy suggest "$ID" >"$WORK/suggested.yaml"
        sed '/^extends/d' "$WORK/suggested.yaml" >"$WORK/policy.yaml"
        script_is "$try"
        ID=$PREFIX-$user-all LOG=$LOGS/$ID.jsonl
        run pf_run
        is "$(grep -c top-secret <<<"$output") $(denied_reads)" "4 "
    done
}

@test "readable: @cwd and ~ are not the whole container, whatever the image says" {
    secret ro ro
    sed -i 's|^root:.*|root:x:0:0:root:/:/bin/sh|' "$ROOT/etc/passwd"
    configure '.process.cwd = "/"'
    policy 'filesystem: {readable: [/bin, "@cwd", "~"]}'
    script_is 'cat /data/file; cat /etc/passwd; echo end'
    run pf_run
    is "$(grep -c "Permission denied" <<<"$output") $(tail -n 1 <<<"$output")" "2 end"
}

@test "readable: in exec too, with its ID; by default nobody waits for a look at what is read" {
    secret ro rw
    policy 'filesystem: {readable: [/bin]}'
    start_sleeper
    run pf exec "$ID" cat /data/file
    ended 1 "Permission denied"
    has_record fs.read.not_granted '.file.path == "/data/file" and (.unmapped.exec_id | length) > 0'
    # the program itself
    cp "$ROOT/bin/busybox" "$ROOT/opt-tool"
    run pf exec "$ID" /opt-tool true
    ended 255 "permission denied"
    has_record fs.read.not_granted '.file.path == "/opt-tool"'
    pf delete --force "$ID"
    POLICY=agent
    is "$(pf explain --bundle "$BUNDLE" --json | jq -c '[.. | strings | select(test("^execve"))]')" '[]'
}

@test "readable: the record agrees with what the kernel says without the observer: files, links, mounts, directories" {
    faults
    secret ro rw
    mkdir -p "$ROOT/srv/a/b" "$ROOT/opt/x" "$WORK/data/sub/deep" "$WORK/project/.git"
    echo 1 >"$ROOT/srv/a/b/one"; ln "$ROOT/srv/a/b/one" "$ROOT/srv/hard"; ln -s a/b/one "$ROOT/srv/soft"; ln -s /data/sub "$ROOT/srv/mount"
    ln -s ../srv/a "$ROOT/opt/up"; echo 2 >"$ROOT/opt/x/two"; echo 3 >"$WORK/data/sub/deep/three"; echo 4 >"$WORK/project/.git/four"
    ln -s loop "$ROOT/srv/loop"; ln -s /proc/self/root/etc/passwd "$ROOT/srv/magic"; mkfifo "$ROOT/srv/fifo"; ln -s missing "$ROOT/srv/dangling"
    chmod -R a+rX "$WORK/data" "$WORK/project"
    (cd "$ROOT" && find srv opt etc -printf '/%p\n'; find "$WORK/data" -printf '/data/%P\n'; find "$WORK/project" -printf '/project/%P\n'
        printf '%s\n' / /bin /bin/busybox /proc/self/status /proc/1/root/etc/group /proc/self/root/data/file /dev/null /tmp /srv/../data/file /data/sub/../../srv/hard /proc /sys) >"$WORK/project/paths"
    script_is 'while read -r path; do
            if [ -d "$path" ]; then ls -a "$path" >/dev/null 2>/tmp/error; elif [ -p "$path" ]; then continue; else head -c 1 "$path" >/dev/null 2>/tmp/error; fi
            result=$? message=; read -r message </tmp/error
            echo "$result $path ${message##*: }"
        done </project/paths'
    for readable in '/bin, /srv/hard, /data/sub' '/bin, "/data/*/deep", /opt/up, /srv/soft' '"@image", /data/sub'; do
        policy "filesystem: {readable: [$readable]}"
        ID=$PREFIX-$RANDOM LOG=$LOGS/$ID.jsonl
        pf_run >"$WORK/observed" 2>&1
        is "$(records '.status_detail == "fs.read.not_granted"' | jq -s 'map(.count // 1) | add // 0')" "$(grep -c "Permission denied" "$WORK/observed")"
        ID=$ID-alone LOG=$LOGS/$ID.jsonl
        PINFOLD_WITHOUT=reading pf_run >"$WORK/alone" 2>&1
        is "$(denied_reads)" ''
        is "$(cat "$WORK/observed")" "$(cat "$WORK/alone")"
        more_than "$(grep -c "Permission denied" "$WORK/alone")" 3 
        more_than "$(grep -c "^0" "$WORK/alone")" 3
    done
}

# -- writable -----------------------------------------------------------------------------------------------------

# Who may write a file by its owner may do so, and nobody else: the policy gives no rights of its own.
@test "writable: / leaves the root as the engine made it, for root and for uid 1000" {
    policy 'filesystem: {writable: [/]}'
    for user in 0 1000; do
        configure --argjson user "$user" '.process.user = {uid: $user, gid: $user} | .root.readonly = false'
        script_is 'for d in /etc /home/user; do echo x >$d/x && rm $d/x && echo wrote $d; done'
        run pf_run
        contains "$output" "wrote $([ "$user" = 0 ] && echo /etc || echo /home/user)" # no CAP_DAC_OVERRIDE
        is "$(grep -c "Permission denied" <<<"$output") $(grep -c wrote <<<"$output")" "1 1"
        configure '.root.readonly = true'
        run pf_run
        lacks "$output" wrote
        contains "$output" "Read-only file system"
    done
}

@test "writable: @cwd, ~/x and a directory of the image, for root and for uid 1000, in exec too; a system directory as @cwd is not" {
    mkdir -m 777 "$ROOT/srv" "$ROOT/srv/app" "$ROOT/opt"
    chmod 777 "$ROOT/root" "$ROOT/home/user" "$ROOT/etc"
    policy 'filesystem: {writable: ["@cwd", "~/x", /opt], scratch: [/tmp]}'
    local try='for d in /srv /srv/app /opt ~/x ~ /usr /etc /var/tmp /tmp; do echo y >$d/y && echo wrote $d; done 2>/dev/null | xargs'
    for user in 0 1000; do
        local home=/home/user
        [ "$user" != 0 ] || home=/root
        configure --argjson user "$user" --arg home "$home" '.process.user = {uid: $user, gid: $user} | .process.cwd = "/srv/app" | .process.env += ["HOME=" + $home]'
        script_is "$try"
        run pf_run
        is "$output" "wrote /srv/app wrote /opt wrote $home/x wrote /tmp"
        configure '.process.cwd = "/srv"'
        run pf_run
        is "$output" "wrote /opt wrote $home/x wrote /tmp"
        start_sleeper
        run pf exec "$ID" sh -c "$try"
        is "$output" "wrote /opt wrote $home/x wrote /tmp"
        pf delete --force "$ID"
    done
}

@test "writable: without @mounts what the engine mounted is read-only, but for the lines; for root and for uid 1000" {
    secret rw rw
    mkdir -m 777 "$WORK/data/out"
    policy 'filesystem: {writable: [/project, /data/out, /etc/made]}'
    for user in 0 1000; do
        configure --argjson user "$user" '.process.user = {uid: $user, gid: $user}'
        script_is 'echo x >/project/by-work; echo x >/data/by-data; echo x >/data/out/by-out; echo x >/etc/made/by-image; echo x >/tmp/x && echo end'
        run pf_run
        contains "$output" end
        contains "$output" "/data/by-data: Read-only file system"
        is "$(find "$WORK/data" "$WORK/project" -name 'by-*' -printf '%f\n' | sort | xargs)" "by-out by-work"
        rm "$WORK/data/out/by-out" "$WORK/project/by-work"
        lacks "$output" by-image
        [ ! -e "$ROOT/etc/made/by-image" ]
        rmdir "$ROOT/etc/made" # of the one user
    done
    has_record fs.write.read_only '.file.path == "/data/by-data"'
}

# The remedy of a record, applied as it stands.
@test "writable: one file of the image, and none of its neighbours; in memory, or in the container's own layer" {
    printf 'first\n' >"$ROOT/etc/motd"
    echo >"$ROOT/etc/other"
    chown 1000:1000 "$ROOT/etc/motd" "$ROOT/etc/other"
    as_user
    script_is 'echo second >>/etc/motd; cat /etc/motd; stat -c %u:%a /etc/motd; echo x >/etc/other'
    run pf_run
    lacks "$output" second
    local remedy
    remedy=$(records '.file.path == "/etc/motd"' | jq -r .unmapped.remedy)
    is "$remedy" 'filesystem: {writable: ["@default", "/etc/motd"]}'
    printf 'version: 1\n%s\n' "$remedy" >"$WORK/policy.yaml"
    POLICY=$WORK/policy.yaml ID=$ID-memory LOG=$LOGS/$ID.jsonl
    run pf_run
    contains "$output" $'first\nsecond\n1000:644'
    is "$(cat "$ROOT/etc/motd")" first # in memory
    is "$(records '.action_id == 2 and .file.path == "/etc/motd"')" ''
    has_record fs.write.read_only '.file.path == "/etc/other"'
    # a root that is a mount of its own, as engines have it
    mount --bind "$ROOT" "$ROOT"
    ID=$ID-layer LOG=$LOGS/$ID.jsonl
    run pf_run
    umount "$ROOT"
    contains "$output" $'first\nsecond\n1000:644'
    is "$(cat "$ROOT/etc/motd")" $'first\nsecond'
}

@test "writable: a file that is a symbolic link, or no file, is passed over" {
    ln -s /etc/passwd "$ROOT/etc/link"
    mkfifo "$ROOT/etc/pipe"
    printf '%s\n' 'version: 1' 'filesystem: {writable: ["@default", /etc/link, /etc/pipe, /etc/group/x]}' >"$WORK/policy.yaml"
    POLICY=$WORK/policy.yaml
    script_is 'echo x >>/etc/passwd'
    run pf_run
    ended 1 "Read-only file system"
}

@test "writable: what the engine mounted read-only stays so" {
    secret ro ro
    policy 'filesystem: {writable: [/data, "@mounts"]}'
    script_is 'echo x >/data/new'
    run pf_run
    contains "$output" "Read-only file system"
    [ ! -e "$WORK/data/new" ]
}

# -- hidden -------------------------------------------------------------------------------------------------------

@test "hidden: paths, globs at any depth and directories are empty, as root and as uid 1000, and stay so when moved" {
    secret ro rw
    mkdir -p "$WORK/project/a/b" "$WORK/project/keys"
    echo s3cret | tee "$WORK/project/.env" "$WORK/project/a/b/.env" "$WORK/project/keys/one" "$ROOT/etc/hide-me" >/dev/null
    chmod -R a+rwX "$WORK/project"
    attack='cat /project/.env /project/a/b/.env /project/keys/* /etc/hide-me; mv /project/a /project/c; cat /project/c/b/.env; ln /project/.env /project/hard; cat /project/hard
        mv /project/.env /project/x; cat /project/x; rm /project/.env; cat /project/.env; mkdir /project/d; mv /project/keys /project/d/keys; cat /project/d/keys/one; cat /data/file; echo end'
    script_is "$attack"
    policy 'filesystem: {hidden: ["/project/**/.env", /project/keys, /etc/hide-me]}'
    for user in 0 1000; do
        configure --argjson user "$user" '.process.user = {uid: $user, gid: $user}'
        run pf_run
        contains "$output" end
        contains "$output" top-secret
        lacks "$output" s3cret
        [ ! -e "$WORK/project/c" ] || mv "$WORK/project/c" "$WORK/project/a"
        rm -rf "$WORK/project/d"
    done
    is "$(cat "$WORK/project/.env" "$WORK/project/a/b/.env" "$WORK/project/keys/one" | xargs)" "s3cret s3cret s3cret"
    POLICY=unconfined run pf_run
    contains "$output" s3cret
}

@test "hidden: a glob that matches more than is looked at is refused, and leaves nothing" {
    secret ro rw
    mkdir "$WORK/project/many"
    (cd "$WORK/project/many" && seq 600 | xargs touch)
    policy 'filesystem: {hidden: ["/project/many/*"]}'
    run pf_run
    ended 1 "/project/many/*"
    run pf state "$ID"
    ended 1 "does not exist"
}

# -- protected ----------------------------------------------------------------------------------------------------

repository() { # [OWNER]
    mkdir -p "$WORK/project/.git/hooks"
    echo 'original' >"$WORK/project/.git/hooks/pre-commit"
    chown -R "${1:-0}" "$WORK/project"
    mount_at /project "$WORK/project" rw
    attack='cd /project; echo evil >.git/hooks/pre-commit; echo evil >.git/hooks/post-checkout; rm .git/hooks/pre-commit; mv .git/hooks .git/old; rm -rf .git/hooks
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
        configure '.mounts |= map(select(.destination != "/project"))'
        [ "$owner" = 0 ] || as_user
        repository "$owner"
        run pf_run
        contains "$output" git-works
        is "$(hooks_of)" "original drwxr-xr-x"
        [ ! -e "$WORK/project/aside" ]
    done
    has_record fs.write.read_only '.file.path == "/project/.git/hooks/pre-commit"'
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
    mount_at /project "$WORK/project" rw
    script_is 'cd /project; echo "gitdir: /project/evil" >.git; rm .git; mv .git x; echo end'
    run pf_run
    contains "$output" end
    is "$(cat "$WORK/project/.git")" "gitdir: /elsewhere"
}

@test "protected: a project without a repository is left alone" {
    mount_at /project "$WORK/project" rw
    script_is 'echo x >/project/file'
    run pf_run
    ended 0
    is "$(ls -A "$WORK/project")" file
}

# -- decoys -------------------------------------------------------------------------------------------------------

@test "decoys: filesystem.readable lifts one by its exact path" {
    mkdir -p "$ROOT/root/.ssh" && echo of-the-image | tee "$ROOT/root/.ssh/id_rsa" "$ROOT/root/.ssh/id_ed25519" >/dev/null
    chmod -R a+rX "$ROOT/root"
    script_is 'cat /root/.ssh/id_rsa; cat /root/.ssh/id_ed25519'
    policy 'filesystem: {readable: ["@image", "@mounts", /root/.ssh/id_rsa]}'
    run pf_run
    contains "$output" of-the-image
    is "$(grep -c of-the-image <<<"$output")" 1
    has_record fs.decoy.opened '.file.path == "/root/.ssh/id_ed25519"'
    is "$(records '.status_detail == "fs.decoy.opened" and .file.path == "/root/.ssh/id_rsa"')" ""
}
