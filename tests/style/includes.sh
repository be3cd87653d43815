#!/bin/bash
# The arrows between modules, read off the #include lines:
#   cli -> container -> {harden, facts, rootfs, process, cgroup, egress, warden} -> {policy, record, libocispec} -> sys -> base
# Edges inside one layer are in includes.allow, each with a reason. harden/ is a pure function: no sys/, and of the
# system's headers only the two that define types.
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 1
allow=tests/style/includes.allow

layer() {
    case $1 in
    main) echo 7 ;;
    cli) echo 6 ;;
    container) echo 5 ;;
    harden | facts | rootfs | process | cgroup | egress | warden) echo 4 ;;
    policy | record | libocispec) echo 3 ;;
    sys) echo 2 ;;
    base) echo 1 ;;
    *) echo 0 ;;
    esac
}

module_of() { # of a file
    case $1 in
    src/main.c) echo main ;;
    src/*/*) local rest=${1#src/}; echo "${rest%%/*}" ;;
    libocispec/*) echo libocispec ;;
    esac
}

bad=() unused=()
declare -A seen
while IFS=: read -r file line text; do
    from=$(module_of "$file")
    include=$(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' <<<"$text")
    if [ -n "$include" ]; then
        case $include in
        */*) to=${include%%/*} ;;
        *) bad+=("$file:$line: \"$include\": name it from src/ or the top, with its directory"); continue ;;
        esac
        [ "$from" = "$to" ] && continue
        if [ "$(layer "$to")" = 0 ]; then
            bad+=("$file:$line: \"$include\" is of no module")
        elif [ "$(layer "$to")" -ge "$(layer "$from")" ]; then
            if grep -Eq "^$from -> $to +# .+" "$allow"; then
                seen["$from -> $to"]=1
            else
                bad+=("$file:$line: $from must not include $to (\"$include\")")
            fi
        fi
        [ "$from" = harden ] && [ "$to" = sys ] && bad+=("$file:$line: harden/ is pure: nothing of sys/")
        [ "$from" = libocispec ] && [ "$to" = sys ] && bad+=("$file:$line: libocispec/ makes no system call")
        continue
    fi
    [ "$from" = harden ] || continue
    include=$(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*<\([^>]*\)>.*/\1/p' <<<"$text")
    case $include in
    sys/stat.h | sys/types.h) ;;
    sys/capability.h) bad+=("$file:$line: harden/ is pure: <$include> makes system calls") ;;
    sys/* | linux/* | asm/* | net/* | netinet/* | arpa/* | unistd.h | fcntl.h | sched.h | signal.h | poll.h | dirent.h | pwd.h | grp.h | \
        netdb.h | mntent.h | pthread.h | spawn.h | syslog.h | termios.h | seccomp.h)
        bad+=("$file:$line: harden/ is pure: <$include> has system calls") ;;
    esac
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include' src libocispec --include='*.c' --include='*.h')

while read -r from arrow to rest; do
    [ "$arrow" = "->" ] && [ -d "src/$from" ] && [ -z "${seen["$from -> $to"]-}" ] &&
        ls "src/$from"/*.c >/dev/null 2>&1 && unused+=("$allow: nothing uses $from -> $to")
done < <(grep -v '^#' "$allow")

echo 1..2
if [ ${#bad[@]} = 0 ]; then echo "ok 1 - includes point downwards"; else
    printf '# %s\n' "${bad[@]}"; echo "not ok 1 - includes point downwards"; fi
if [ ${#unused[@]} = 0 ]; then echo "ok 2 - every exception for an include is used"; else
    printf '# %s\n' "${unused[@]}"; echo "not ok 2 - every exception for an include is used"; fi
