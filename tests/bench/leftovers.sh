#!/bin/bash
# leftovers.sh [SEQUENTIAL [CONCURRENT]]: that many containers, created, started and deleted one after the other (1000), then
# so many at once (200); then looks for what is left: state, cgroups, mounts, processes, descriptors' worth of sockets.
# Needs root and PINFOLD=path of the runtime; POLICY=agent (unconfined). Exit status 1 when something failed or is left.
set -u
if [ -z "${LEFTOVERS_PRIVATE-}" ]; then
    LEFTOVERS_PRIVATE=1 exec unshare -m -p -f --kill-child --mount-proc --propagation private "$0" "$@"
fi
sequential=${1:-1000} concurrent=${2:-200}
PINFOLD=${PINFOLD:?PINFOLD must name the runtime}
work=$(mktemp -d "${TMPDIR:-/tmp}/pinfold-leftovers.XXXXXX")
trap 'rm -rf "$work"; rm -f /var/log/pinfold/"$name"-*.jsonl' EXIT
name=leftovers-$$
bundle=$work/bundle
mkdir -p "$bundle"/rootfs/{bin,dev,proc,sys,tmp,run,etc}
cp "$(command -v busybox)" "$bundle/rootfs/bin/busybox"
ln -s busybox "$bundle/rootfs/bin/true"
(cd "$bundle" && "$PINFOLD" spec)
jq '.process.terminal = false | .process.args = ["true"]' "$bundle/config.json" >"$work/config.json"
mv "$work/config.json" "$bundle/config.json"

runtime() {
    timeout -k 5 120 "$PINFOLD" --root "$work/state" --policy "${POLICY:-unconfined}" "$@"
}
life() { # ID: prints what went wrong
    if ! { runtime create --bundle "$bundle" "$1" </dev/null && runtime start "$1" && runtime delete --force "$1"; } >"$work/$1.out" 2>&1; then
        sed "s/^/$1: /" "$work/$1.out"
    fi
    rm -f "$work/$1.out"
}
count_left() {
    ls "$work/state" 2>/dev/null
    find /sys/fs/cgroup -maxdepth 6 -type d -name "$name-*" 2>/dev/null
    grep -F "$work" /proc/self/mountinfo
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/exe" 2>/dev/null)" != "$(readlink -f "$PINFOLD")" ] || echo "process ${process#/proc/}"
    done
}

SECONDS=0
for number in $(seq "$sequential"); do
    life "$name-s$number"
done >"$work/failures"
echo "$sequential one after the other: $SECONDS s"
SECONDS=0
lives=()
for number in $(seq "$concurrent"); do
    life "$name-c$number" >>"$work/failures" &
    lives+=($!)
done
wait "${lives[@]}"
echo "$concurrent at once: $SECONDS s"
sleep 3 # wardens follow their containers
failed=$(wc -l <"$work/failures")
left=$(count_left)
head -5 "$work/failures"
echo "failed: $failed; left behind: $(grep -c . <<<"$left")"
[ -z "$left" ] || echo "$left" | head -20
[ "$failed" = 0 ] && [ -z "$left" ]
