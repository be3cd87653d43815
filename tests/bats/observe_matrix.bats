#!/usr/bin/env bats
# Each denied operation, as root and as a user, with each observer: what it must leave in the record, or why it leaves none.
# The operations are programs of tests/observe/operations.c, one process each, whose names the records carry.
load helpers

# NAME|RESULT|SECCOMP|ROOTLESS|BPF. Expectations: "ro ACTIVITY PATH" is fs.write.read_only, "perm ACTIVITY PATH"
# fs.permission.denied, "decoy PATH" and "seen PATH" fs.decoy.opened denied and observed, "call NAME" syscall.not_allowed,
# "- KEY" none, for the reason below; "=" is as SECCOMP. RESULT "A/B": B as an ordinary user. $ is the operation's directory /m/NAME,
# @ the decoy. Activities: 1 create, 2 read, 3 update, 4 delete, 5 rename, 14 open.
matrix() {
    cat <<'END'
open-write|EROFS|ro 3 $/old|=|=
open-create|EROFS|ro 1 $/new|=|=
creat|EROFS|ro 1 $/new|=|=
open-truncate|EROFS|ro 3 $/old|=|=
open-tmpfile|EROFS|ro 1 $|=|=
mkdir|EROFS|ro 1 $/new|=|=
mkdirat|EROFS|ro 1 $/new|=|=
mknod|EROFS|ro 1 $/new|=|=
unlink|EROFS|ro 4 $/old|=|=
rmdir|EROFS|ro 4 $/empty|=|=
unlinkat|EROFS|ro 4 $/empty|=|=
rename|EROFS|ro 5 $/old|=|=
renameat2|EROFS|ro 5 $/old|=|=
chmod|EROFS|ro 3 $/old|=|=
fchmodat2|EROFS|ro 3 $/old|=|=
fchmod|EROFS|- descriptor|=|ro 3 $/old
lchown|EROFS|ro 3 $/old|=|=
truncate|EROFS|ro 3 $/old|=|=
link|EROFS|ro 1 $/new|=|=
linkat|EROFS|ro 1 $/new|=|=
symlink|EROFS|ro 1 $/new|=|=
utimensat|EROFS|ro 3 $/old|=|=
utimes|EROFS|ro 3 $/old|=|=
futimens|EROFS|- descriptor|=|ro 3 $/old
setxattr|EROFS|ro 3 $/old|=|=
lremovexattr|EROFS|ro 3 $/old|=|=
openat2|EROFS|ro 1 $/new|=|=
openat2-beneath|EROFS|ro 3 $/old|=|=
by-symlink|EROFS|ro 3 $/old|=|=
by-dots|EROFS|ro 3 $/old|=|=
by-dirfd|EROFS|ro 1 $/new|=|=
by-cwd|EROFS|ro 3 $/old|=|=
by-proc-self|EROFS|ro 3 $/old|=|=
by-proc-cwd|EROFS|ro 1 $/new|=|=
by-io-uring|ENOSYS|call io_uring_setup|=|=
secret-read|EACCES|- reading|=|perm 2 /w/secret
secret-write|EACCES|perm 3 /w/secret|=|=
secret-dirfd|EACCES|- reading|=|perm 2 /w/secret
secret-cwd|EACCES|- reading|=|perm 2 /w/secret
secret-symlink|EACCES|- reading|=|perm 2 /w/secret
secret-openat2|EACCES|- reading|=|perm 2 /w/secret
secret-exec|EACCES|- reading|=|perm 2 /w/plain
secret-truncate|EACCES|perm 3 /w/secret|=|=
closed-below|EACCES|- reading|=|perm 2 /w/closed/file
closed-create|EACCES|perm 1 /w/fixed/new|=|=
closed-unlink|EACCES|perm 4 /w/fixed/old|=|=
closed-mkdir|EACCES|perm 1 /w/fixed/new|=|=
others-chmod|EPERM|perm 3 /w/others|=|=
others-utimes|EPERM|perm 3 /w/others|=|=
decoy-open|EPERM/done|decoy @|seen @|=
decoy-dirfd|EPERM/done|decoy @|seen @|=
decoy-cwd|EPERM/done|decoy @|seen @|=
decoy-symlink|EPERM/done|decoy @|seen @|=
decoy-openat2|EPERM/done|decoy @|seen @|=
decoy-proc-root|EPERM/done|decoy @|seen @|=
decoy-write|EACCES|perm 3 @|=|=
decoy-link|EXDEV|- other|=|=
decoy-stat|done|- done|=|=
decoy-path|done|- done|=|=
absent|ENOENT|- absent|=|=
masked-file|done|- done|=|=
masked-dir|ENOENT|- absent|=|=
mount|EPERM|call mount|=|=
ptrace|EPERM|call ptrace|=|=
bpf|EPERM|call bpf|=|=
END
}
reason_of() { # KEY
    case $1 in
    descriptor) echo "acts on a descriptor that is open already: nobody is asked about it" ;;
    reading) echo "reading and executing: nobody is asked about it; where a policy narrows what may be read, what it does not grant is recorded" ;;
    other) echo "fails for another reason than a denial" ;;
    done) echo "succeeds: what can be seen so is harmless" ;;
    absent) echo "there is nothing, which most programs find many times a second" ;;
    esac
}

