#!/bin/bash
# bench.sh [RUNS]: what a `run` of `true` costs with pinfold (agent and unconfined), crun, runc and bubblewrap, on the same
# root file system, and the ratios that docs/architecture.md promises. Needs root; PINFOLD names the program. RUNS (or
# BENCH_RUNS in the environment) is 100.
#
# The runs are interleaved, so that a slow minute of the machine is shared by all. Wall time is from fork to the end of
# the command; CPU is user and system time of everything that it started: the measuring process is a subreaper, so a
# warden that outlives the command is waited for and counted too.
set -euo pipefail
runs=${1:-${BENCH_RUNS:-${RUNS:-100}}}
pinfold=${PINFOLD:?PINFOLD must name the runtime: use make bench}
[ "$(id -u)" = 0 ] || { echo "bench: needs root" >&2; exit 2; }
for tool in jq busybox python3; do command -v $tool >/dev/null || { echo "bench: $tool is missing" >&2; exit 2; }; done

# Namespaces of its own, with a view of the cgroups that crun takes too: it refuses a hybrid layout.
if [ -z "${BENCH_PRIVATE-}" ]; then
    BENCH_PRIVATE=1 exec unshare -m -p -f --kill-child --mount-proc --propagation private "$0" "$runs"
fi
if mountpoint -q /sys/fs/cgroup/unified; then
    umount /sys/fs/cgroup/unified
    mount -t tmpfs tmpfs /sys/fs/cgroup/unified
fi

work=$(mktemp -d)
trap 'rm -rf "$work"; rm -f /var/log/pinfold/bench-*.jsonl' EXIT
BATS_RUN_TMPDIR=$work PINFOLD=$pinfold
# shellcheck source=../bats/helpers.bash
. "$(dirname "$0")/../bats/helpers.bash"
mkdir "$work/bundle"
make_root "$work/bundle/rootfs"
(cd "$work/bundle" && "$pinfold" spec)
BUNDLE=$work/bundle configure '.ociVersion = "1.0.2" | .process.terminal = false | .process.args = ["true"]'

RUNS=$runs WORK=$work BENCH_PINFOLD=$pinfold python3 - <<'PY'
import ctypes, os, resource, shutil, statistics, subprocess, time

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
runs, work, pinfold = int(os.environ["RUNS"]), os.environ["WORK"], os.environ["BENCH_PINFOLD"]
bundle = f"{work}/bundle"


def oci(program, *options):
    return lambda number: [program, *options, "run", "--bundle", bundle, f"bench-{number}"]


candidates = {
    "pinfold, agent": oci(pinfold, "--root", f"{work}/p"),
    "pinfold, unconfined": oci(pinfold, "--root", f"{work}/u", "--policy", "unconfined"),
}
for peer in ("crun", "runc"):
    path = shutil.which(peer)
    if path:
        candidates[peer] = oci(path, "--root", f"{work}/{peer}")
if shutil.which("bwrap"):
    # the nearest to the bundle that it can do: no cgroup, no seccomp filter, no record
    candidates["bubblewrap"] = lambda number: [
        "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", f"{bundle}/rootfs", "/", "--proc", "/proc",
        "--dev", "/dev", "--tmpfs", "/tmp", "--setenv", "PATH", "/bin:/usr/bin", "true"]


def once(name, command, number):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    code = subprocess.run(command(number), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wall = time.perf_counter() - start
    while True:  # what outlives it: a warden
        try:
            os.wait()
        except ChildProcessError:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code.returncode != 0:
        raise RuntimeError(f"{name}: {code.stderr.decode().strip()}")
    return wall * 1000, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

walls, cpus = {}, {}
for name in list(candidates):  # once to warm up, and to see who works here
    try:
        once(name, candidates[name], 0)
    except RuntimeError as error:
        print(f"left out: {error}")
        del candidates[name]
for number in range(1, runs + 1):
    for name, command in candidates.items():
        wall, cpu = once(name, command, number)
        walls.setdefault(name, []).append(wall)
        cpus.setdefault(name, []).append(cpu)

print(f"\n`run` of `true`, {runs} runs each, interleaved; milliseconds")
print(f"{'':22}{'wall min':>10}{'median':>10}{'cpu min':>10}{'median':>10}{'of crun: wall':>16}{'cpu':>8}")
for name in candidates:
    row = [min(walls[name]), statistics.median(walls[name]), min(cpus[name]), statistics.median(cpus[name])]
    line = f"{name:22}" + "".join(f"{value:10.2f}" for value in row)
    if "crun" in walls:
        line += f"{row[1] / statistics.median(walls['crun']):16.2f}{row[3] / statistics.median(cpus['crun']):8.2f}"
    print(line)
bounds = {"pinfold, agent": 1.0, "pinfold, unconfined": 0.6}
if "crun" in walls:
    print()
    for name, bound in bounds.items():
        if name not in walls:
            continue
        wall = statistics.median(walls[name]) / statistics.median(walls["crun"])
        cpu = statistics.median(cpus[name]) / statistics.median(cpus["crun"])
        verdict = "holds" if wall <= bound and cpu <= bound else "MISSED"
        print(f"{verdict}: {name}: wall {wall:.2f}, cpu {cpu:.2f} of crun's, promised <= {bound}")
PY

# -- one idle sandbox ---------------------------------------------------------------------------------------------
BUNDLE=$work/bundle configure '.process.args = ["sleep", "1000"]'
"$pinfold" --root "$work/m" create --bundle "$work/bundle" bench-idle </dev/null >/dev/null 2>&1
"$pinfold" --root "$work/m" start bench-idle
sleep 0.5
total=0
for process in /proc/[0-9]*; do
    case $(readlink "$process/exe" 2>/dev/null) in
    *pinfold*) pss=$(awk '/^Pss:/ { print $2 }' "$process/smaps_rollup" 2>/dev/null || echo 0); total=$((total + ${pss:-0})) ;;
    esac
done
"$pinfold" --root "$work/m" delete --force bench-idle
printf '\n%s: one idle sandbox holds %d KiB (PSS), promised <= 3072\n' "$([ "$total" -le 3072 ] && echo holds || echo MISSED)" "$total"
