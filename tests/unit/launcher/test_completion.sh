#!/bin/bash
# What the tab key offers is what rmctl and rm-mpirun know: each verb, each option, and what options
# take. Otherwise users do not find what is new, and are offered what is gone. test_completion.sh
# RMCTL RM-MPIRUN DIRECTORY-OF-COMPLETIONS
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/dir"
ln -s "$(realpath "$1")" "$work/bin/rmctl"
ln -s "$(realpath "$2")" "$work/bin/rm-mpirun"
PATH=$work/bin:$PATH
# No cluster is asked.
export RM_SOCKET=$work/none
# shellcheck disable=SC1091 # the one that is tested
. "$3/rmctl"
# shellcheck disable=SC1091
. "$3/rm-mpirun"
cd "$work" || exit
: >program.txt
failed=0
fail() {
    printf "FAILED %.300s\n" "$*"
    failed=1
}

# offered COMMAND WORD...: what is offered for the last one, sorted, in one line.
offered() {
    local function=_${1//-/_}
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    "$function"
    printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort | paste -sd ' '
}
# same WANTED COMMAND WORD...
same() {
    local have
    have=$(offered "${@:2}")
    [[ $have == "$1" ]] || fail "'${*:2}' offers '$have', not '$1'"
}
# offers WORD COMMAND WORD...
offers() {
    local have
    have=$(offered "${@:2}")
    [[ " $have " == *" $1 "* ]] || fail "'${*:2}' offers '$have', and not '$1'"
}

# --- rmctl: against what its help says to people ---
verbs=$(rmctl --help | sed -nE 's/^  ([a-z-]+) .*/\1/p')
(($(wc -w <<<"$verbs") > 25)) || fail "the help of rmctl lists only these verbs: $verbs"
for verb in $verbs; do
    offers "$verb" rmctl ""
    offers "$verb" rmctl "${verb:0:4}"
    for option in $(rmctl help "$verb" | sed -nE 's/^  (--[a-z-]+) .*/\1/p'); do offers "$option" rmctl "$verb" --; done
    for option in $(offered rmctl "$verb" --); do
        [[ $option == --help || $'\n'$(rmctl help "$verb") == *$'\n'"  $option "* ]] || fail "$verb: '$option' is offered, and is not in its help"
    done
done
for verb in $(offered rmctl ""); do
    [[ $verb == --* || " ${verbs//$'\n'/ } " == *" $verb "* ]] || fail "'$verb' is offered, and is no verb"
done
same "live stop" rmctl migrate-job 1 --mode ""
same "big little" rmctl merge-portable dir --byte-order ""
same "critical failing ok warn" rmctl report-health n1 ""
same "dir" rmctl show-portable d
same "program.txt" rmctl import-checkpoint prog
same "program.txt" rmctl export-checkpoint 1.1 --key-file prog
same "head" rmctl migrate-job 1 --group ""
offers drain-node rmctl help ""
same "" rmctl drain-node n1 --reason ""

# --- rm-mpirun ---
options=$(rm-mpirun --help | grep -oE '^  --[a-z-]+|, --[a-z]+' | grep -oE -e '--.*')
(($(wc -w <<<"$options") > 20)) || fail "the help of rm-mpirun lists only these options: $options"
for option in $options; do offers "$option" rm-mpirun --; done
for option in $(offered rm-mpirun --); do
    case $option in --mca | --map-by | --rank-by | --bind-to | --wdir | --output | --tag-output) continue ;; esac
    [[ " ${options//$'\n'/ } " == *" $option "* ]] || fail "'$option' is offered, and rm-mpirun does not know it"
done
# With what it takes behind it, the next word is the program; a file would be an argument of that.
for option in $options; do
    [[ $(rm-mpirun --help) =~ "  $option "[^\ ] ]] || continue
    offers --wait rm-mpirun "$option" 1 --
    offers --wait rm-mpirun "$option" = 1 --
done
offers --wait rm-mpirun --detach --
same "program.txt" rm-mpirun --detach ./program prog
same "abort fold restart" rm-mpirun --on-node-loss ""
same "abort continue continue:critical=" rm-mpirun --on-rank-loss ""
same "auto" rm-mpirun --checkpoint ""
same "copy size" rm-mpirun --checkpoint-files = ""
same "program.txt" rm-mpirun --availability prog
same "" rm-mpirun --mem ""
exit "$failed"