setup() {
    setup_container
    POLICY=$WORK/policy.yaml
    command -v gcc >/dev/null || skip "needs gcc"
}
teardown() { teardown_container; }

operations() {
    matrix | cut -d'|' -f1
}
# The read-only /m and the writable /w, all of OWNER, but for /w/others and /w/fixed/old.
prepare() { # OWNER USER-ID
    local program=$BATS_RUN_TMPDIR/operations name others=0
    [ "$1" != 0 ] || others=1
    [ -x "$program" ] || gcc -std=gnu17 -O1 -static -o "$program" "$PINFOLD_TESTS/observe/operations.c"
    mkdir -p "$ROOT/m/bin" "$ROOT/w" "$WORK/w"/{closed,fixed}
    cp "$program" "$ROOT/m/bin/run"
    for name in $(operations); do
        ln "$ROOT/m/bin/run" "$ROOT/m/bin/$name"
        mkdir -p "$ROOT/m/$name/empty"
        echo old >"$ROOT/m/$name/old"
    done
    mkdir "$ROOT/m/last" && echo old >"$ROOT/m/last/old"
    echo x | tee "$WORK/w/secret" "$WORK/w/plain" "$WORK/w/closed/file" "$WORK/w/fixed/old" >"$WORK/w/others"
    ln -s secret "$WORK/w/to-secret"
    ln -s /m/by-symlink/old "$WORK/w/by-symlink"
    chmod 644 "$WORK/w/plain" "$WORK/w/fixed/old" "$WORK/w/others"
    chown -hR "$1:$1" "$ROOT/m" "$WORK/w"
    chown "$others:$others" "$WORK/w/others" "$WORK/w/fixed/old"
    chmod 0 "$WORK/w/secret" "$WORK/w/closed"
    chmod 555 "$WORK/w/fixed"
    # shellcheck disable=SC2046 # names are words
    command_is /m/bin/run $(operations)
    configure --arg w "$WORK/w" --argjson user "$2" '.process.capabilities = {} | .process.user = {uid: $user, gid: $user}
      | .mounts += [{destination: "/w", type: "bind", source: $w, options: ["rbind", "rw"]}]'
}
decoy_is() { # HOME
    DECOY=$1/.ssh/id_ed25519
    configure --arg decoy "$DECOY" '.process.env += ["DECOY=" + $decoy]'
}
policy_is() { # LINE...
    printf '%s\n' 'version: 1' "$@" >"$POLICY"
}

