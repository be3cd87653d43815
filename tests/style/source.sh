#!/bin/bash
# Rules over the text of the sources. Each prints the lines that break it.
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 1
number=0

# check NAME LINES: fails when there are lines, and shows them.
check() {
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - $1"
    else
        sed 's/^/# /' <<<"$2" | head -60
        echo "not ok $number - $1"
    fi
}
# files PATTERN: what is of the project: known to git, or not ignored by it; without git, all but what a build makes.
files() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files -co --exclude-standard
    else
        find . -type f -not -path './build-*' -not -name '*.o' | sed 's,^\./,,'
    fi | grep -E "$1" | while IFS= read -r file; do [ ! -f "$file" ] || echo "$file"; done
}
in_files() { # grep options and pattern; the files' names come on standard input
    xargs -r -d '\n' grep -HnIE "$@"
}
no_comments() { # drops lines that are comments, of grep's output FILE:LINE:TEXT
    grep -vE '^[^:]+:[0-9]+:[[:space:]]*(\*|/\*|//)'
}
runtime=$(files '^(src|libocispec|hooks)/.*\.[ch]$')
sources=$(files '^(src|libocispec|hooks|tests)/.*\.[ch]$')

echo 1..9
check "no source is longer than 800 lines" "$(xargs -r -d '\n' wc -l <<<"$sources" | awk '$2 != "total" && $1 > 800')"

check "conditional compilation for kernel headers stands in src/sys alone" "$(grep -v '^src/sys/' <<<"$runtime" |
    in_files '^[[:space:]]*#[[:space:]]*(if|ifdef|ifndef|elif)' |
    grep -vE '(ifdef|ifndef|defined)[[:space:](]*(PINFOLD_[A-Z_]+|__SANITIZE_[A-Z]+__|__clang__|__x86_64__|__aarch64__)')"

check "nothing is run through a shell or a search path" "$(in_files '\b(system|popen|execlp|execvp|execvpe)[[:space:]]?\(' <<<"$runtime" |
    no_comments | grep -vE '"[^"]*system \(')"

check "no function that knows no bounds" "$(in_files \
    '\b(sprintf|vsprintf|strcpy|stpcpy|strcat|gets|strncpy|strncat|alloca|strtok|atoi|atol|tmpnam|mktemp)[[:space:]]?\(' <<<"$sources" | no_comments)"

# The flag may stand on the next lines of a long call.
check "every descriptor is close-on-exec from birth" "$(grep -vE '^(src/base|src/sys)/' <<<"$runtime" |
    in_files '\b(open|openat|socket|socketpair|accept|accept4|pipe|pipe2|dup|epoll_create|epoll_create1|fopen|signalfd|timerfd_create|eventfd|memfd_create)[[:space:]]?\(' |
    no_comments | grep -vE 'CLOEXEC' | while IFS=: read -r file line text; do
        sed -n "$((line + 1)),$((line + 3))p" "$file" | grep -q CLOEXEC || echo "$file:$line:$text"
    done)"

# A registry preset asks the package manager of the machine: no registry's host stands here.
host='\b(registry|index|repo|packages|static|files|proxy|sum|plugins)\.[a-z]+\.(org|com|io|dev)\b'
host="$host|pypi\\.(org|python)|pythonhosted\\.|crates\\.io|rubygems\\.org|(npmjs|yarnpkg)\\.|(deb|security|ftp)\\.debian|\\.ubuntu\\.com|docker\\.io|quay\\.io|ghcr\\.io|gcr\\.io|golang\\.org"
# (Debian's package of Docker is called like one.)
check "no host name of a package registry" "$(files . | grep -vE '^tests/style/' | in_files "$host" |
    grep -vE '^quickstart:[0-9]+:.* docker\.io containerd ')"

# A unit test or fuzz target is named there as a program, without its suffix.
named=$(grep -oE '[A-Za-z0-9_./-]+' Makefile.am | sed 's,^\$(srcdir)/,,' | sort -u)
check "every source is in Makefile.am" "$(files '^(src|libocispec|hooks)/.*\.[ch]$|^tests/(unit|fuzz)/[^/]*\.c$' | sort |
    comm -23 - <(sort -u <<<"$named"$'\n'"$(sed -n 's,^tests/.*,&.c,p' <<<"$named")"))"

# The tree must build and run anywhere, and says nothing that is left to be written.
check "no path of one machine and no unfinished mark" "$(files . | grep -vE '^tests/style/' |
    in_files '(^|[^A-Za-z0-9_.])/work/|/tmp/[a-z]+/\.\.|\b(TODO|FIXME)\b' | grep -vE '# TODO"|[^:]*:[0-9]*:.*\$WORK')"

check "every script names its interpreter" "$(files '(\.sh$|^tests/[^.]*$|^demo/|^\.ci/)' | grep -vE '\.(md|allow|json|txt)$|^tests/fuzz/corpus/' | while read -r file; do
    read -r -n 2 start <"$file"; [ "$start" = '#!' ] || echo "$file"
done)"
