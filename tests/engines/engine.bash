# What the engines' bats files load: an engine in a house of its own. Mounts, network, cgroups, /run, /dev/shm, the log
# directory and the engine's storage are private to the file's holder process, so that bridges, firewall rules, state
# and records never touch the machine, and the end of the holder (and of the process-id namespace that tests/run makes)
# takes everything along.
#
# Run through tests/run (make check-engines).

PINFOLD=$(readlink -f "${PINFOLD:?PINFOLD must name the runtime: use make check-engines}")
ENGINES=${PINFOLD_TESTS:?use make check-engines}/engines
IMAGE=localhost/busybox:1
CHECK_OCSF=${CHECK_OCSF:-$(readlink -f "$PINFOLD_TESTS/../../shared/bin/check-ocsf")}
# shellcheck source=../assertions.bash
. "$PINFOLD_TESTS/assertions.bash"

# -- the house ----------------------------------------------------------------------------------------------------

# Called by setup_file(): $HOUSE (a directory) and $HOLDER (a process in the private namespaces).
engine_begin() { # PROGRAM...
    local program try
    [ "$(id -u)" = 0 ] || skip "needs root"
    [ -n "${PINFOLD_TEST_PRIVATE-}" ] || skip "needs namespaces of its own: run it through tests/run"
    for program; do
        command -v "$program" >/dev/null || skip "$program is not installed"
    done
    HOUSE=$(mktemp -d "${TMPDIR:-/tmp}/pinfold-engine.XXXXXX")
    mkdir -p "$HOUSE"/{etc,home,log,tmp,root,run,libpod,networks,cni}
    export HOUSE
    # Those whom `--userns auto` gets its ids from; the machine's own files stay as they are.
    { cat /etc/subuid; echo containers:2147483647:2147483648; } >"$HOUSE/etc/subuid"
    { cat /etc/subgid; echo containers:2147483647:2147483648; } >"$HOUSE/etc/subgid"
    "$PINFOLD_TESTS/bats/private-cgroups" "engine-${HOUSE##*.}" unshare -n -m --propagation private \
        bash "$ENGINES/house" "$HOUSE" >"$HOUSE/house.log" 2>&1 </dev/null 3>&- &
    echo $! >"$HOUSE/keeper"
    for try in $(seq 100); do
        [ ! -s "$HOUSE/holder" ] || break
        sleep 0.05
    done
    HOLDER=$(cat "$HOUSE/holder") || { cat "$HOUSE/house.log" >&2; return 1; }
    export HOLDER
}

# Called by teardown_file(): nothing of the house is left, whatever the tests did.
engine_end() {
    [ -n "${HOUSE-}" ] || return 0
    local pids round process
    if [ -n "${HOLDER-}" ] && [ -e "/proc/$HOLDER" ]; then
        # Every process of the house is in its cgroups, and only those are.
        for round in 1 2 3 4 5; do
            pids=$(find "/proc/$HOLDER/root/sys/fs/cgroup/pids" -name cgroup.procs -exec cat {} + | grep -vx "$HOLDER")
            [ -n "$pids" ] || break
            kill -9 $pids 2>/dev/null
            sleep 0.2
        done
        find "/proc/$HOLDER/root/sys/fs/cgroup" -mindepth 2 -depth -type d -exec rmdir {} + 2>/dev/null
        kill "$HOLDER"
    fi
    # its keeper removes the cgroups
    for round in $(seq 50); do
        kill -0 "$(cat "$HOUSE/keeper")" 2>/dev/null || break
        sleep 0.1
    done
    for process in /proc/[0-9]*; do
        ! [ "$process/exe" -ef "$PINFOLD" ] ||
            echo "left behind: process ${process#/proc/}: $(tr '\0' ' ' <"$process/cmdline")" >&2
    done
    find /sys/fs/cgroup -maxdepth 3 -type d -name "engine-${HOUSE##*.}" | sed 's/^/left behind: cgroup /' >&2
    rm -rf "$HOUSE"
}

