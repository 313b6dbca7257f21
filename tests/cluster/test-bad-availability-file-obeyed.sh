#!/bin/bash
# A file that cannot be meant changes nothing, and says file and line in status and log.
. "${BASH_SOURCE[0]%/*}/lib.sh"
file=/home/rmd/availability

usable() {
    local n
    for n in $(nodes); do q node "$n" usable_cores; done | paste -sd ' '
}
write() {
    on n1 sh -c 'printf "$1" >"$2.new" && mv "$2.new" "$2"' sh "$1" "$file"
}
takes_effect() {
    write "$2"
    until_true 3 eval "[[ \$(usable) == '$3' ]]" || fail "$1: usable cores are $(usable), not $3"
    see "$1: usable $(usable)"
}
# refused WHAT CONTENT PATTERN: PATTERN is what status must say.
refused() {
    local before
    before=$(usable)
    write "$2"
    until_true 3 eval "rmctl status | grep -qE -- '$3'" || fail "$1: status does not say '$3': $(rmctl status | grep -i avail)"
    same "$1: usable cores" "$(usable)" "$before"
    see "$1: $(rmctl status | grep -E -m 1 -- "$3" | sed 's/^ *//')"
}

cluster 3 --cores 4
takes_effect "a good file" 'n1:2\nn2:0 # maintenance\n\n# all of n3\n' '2 0 4'
refused "garbage" '\001\002\377 what\n' 'availability:1'
refused "half a line" 'n1:1\nn2' 'availability:2'
refused "an unknown host" 'n1:1\nn9:1\n' 'availability:2.*n9'
refused "a negative number" 'n1:-1\n' 'availability:1'
refused "a huge number" 'n1:99999999999999999999\n' 'availability:1'
refused "no number" 'n1:\n' 'availability:1'
refused "more than a number" 'n1:2x\n' 'availability:1'
refused "a host named twice" 'n1:1\nn2:1\nn1:3\n' 'availability:3'
takes_effect "CRLF" 'n1:3\r\nn2:1\r\n' '3 1 4'
takes_effect "no newline at the end" 'n1:1\nn2:3' '1 3 4'
takes_effect "more than there is" 'n1:1000\n' '4 4 4'
takes_effect "an empty file names nobody" '' '4 4 4'
takes_effect "once more" 'n1:2\n' '2 4 4'
on n1 rm "$file"
sleep 1.5
same "a missing file: usable cores" "$(usable)" '2 4 4'
until_true 3 eval 'rmctl status | grep -qiE "availability.*(no such|missing|not there)"' || fail "a missing file is not told: $(rmctl status)"
see "a missing file: usable $(usable)"
takes_effect "back again" 'n1:1\nn3:1\n' '1 4 1'
grep -q 'availability:3' <(bed_do logs "$(q leader)") || fail "the leader's log does not name the line"
