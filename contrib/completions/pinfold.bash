# bash completion for pinfold. Commands and options are asked of the program itself, so that they are always its own.
_pinfold() {
    local word=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} command='' help index words
    for ((index = 1; index < COMP_CWORD; index++)); do
        case ${COMP_WORDS[index]} in
        --root | --policy | --log | --log-format | --cgroup-manager) ((index++)) ;;
        -* | =) ;;
        policy) command=${COMP_WORDS[index]} && [[ $((index + 1)) -ge $COMP_CWORD ]] || command="policy ${COMP_WORDS[index + 1]}"; break ;;
        *) command=${COMP_WORDS[index]}; break ;;
        esac
    done
    # shellcheck disable=SC2086 # "policy check" is two words
    help=$("$program" $command --help 2>/dev/null)
    words=$(sed -n 's/^ \{2,\}\(-[a-zA-Z], \)\{0,1\}\(--[a-z-]*\).*/\2/p' <<<"$help")
    case $command in
    policy) words+=$'\n'$(sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p' <<<"$help") ;;
    '') words+=$'\n'$(sed -n '/^commands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p' <<<"$help") ;;
    start | state | kill | delete | exec | ps | pause | resume | update | events)
        [[ $word == -* ]] || words+=$'\n'$("$program" list -q 2>/dev/null | grep -xE '[A-Za-z0-9_+.-]+')
        ;;
    "policy generate") words+=$'\nnpm\npip\ncargo\ngo\napt\ngem\nmaven' ;;
    esac
    case ${COMP_WORDS[COMP_CWORD - 1]} in
    --bundle | -b | -w) mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
    --config | -f | --process | -p | --pid-file | --log) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _pinfold pinfold
