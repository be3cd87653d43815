# Tables of attempts (tests/attack), each tried twice: without the policy, to show that it works, and with it. A row:
#
#   NAME  WITHOUT  WITH  RECORD
#
# WITHOUT and WITH are what the attempt ends with: worked, absent, the name of an errno, several with "/" between.
#   WITHOUT "reached": the kernel's own objection, other than WITH: the call was let through with arguments that do no harm.
#   WITH "signal-11": the kernel has no such door, and nothing to record.
#   WITHOUT "-": it cannot be shown on every machine; a comment at the row says why.
# RECORD is the reason code of the record of this attempt, REASON:CALL for a denied call of that name, and any:REASON:SUBJECT
#   for what is recorded once, when the container is made, or without its process (the sender of a datagram may have ended
#   before it is looked for); "-": none is owed.

# The programs: one executable for each name, so that the process in a record says which attempt it was.
install_attempts() { # NAME...
    local program=$BATS_RUN_TMPDIR/attempts name
    [ -x "$program" ] || gcc -std=gnu17 -O1 -static -o "$program" "$PINFOLD_TESTS"/attack/*.c
    mkdir -p "$ROOT/attempt"
    cp "$program" "$ROOT/attempt/run"
    for name; do ln "$ROOT/attempt/run" "$ROOT/attempt/$name"; done
}
# What an engine's --privileged gives: every capability, nothing masked but one file, all devices.
privileged() {
    local all
    all=$(jq -cn '$ARGS.positional' --args CAP_{CHOWN,DAC_OVERRIDE,DAC_READ_SEARCH,FOWNER,FSETID,KILL,SETGID,SETUID,SETPCAP,NET_BIND_SERVICE,NET_BROADCAST} \
        CAP_{NET_ADMIN,NET_RAW,IPC_LOCK,IPC_OWNER,SYS_MODULE,SYS_RAWIO,SYS_CHROOT,SYS_PTRACE,SYS_PACCT,SYS_ADMIN,SYS_BOOT,SYS_NICE,SYS_TIME} \
        CAP_{SYS_TTY_CONFIG,MKNOD,LEASE,AUDIT_WRITE,AUDIT_CONTROL,SETFCAP,SYSLOG,PERFMON,BPF})
    configure --argjson all "$all" '.process.capabilities = {bounding: $all, effective: $all, permitted: $all}
      | .process.noNewPrivileges = false
      | .linux.maskedPaths = ["/proc/keys"] | .linux.readonlyPaths = []
      | .mounts |= map(if .type == "sysfs" or .type == "cgroup" then .options -= ["ro"] else . end)
      | .linux.devices = [{path: "/dev/kmsg", type: "c", major: 1, minor: 11, fileMode: 438}]
      | .linux.resources.devices = [{allow: true, access: "rwm"}]'
}

# The output of the attempts under POLICY; prepare() has edited the bundle. The record is in $LOG.
attempt_under() { # POLICY NAME...
    POLICY=$1
    shift
    ID=$PREFIX-$POLICY
    LOG=$LOGS/$ID.jsonl
    new_bundle "$WORK/$POLICY"
    install_attempts "$@"
    command_is /attempt/run "$@"
    prepare
    pf_run 2>&1
}

# One line for each record: who, reason, what was done, about what.
record_lines() {
    [ ! -f "$LOG" ] || jq -r '[(.actor.process.file.path // "-" | split("/") | last), .status_detail // "-", .activity_name // "-",
        ([.resources[]?.name] | join(" ")) + " " + .message] | @tsv' "$LOG"
}
recorded() { # NAME RECORD
    local name=$1 reason=$2 subject
    case $reason in
    any:*)
        reason=${reason#any:} subject=${reason#*:}
        awk -F '\t' -v reason="${reason%%:*}" -v subject="$subject" '$2 == reason && index($4, subject) { found = 1 } END { exit !found }' <<<"$RECORDS"
        ;;
    *)
        [[ $reason == *:* ]] && subject=${reason#*:} || subject=''
        awk -F '\t' -v name="$name" -v reason="${reason%%:*}" -v call="$subject" \
            '$1 == name && $2 == reason && (call == "" || $3 == call) { found = 1 } END { exit !found }' <<<"$RECORDS"
        ;;
    esac
}
result_of() { # NAME OUTPUT
    sed -n "s/^$1 //p" <<<"$2"
}
is_one_of() { # FOUND A/B/C
    [[ /$2/ == */$1/* ]]
}

# Tries the rows of the table on standard input and tells each that did not end as it declares.
check_rows() {
    local table names name without with record found output bad=0
    table=$(sed 's/#.*//' | awk 'NF')
    mapfile -t names < <(awk '{ print $1 }' <<<"$table")
    local before after
    before=$(attempt_under unconfined "${names[@]}")
    after=$(attempt_under agent "${names[@]}")
    ID=$PREFIX-agent LOG=$LOGS/$PREFIX-agent.jsonl
    RECORDS=$(record_lines)
    while read -r name without with record; do
        found=$(result_of "$name" "$before")
        case $without in
        -) ;;
        reached) [ "$found" != worked ] && [ -n "$found" ] && ! is_one_of "$found" "$with/EPERM/absent/unknown" ;;
        *) is_one_of "$found" "$without" ;;
        esac || { echo "$name without the policy: found ${found:-nothing}, wanted $without" >&2; bad=1; }
        found=$(result_of "$name" "$after")
        is_one_of "$found" "$with" || { echo "$name: found ${found:-nothing}, wanted $with" >&2; bad=1; }
        [ "$record" = - ] || [ "$found" = signal-11 ] || recorded "$name" "$record" || { echo "$name: no record $record" >&2; bad=1; }
    done <<<"$table"
    [ $bad = 0 ] || { output=$after; printf '%s\n' "-- output:" "$output" "-- records:" "$RECORDS" | cut -c1-160 >&2; return 1; }
}