# What the table says, in the form of what was seen: "NAME RECORD".
expected() { # COLUMN (3 seccomp, 4 rootless, 5 bpf)
    matrix | awk -F '|' -v column="$1" -v decoy="$DECOY" '{
        expectation = $column == "=" ? $3 : $column
        if (expectation ~ /^-/) expectation = "-"
        gsub(/\$/, "/m/" $1, expectation); gsub(/@/, decoy, expectation)
        # nobody is named there
        if (expectation ~ /^seen/) { print "? " expectation; expectation = "-" }
        print $1 " " expectation
    }' | sort -u
}
seen() { # LOG
    jq -r '
      (.actor.process.name) as $name
      | select(.action_id == 2 or .action_id == 3) | select(.status_detail | test("^(fs|syscall)[.]"))
      | {"fs.write.read_only": "ro \(.activity_id) \(.file.path)", "fs.permission.denied": "perm \(.activity_id) \(.file.path)",
         "fs.decoy.opened": (if .action_id == 2 then "decoy \(.file.path)" else "seen \(.file.path)" end),
         "syscall.not_allowed": "call \(.activity_name)"}[.status_detail] as $what
      | (if .status_detail == "fs.decoy.opened" and .action_id == 3 then "?" else $name end) + " " + ($what // .status_detail)' "$1" >"$WORK/lines"
    local name
    for name in $(operations); do
        grep "^$name " "$WORK/lines" || echo "$name -"
    done >"$WORK/found"
    grep '^? ' "$WORK/lines" >>"$WORK/found" || :
    sort -u "$WORK/found"
}
results() { # FIELD-OF-RESULT
    matrix | awk -F '|' -v part="$1" '{ split($2, result, "/"); print $1 " " (part == 2 && result[2] != "" ? result[2] : result[1]) }'
}
same() { # EXPECTED-FILE FOUND-FILE
    diff "$1" "$2" || { echo "< must be, > is" >&2; return 1; }
}

@test "root, the seccomp observer: each denied operation has its one record, or none for a reason" {
    prepare 1000 1000
    decoy_is /home/user
    policy_is 'observe: {files: seccomp}'
    pf_run >"$WORK/out" 2>"$WORK/err" || { cat "$WORK/err"; false; }
    results 1 >"$WORK/results"
    same "$WORK/results" "$WORK/out"
    expected 3 >"$WORK/expected"
    seen "$LOG" >"$WORK/seen"
    same "$WORK/expected" "$WORK/seen"
    is "$(pf explain --bundle "$BUNDLE" --json | jq -r '.mechanisms[] | select(.name == "denied file calls") | .state + " " + .how' | cut -c1-17)" "enforced seccomp:"
}

# As another user, with a home of this test's for the records.
as_user() { # COMMAND...
    setpriv --reuid 47110 --regid 47110 --clear-groups env -i PATH="$PATH" HOME="$WORK/user" \
        timeout -k 5 "${LIMIT:-60}" "$WORK/user/pinfold" --root "$WORK/user/state" --policy "$POLICY" "$@" </dev/null 3>&-
}

@test "an ordinary user, the seccomp observer: each denied operation has its one record, or none for a reason" {
    setpriv --reuid 47110 --regid 47110 --clear-groups unshare -Ur true 2>/dev/null || skip "this machine lets ordinary users make no user namespace"
    prepare 47110 0
    decoy_is /root
    policy_is 'observe: {files: seccomp}'
    chmod 755 "$WORK" "$BATS_RUN_TMPDIR" "$BUNDLE"
    chown -R 47110:47110 "$ROOT/root"
    mkdir "$WORK/user" && cp "$PINFOLD" "$WORK/user/pinfold" && chown -R 47110:47110 "$WORK/user"
    configure '.linux.namespaces += [{type: "user"}] | del(.linux.cgroupsPath, .linux.resources)
      | .linux.uidMappings = [{containerID: 0, hostID: 47110, size: 1}] | .linux.gidMappings = .linux.uidMappings'
    { cat /etc/passwd; echo "pinfold-test:x:47110:47110::$WORK/user:/bin/sh"; } >"$WORK/passwd"
    mount --bind "$WORK/passwd" /etc/passwd
    as_user run --bundle "$BUNDLE" "$ID" >"$WORK/out" 2>"$WORK/err" || { cat "$WORK/err"; umount /etc/passwd; false; }
    umount /etc/passwd
    results 2 >"$WORK/results"
    same "$WORK/results" "$WORK/out"
    expected 4 >"$WORK/expected"
    seen "$WORK/user/.local/state/pinfold/$ID.jsonl" >"$WORK/seen"
    same "$WORK/expected" "$WORK/seen"
}

@test "docs/log.md: its table of what an observer does not see is this one" {
    matrix | awk -F '|' '{ bpf = $5 == "=" ? $3 : $5; if ($3 ~ /^-/ || bpf ~ /^-/) print $1 "|" $3 "|" bpf }' | while IFS='|' read -r name seccomp bpf; do
        [ "${seccomp#- }" = "$seccomp" ] && seccomp=recorded || seccomp=$(reason_of "${seccomp#- }")
        [ "${bpf#- }" = "$bpf" ] && bpf=recorded || bpf=$(reason_of "${bpf#- }")
        printf '| `%s` | %s | %s |\n' "$name" "$seccomp" "$bpf"
    done >"$WORK/table"
    sed -n '/^| operation | seccomp | BPF |$/,/^$/p' "$PINFOLD_TESTS/../docs/log.md" | sed 1,2d | sed '/^$/d' >"$WORK/documented"
    same "$WORK/table" "$WORK/documented"
}

@test "observe.files: false: the same is denied and nothing of it recorded; no call that would change a file is asked about" {
    prepare 1000 1000
    decoy_is /home/user
    policy_is 'observe: {files: false}' 'log: {inside: false}'
    pf_run >"$WORK/out" 2>"$WORK/err" || { cat "$WORK/err"; false; }
    results 1 >"$WORK/results"
    same "$WORK/results" "$WORK/out"
    # decoys and system calls are denied by who records them
    is "$(seen "$LOG" | cut -d' ' -f2 | sort | uniq -c | awk '{ print $2 ":" $1 }' | xargs)" "$(
        matrix | cut -d'|' -f3 | sed 's/^\(ro\|perm\) .*/-/' | cut -d' ' -f1 | sort | uniq -c | awk '{ print $2 ":" $1 }' | xargs)"
    is "$(pf explain --bundle "$BUNDLE" --json | jq -r '.mechanisms[] | select(.name == "denied file calls") | .state')" off
}

