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
import ctypes, os, shutil, statistics, subprocess, tempfile, time

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
runs, work, pinfold = int(os.environ["RUNS"]), os.environ["WORK"], os.environ["BENCH_PINFOLD"]
bundle = f"{work}/bundle"


def oci(program, *options):
    return lambda number: [program, *options, "run", "--bundle", bundle, f"bench-{number}"]


# Each of the first three also without cgroups, against crun without them.
NONE = ("--cgroup-manager", "disabled")
candidates = {}
for suffix, manager in (("", ()), (", no cgroup", NONE)):
    candidates[f"pinfold, agent{suffix}"] = oci(pinfold, "--root", f"{work}/p", *manager)
    candidates[f"pinfold, unconfined{suffix}"] = oci(pinfold, "--root", f"{work}/u", "--policy", "unconfined", *manager)
    if shutil.which("crun"):
        candidates[f"crun{suffix}"] = oci(shutil.which("crun"), "--root", f"{work}/crun", *manager)
if shutil.which("runc"):
    candidates["runc"] = oci(shutil.which("runc"), "--root", f"{work}/runc")
if shutil.which("bwrap"):
    # the nearest to the bundle that it can do: no cgroup, no seccomp filter, no record
    candidates["bubblewrap"] = lambda number: [
        "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", f"{bundle}/rootfs", "/", "--proc", "/proc",
        "--dev", "/dev", "--tmpfs", "/tmp", "--setenv", "PATH", "/bin:/usr/bin", "true"]


def once(name, command, number):
    words = command(number)
    cpu = 0
    with tempfile.TemporaryFile() as errors:
        files = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1)]
        start = time.perf_counter()
        child = os.posix_spawn(shutil.which(words[0]), words, os.environ,
                               file_actions=[*files, (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)])
        while True:  # it, and what outlives it: a warden
            try:
                pid, status, usage = os.wait4(-1, 0)
            except ChildProcessError:
                break
            cpu += usage.ru_utime + usage.ru_stime
            if pid == child:
                wall, code = time.perf_counter() - start, status
        if code != 0:
            errors.seek(0)
            raise RuntimeError(f"{name}: {errors.read().decode().strip()}")
    return wall * 1000, cpu * 1000


def peak_of(command):
    """The largest process, in KiB: measured by a small parent, because a child starts with its parent's peak."""
    run = subprocess.run(["busybox", "time", "-f", "%M", *command("peak")], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return int(run.stderr.split()[-1])


walls, cpus, peaks = {}, {}, {}
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
for name, command in candidates.items():
    peaks[name] = peak_of(command)

print(f"\n`run` of `true`, {runs} runs each, interleaved; milliseconds")
print(f"{'':32}{'wall min':>10}{'median':>10}{'cpu min':>10}{'median':>10}{'peak KiB':>10}{'of crun: wall':>16}{'cpu':>8}")
for name in candidates:
    row = [min(walls[name]), statistics.median(walls[name]), min(cpus[name]), statistics.median(cpus[name])]
    line = f"{name:32}" + "".join(f"{value:10.2f}" for value in row) + f"{peaks[name]:10}"
    peer = "crun, no cgroup" if name.endswith(", no cgroup") else "crun"
    if peer in walls:
        line += f"{row[1] / statistics.median(walls[peer]):16.2f}{row[3] / statistics.median(cpus[peer]):8.2f}"
    print(line)
bounds = {"pinfold, agent": 1.0, "pinfold, unconfined": 0.6}
print()
for suffix in ("", ", no cgroup"):
    for kind, bound in bounds.items():
        name, peer = kind + suffix, "crun" + suffix
        if name not in walls or peer not in walls:
            continue
        wall = statistics.median(walls[name]) / statistics.median(walls[peer])
        cpu = statistics.median(cpus[name]) / statistics.median(cpus[peer])
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