# Runs a command in the house: its mounts, network and cgroups, and nothing of the caller's environment.
inside() {
    (
        for file in "/proc/$HOLDER/root/sys/fs/cgroup"/*/cgroup.procs; do
            echo "$BASHPID" >"$file" || exit 96
        done
        exec nsenter -m -n -C -t "$HOLDER" -- env -i PATH="$PATH" HOME="$HOUSE/home" TMPDIR="$HOUSE/tmp" TERM=dumb \
            CONTAINERS_CONF="$HOUSE/etc/containers.conf" "$@" 3>&-
    )
}

# -- podman -------------------------------------------------------------------------------------------------------

# The words of a podman command line with this test's runtime; $FLAGS are the runtime's own, without dashes.
podman_words() {
    local flag
    words=(podman --root "$HOUSE/root" --runroot "$HOUSE/run" --tmpdir "$HOUSE/libpod" --network-config-dir "$HOUSE/networks"
        --cgroup-manager cgroupfs --runtime "${RUNTIME:-$PINFOLD}")
    for flag in ${FLAGS-}; do
        words+=(--runtime-flag "$flag")
    done
}
podman() {
    local words
    podman_words
    inside timeout -k 5 "${LIMIT:-60}" "${words[@]}" "$@"
}
# The same, with podman's standard streams on a terminal; its end's status is the caller's.
podman_on_terminal() {
    local words
    podman_words
    inside script -qec "stty rows 33 cols 77; $(printf '%q ' timeout --foreground -k 5 "${LIMIT:-60}" "${words[@]}" "$@")" /dev/null </dev/null
}

podman_begin() {
    # This machine may refuse the number of descriptors that podman asks for by itself.
    cat >"$HOUSE/etc/containers.conf" <<-'END'
	[containers]
	default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
	log_driver = "k8s-file"
	[engine]
	cgroup_manager = "cgroupfs"
	events_logger = "file"
	[network]
	network_backend = "netavark"
	END
    make_image_root "$HOUSE/image"
    tar -C "$HOUSE/image" -c . |
        podman import -q -c 'CMD ["/bin/sh"]' -c 'ENV PATH=/bin:/sbin:/usr/bin:/usr/sbin' - "$IMAGE"
}

# A busybox root file system in DIR with hard links: a symbolic link would hide what masking and mounting a file does.
make_image_root() { # DIR
    mkdir -p "$1"/{bin,sbin,dev,etc,proc,sys,tmp,var/tmp,root,home/user,run,lib,usr/bin,usr/sbin,workspace}
    cp "$(command -v busybox)" "$1/bin/busybox"
    chroot "$1" /bin/busybox --install
    printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$1/etc/passwd"
    printf 'root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n' >"$1/etc/group"
    chown 1000:1000 "$1/home/user"
    chmod 1777 "$1/tmp" "$1/var/tmp"
    "${CC:-cc}" -O1 -static -o "$1/bin/reach" "$ENGINES/reach.c"
    install -m 755 "$ENGINES/hosts" "$1/bin/hosts"
}

# A container that runs until it is killed; prints its id.
sleeper() { # NAME [PODMAN-OPTION...]
    local name=$1
    shift
    podman run -d --name "$name" "$@" "$IMAGE" sleep 1000
}
# PODMAN-INSPECT-TEMPLATE of a container.
of() { # NAME TEMPLATE
    podman inspect -f "$2" "$1"
}

# What is left of a container by its long id: fails and prints it.
nothing_left_of() { # ID
    local found='' try process
    for try in $(seq 30); do
        found=$(
            grep -F "$1" "/proc/$HOLDER/mountinfo" | awk '{ print "mount " $5 }'
            find "/proc/$HOLDER/root/sys/fs/cgroup" -type d -name "*$1*" | sed 's/^/cgroup /'
            find "/proc/$HOLDER/root/run/pinfold" -mindepth 1 -name "*$1*" 2>/dev/null | sed 's/^/state /'
            # conmon, a shim; and wardens: no other container of the agent policy runs then
            grep -lsF -f - /proc/[0-9]*/cmdline <<<"$1" | while read -r process; do
                echo "process $process: $(tr '\0' ' ' <"$process")"
            done
            for process in /proc/[0-9]*; do # a zombie has no exe
                ! [ "$process/exe" -ef "$PINFOLD" ] || echo "process ${process#/proc/} of pinfold"
            done
            :
        )
        [ -n "$found" ] || return 0
        sleep 0.1
    done
    printf 'left behind: %s\n' "$found" >&2
    return 1
}

# A process that would use the processor does not: it is frozen.
stands_still() { # PID
    local before
    before=$(cut -d' ' -f14,15 "/proc/$1/stat")
    sleep 0.5
    is "$(cut -d' ' -f14,15 "/proc/$1/stat")" "$before"
}

# -- the network --------------------------------------------------------------------------------------------------