@test "observe.files: false: chown and chmod are asked about where the container sees its denials, and passed over there alone" {
    policy_is 'observe: {files: false}'
    script_is 'chown -R 1000:1000 /run/pinfold && echo given; chmod 600 /etc/passwd; touch /usr/x; exit 0'
    run pf_run
    ended 0 given
    contains "$output" "chmod: /etc/passwd: Read-only file system"
    is "$(denials fs.write.read_only)" 0
}

@test "observe.files: a written observer needs the container's one listener, which an agent of the engine's has" {
    configure '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", architectures: ["SCMP_ARCH_X86_64"],
      listenerPath: "/run/agent.sock", syscalls: [{names: ["swapon"], action: "SCMP_ACT_NOTIFY"}]}'
    policy_is 'observe: {files: seccomp}'
    run pf_run
    ended 1 "observe.files, written in $POLICY:2:"
    policy_is 'observe: {files: seccomp}' 'enforcement: {best_effort: [observe.files]}'
    run pf explain --bundle "$BUNDLE" --json
    is "$(jq -r '.mechanisms[] | select(.name == "denied file calls") | .state' <<<"$output")" unavailable
}

@test "root, BPF: each denied operation has its one record, or none for a reason" {
    needs_helper
    prepare 1000 1000
    decoy_is /home/user
    policy_is 'observe: {files: bpf}'
    pf_run >"$WORK/out" 2>"$WORK/err" || { cat "$WORK/err"; false; }
    results 1 >"$WORK/results"
    same "$WORK/results" "$WORK/out"
    expected 5 >"$WORK/expected"
    seen "$LOG" >"$WORK/seen"
    same "$WORK/expected" "$WORK/seen"
    is "$(pf explain --bundle "$BUNDLE" --json | jq -r '.mechanisms[] | select(.name == "denied file calls") | .state + " " + .how' | cut -c1-13)" "enforced BPF:"
    [ ! -e /run/pinfold-observer ]
}

needs_helper() {
    [ -x "${PINFOLD%/*}/pinfold-observe" ] || skip "no helper (built where clang and libbpf are)"
    policy_is 'observe: {files: bpf}'
    pf explain --bundle "$BUNDLE" >"$WORK/explained" 2>&1 || ! grep -q "a BPF program that can be loaded" "$WORK/explained" ||
        skip "this machine lets not even root load a BPF program"
}

@test "BPF: one program for all containers, gone with the last; a burst is told or counted, exactly" {
    needs_helper
    policy_is 'observe: {files: bpf}'
    start_sleeper
    [ -e /run/pinfold-observer/bpf ]
    is "$(stat -c %a /run/pinfold-observer)" 700
    ID=$PREFIX-2 LOG=$LOGS/$PREFIX-2.jsonl
    script_is 'i=0; while [ $i -lt 4000 ]; do echo x 2>/dev/null >/x; i=$((i + 1)); done; exit 0'
    LIMIT=100 run pf_run
    ended 0
    is "$(records '.status_detail == "fs.write.read_only" or .status_detail == "log.suppressed"' |
        jq -s 'map((if .status_detail == "log.suppressed" then 0 else .count // 1 end) + (.unmapped.suppressed // 0)) | add')" 4000
    # what another container does is none of the first one's
    is "$(ID=$PREFIX LOG=$LOGS/$PREFIX.jsonl denials fs.write.read_only)" 0
    [ -e /run/pinfold-observer/bpf ]
    pf delete --force "$PREFIX"
    [ ! -e /run/pinfold-observer ]
}

@test "BPF: where it cannot be had a written line fails, and with best_effort the seccomp observer tells, and a record says so" {
    mkdir "$WORK/alone" && cp "$PINFOLD" "$WORK/alone/pinfold"
    script_is 'touch /usr/x; exit 0'
    policy_is 'observe: {files: bpf}'
    PINFOLD=$WORK/alone/pinfold run pf_run
    ended 1 "observe.files: bpf, written in $POLICY:2:"
    contains "$output" pinfold-observe
    policy_is 'observe: {files: bpf}' 'enforcement: {best_effort: [observe.files]}'
    PINFOLD=$WORK/alone/pinfold run pf_run
    ended 0
    is "$(denials fs.write.read_only)" 1
    has_record mechanism.degraded '.message | contains("seccomp observer")'
    [ ! -e /run/pinfold-observer ]
}
