#!/bin/bash
# A test that a document names must be there: `file.bats`: "start of its name", "start of another" in docs/*.md; a unit
# test is `test_x.c`: "function". What is generated in a document must be what would be generated.
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 1

bad=() number=0
file_pattern='^[^`"]*`([a-z_/]+\.bats|test_[a-z_]+\.c)`' name_pattern='^[^`"]*"([^"]+)"'
declare -A names # the names of a file's tests, one a line
tests_of() { # FILE: into $known
    known=${names[$1]-}
    [ -z "$known" ] || return 0
    known=$(sed -n -e 's/^@test "\(.*\)" {$/\1/p' -e 's/^static void \([a-z_0-9]*\)(void \*\*.*/\1/p' \
        "tests/bats/$1" "tests/engines/$1" "tests/unit/$1" 2>/dev/null)
    names[$1]=$'\n'$known known=$'\n'$known
}
while IFS=: read -r document line text; do
    file=''
    while :; do
        if [[ $text =~ $file_pattern ]]; then
            file=${BASH_REMATCH[1]}
        elif [[ -n $file && $text =~ $name_pattern ]]; then
            number=$((number + 1))
            tests_of "$file"
            [[ $known == *$'\n'"${BASH_REMATCH[1]}"* ]] || bad+=("$document:$line: $file has no test \"${BASH_REMATCH[1]}\"")
        else
            break
        fi
        text=${text:${#BASH_REMATCH[0]}}
    done
done < <(grep -nE '`([a-z_/]+\.bats|test_[a-z_]+\.c)`' docs/*.md)

echo 1..2
if [ ${#bad[@]} = 0 ] && [ $number -gt 0 ]; then echo "ok 1 - the tests that documents name are there"; else
    printf '# %s\n' "$number names" "${bad[@]}"; echo "not ok 1 - the tests that documents name are there"; fi
if changes=$(tests/update-reasons --check); then echo "ok 2 - the reason codes of docs/log.md are those of src/record/reasons.c"; else
    sed 's/^/# /' <<<"$changes"; echo "not ok 2 - the reason codes of docs/log.md are those of src/record/reasons.c (tests/update-reasons writes them)"; fi