# Counts, at every port of the bridge, what containers send: $(sent KIND) is packets of tcp, udp, icmp, icmp6, ip4 or
# ip6 (all of them). Neighbour discovery and multicast reports are the kernel's own and not counted as icmp6.
watch_bridges() {
    inside nft -f - <<-'END'
	table bridge watch {
	    counter sent_tcp {}
	    counter sent_udp {}
	    counter sent_icmp {}
	    counter sent_icmp6 {}
	    counter sent_ip4 {}
	    counter sent_ip6 {}
	    chain from_containers {
	        type filter hook prerouting priority -300; policy accept;
	        meta l4proto tcp counter name sent_tcp
	        meta l4proto udp counter name sent_udp
	        ether type ip counter name sent_ip4
	        ether type ip meta l4proto icmp counter name sent_icmp
	        ether type ip6 meta l4proto != icmpv6 counter name sent_ip6
	        ether type ip6 icmpv6 type { echo-request, echo-reply } counter name sent_icmp6
	    }
	}
	END
}
sent() { # KIND
    inside nft -j list counter bridge watch "sent_$1" | jq '.nftables[] | .counter // empty | .packets'
}
forget_sent() {
    inside nft reset counters table bridge watch >/dev/null
    rm -f "$HOUSE/listener/tcp" "$HOUSE/listener/udp"
}
arrived() { # tcp|udp: bytes at the listener
    cat "$HOUSE/listener/$1" 2>/dev/null | wc -c
}
# A listener on port 9000 (or another one, with its own directory) of every address of the house, until the file's end.
listen() { # [PORT DIRECTORY]
    local try directory=$HOUSE/${2:-listener}
    mkdir -p "$directory"
    inside python3 "$ENGINES/listen.py" "$directory" "${1:-9000}" >"$directory/log" 2>&1 </dev/null &
    for try in $(seq 100); do
        [ ! -e "$directory/ready" ] || return 0
        sleep 0.05
    done
    cat "$directory/log" >&2
    return 1
}

# No byte of any kind leaves a container of the agent policy, whatever network the engine gives it; the file says what
# exec_in() is.
walled() { # NAME GATEWAY [GATEWAY6]
    local target
    forget_sent
    for target in "$2" 203.0.113.9 169.254.169.254 10.88.0.1; do
        run exec_in "$1" reach tcp "$target" 9000
        ended 1 "connect: ECONNREFUSED"
    done
    for target in "udp $2 9000" "udp 203.0.113.9 53" "udp 255.255.255.255 67" "icmp $2 0" "icmp 203.0.113.9 0"; do
        run exec_in "$1" reach $target
        ended 1
        matches "$output" 'EPERM|EACCES|ECONNREFUSED|ENETUNREACH'
    done
    for target in ${3-} 2001:db8::9; do
        for kind in tcp udp icmp; do
            run exec_in "$1" reach $kind "$target" 9000
            ended 1
            matches "$output" 'EPERM|EACCES|ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL'
        done
    done
    exec_in "$1" sh -c 'nslookup example.org; ping -c 1 -W 1 203.0.113.9; ping6 -c 1 -W 1 2001:db8::9; arping -c 1 10.88.0.1; echo x | nc -w 1 203.0.113.9 80; udpsvd' >/dev/null 2>&1 || :
    sleep 0.3
    is "tcp $(arrived tcp) udp $(arrived udp)" "tcp 0 udp 0"
    is "ip4 $(sent ip4) tcp $(sent tcp) udp $(sent udp) icmp $(sent icmp)" "ip4 0 tcp 0 udp 0 icmp 0"
    is "ip6 $(sent ip6) icmp6 $(sent icmp6)" "ip6 0 icmp6 0"
}

# -- records ------------------------------------------------------------------------------------------------------

log_of() { # LONG-ID
    echo "$HOUSE/log/$1.jsonl"
}
# Records of a container that match a jq filter, one JSON object a line; waits up to three seconds for the first.
records_of() { # LONG-ID JQ-FILTER
    local try found
    for try in $(seq 30); do
        found=$(jq -c "select($2)" "$(log_of "$1")" 2>/dev/null)
        [ -z "$found" ] || break
        sleep 0.1
    done
    if [ -z "$found" ]; then
        echo "no record with $2 in:" >&2
        jq -c '{status_detail, message}' "$(log_of "$1")" >&2
        return 1
    fi
    printf '%s\n' "$found"
}
