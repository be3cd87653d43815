# What tests say about what they found, for the runtime's and the engines' files. These say what was found, because `[ ]`
# alone says nothing.

is() { # FOUND WANTED
    [ "$1" = "$2" ] || { printf 'found:  %s\nwanted: %s\n' "$1" "$2" >&2; return 1; }
}
contains() { # TEXT PART
    case $1 in
    *"$2"*) ;;
    *) printf 'in:      %s\nmissing: %s\n' "$1" "$2" >&2; return 1 ;;
    esac
}
lacks() { # TEXT PART
    case $1 in
    *"$2"*) printf 'in:         %s\nunexpected: %s\n' "$1" "$2" >&2; return 1 ;;
    esac
}
matches() { # TEXT REGEX
    [[ $1 =~ $2 ]] || { printf 'text:    %s\npattern: %s\n' "$1" "$2" >&2; return 1; }
}
# A text in none of these files and directories. Not `! grep`, whose failure bats passes over.
in_none() { # TEXT FILE...
    local found status=0
    found=$(LC_ALL=C grep -raFl -e "$1" -- "${@:2}" 2>&1) || status=$?
    [ "$status" = 1 ] || { printf 'unexpected: %s\nin: %s\n' "$1" "$found" >&2; return 1; }
}
more_than() { # NUMBER LEAST
    [ "$1" -gt "$2" ] || { printf 'found:  %s\nwanted: more than %s\n' "$1" "$2" >&2; return 1; }
}
# After `run`: the exit status and, given, a part of the output.
ended() { # STATUS [PART]
    [ "$status" = "$1" ] || { printf 'exit status %s, wanted %s; output:\n%s\n' "$status" "$1" "$output" >&2; return 1; }
    [ $# -lt 2 ] || contains "$output" "$2"
}
# A process that has ended: gone, or not waited for by its parent yet.
process_ended() { # PID
    [ ! -d "/proc/$1" ] || matches "$(sed -n 's/^State:\t//p' "/proc/$1/status" 2>/dev/null)" '^(Z.*|)$'
}
# Waits for a command to succeed; 5 seconds at most.
wait_for() {
    local try
    for try in $(seq 50); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    echo "never true: $*" >&2
    return 1
}
