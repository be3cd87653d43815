#!/bin/bash
# The arrows between modules, read off the #include lines:
#   cli -> container -> {harden, facts, rootfs, process, cgroup, egress, broker, warden} -> {policy, record, libocispec} -> sys -> base
# Edges inside one layer are in includes.allow, each with a reason. harden/ is a pure function: no sys/, and of the
# system's headers only the two that define types.
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 1
allow=tests/style/includes.allow

# No program is started in the loop below: there are some two thousand lines.
declare -A layer=([main]=7 [hooks]=7 [cli]=6 [container]=5 [helpers]=5 [harden]=4 [facts]=4 [rootfs]=4 [process]=4 [cgroup]=4 [egress]=4
    [warden]=4 [broker]=4 [policy]=3 [record]=3 [libocispec]=3 [sys]=2 [base]=1)
declare -A allowed seen
while read -r from arrow to hash reason; do
    [ "$arrow" != "->" ] || [ "$hash" != "#" ] || [ -z "$reason" ] || allowed["$from -> $to"]=1
done <"$allow"

bad=() unused=()
quoted='include[[:space:]]*"([^"]*)"' angled='include[[:space:]]*<([^>]*)>'
while IFS=: read -r file line text; do
    case $file in
    src/*/*) from=${file#src/} from=${from%%/*} ;;
    src/*) from=main ;;
    hooks/*) from=hooks ;;
    *) from=libocispec ;;
    esac
    if [[ $text =~ $quoted ]]; then
        include=${BASH_REMATCH[1]}
        case $include in
        */*) to=${include%%/*} ;;
        *) bad+=("$file:$line: \"$include\": name it from src/ or the top, with its directory"); continue ;;
        esac
        [ "$from" = "$to" ] && continue
        if [ -z "${layer[$to]-}" ]; then
            bad+=("$file:$line: \"$include\" is of no module")
        elif [ "${layer[$to]}" -ge "${layer[$from]:-0}" ]; then
            if [ -n "${allowed["$from -> $to"]-}" ]; then
                seen["$from -> $to"]=1
            else
                bad+=("$file:$line: $from must not include $to (\"$include\")")
            fi
        fi
        [ "$from" = harden ] && [ "$to" = sys ] && bad+=("$file:$line: harden/ is pure: nothing of sys/")
        [ "$from" = libocispec ] && [ "$to" = sys ] && bad+=("$file:$line: libocispec/ makes no system call")
        continue
    fi
    [ "$from" = harden ] && [[ $text =~ $angled ]] || continue
    include=${BASH_REMATCH[1]}
    case $include in
    sys/stat.h | sys/types.h) ;;
    sys/capability.h) bad+=("$file:$line: harden/ is pure: <$include> makes system calls") ;;
    sys/* | linux/* | asm/* | net/* | netinet/* | arpa/* | unistd.h | fcntl.h | sched.h | signal.h | poll.h | dirent.h | pwd.h | grp.h | \
        netdb.h | mntent.h | pthread.h | spawn.h | syslog.h | termios.h | seccomp.h)
        bad+=("$file:$line: harden/ is pure: <$include> has system calls") ;;
    esac
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include' src libocispec hooks --include='*.c' --include='*.h')

while read -r from arrow to rest; do
    [ "$arrow" = "->" ] && [ -d "src/$from" ] && [ -z "${seen["$from -> $to"]-}" ] &&
        ls "src/$from"/*.c >/dev/null 2>&1 && unused+=("$allow: nothing uses $from -> $to")
done < <(grep -v '^#' "$allow")

echo 1..2
if [ ${#bad[@]} = 0 ]; then echo "ok 1 - includes point downwards"; else
    printf '# %s\n' "${bad[@]}"; echo "not ok 1 - includes point downwards"; fi
if [ ${#unused[@]} = 0 ]; then echo "ok 2 - every exception for an include is used"; else
    printf '# %s\n' "${unused[@]}"; echo "not ok 2 - every exception for an include is used"; fi
