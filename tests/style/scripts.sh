#!/bin/bash
# The linter of shell scripts over the project's own scripts; and assertions that cannot fail.
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 1
echo 1..2
# bats ends a test at the first command that fails, but not at one after `!`, nor before `&&`.
vacuous=$(grep -nE '^ +(! |\[\[? [^;]* \]\]? && (!|\[|[a-z_]+ "))' tests/*/*.bats | grep -vE ' \|\| |&& (echo|skip|return|continue|break) ')
if [ -z "$vacuous" ]; then echo "ok 2 - assertions can fail"; else
    sed 's/^/# /' <<<"$vacuous"; echo "not ok 2 - assertions can fail: one command a line, and no ! before it"; fi
if ! command -v shellcheck >/dev/null; then
    echo "ok 1 - shellcheck # SKIP shellcheck is not installed"
    exit 0
fi
scripts=$(find . -path ./.git -prune -o -path './build-*' -prune -o -type f \( -perm -u+x -o -name '*.sh' \) -size -200k -print | while read -r file; do
    head -n 1 "$file" 2>/dev/null | tr -d '\0' | grep -qE '^#!.*\b(ba)?sh' && echo "$file"
done | grep -vE '^./(configure|build-aux|autom4te|config\.status|depcomp)')
# shellcheck disable=SC2086 # a list of names
bad=$(shellcheck -S warning -e SC1091,SC2034,SC2154 $scripts 2>&1)
if [ -z "$bad" ]; then echo "ok 1 - shellcheck"; else
    sed 's/^/# /' <<<"$bad" | head -60; echo "not ok 1 - shellcheck"; fi
