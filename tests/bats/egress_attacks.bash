# What the files of ways past a list of allowed hosts (tests/attack/egress.py) share. Each way is tried twice: where no wall is, in
# the far end itself, to show that it does what the attempt asks for, and in a sandbox that is called from there.
load helpers
load escapes
load far_end

# The far end's addresses. 1.2.3.4 is the server of allowed.test and, as servers of many sites are, of evil.test too.
FAR_PUBLIC="1.2.3.4 2001:db8::1"
# Spellings of 169.254.169.254 that some kernel or gateway takes for it, and AWS's IPv6 one.
FAR_METADATA="169.254.169.254 64:ff9b::a9fe:a9fe ::a9fe:a9fe ::ffff:0:a9fe:a9fe 2002:a9fe:a9fe::1 fd00:ec2::254"
FAR_PRIVATE="10.0.0.1 fd12::1"

# nginx with allowed.test, evil.test and, for who names neither, other.test: each says whom it has reached.
far_sites() { # "ADDRESS..."
    local site sites=''
    for site in "other allowed default_server" "allowed allowed" "evil evil"; do
        # shellcheck disable=SC2086 # two or three words
        set -- "$1" $site
        sites+=$(far_site "$2" "$3" "$1" "80 81 443 853" "location / { return 200 'reached $2.test'; }" "${4-}")
    done
    far_web "$sites"
}

# What check_rows calls, twice.
attempt_under() { # POLICY NAME...
    local policy=$1
    shift
    mkdir -p "$WORK/project"
    cp "$PINFOLD_TESTS/attack/egress.py" "$WORK/project/egress.py"
    touch "$FAR_WORK/rebinds" # changing.py begins anew
    if [ "$policy" = unconfined ]; then
        in_far timeout -k 5 100 /usr/bin/python3 "$WORK/project/egress.py" --outside "$@" 2>&1 3>&-
        return
    fi
    ID=$PREFIX-agent
    LOG=$LOGS/$ID.jsonl
    [ ! -e "$FAR_WORK/queries" ] || { cp "$FAR_WORK/queries" "$FAR_WORK/queries.before" && : >"$FAR_WORK/queries"; }
    box /usr/bin/python3 "$WORK/project/egress.py" "$@" 2>&1
}
# $HOSTS: the lines of network.allowed_hosts.
box() { # WORD...
    printf 'version: 1\nnetwork:\n  mode: allowlist\n  uplink: host\n  allowed_hosts:\n%s\n' "$HOSTS" >"$WORK/policy.yaml"
    in_far timeout -k 5 100 "$PINFOLD" --root "$STATE" sandbox --id "$ID" --policy "$WORK/policy.yaml" -w "$WORK/project" -- "$@" </dev/null 3>&-
}
hosts_are() { # ITEM...
    HOSTS=$(printf '    - %s\n' "$@")
}
