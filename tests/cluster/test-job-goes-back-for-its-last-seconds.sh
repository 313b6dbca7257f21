#!/bin/bash
# A job that shares cores goes back when a node returns, as long as what its time limit leaves is worth what that takes (Wang et al. 2012). When
# it is not, the job stays, and rmctl plan says why.
# limit: 150
. "${BASH_SOURCE[0]%/*}/lib.sh"

limit_s=30

# left NAME: of the limit, in milliseconds.
left_msec() {
    echo $((limit_s * 1000 - $(date +%s%3N) + $(date -d "$(q job "$1" start)" +%s%3N)))
}

nearly_over() {
    (($(left_msec "$1") < 3000))
}

went_back() {
    [[ $(q where "$1" 1) == n2 ]]
}

# Links so slow that a move of what the ranks write to all the time is no trifle: going back is worth it while the limit leaves twice that.
cluster 2 --cores 2 --link 200mbit
for name in early late; do
    start $name n1 --time $limit_s --group-size 2 -n 4 "$programs/memory" --mb=25 --zero-percent=0 --dirty \
        --stop-file="$(stop_file $name)"
    running $name
    must "the drain" rmctl drain-node n2 --reason going --wait --timeout 60 >/dev/null
    same "where the second group of $name is" "$(q where $name 1)" n1
    see "$name: $(rmctl list-moves | tail -n 1)"
    if [[ $name == late ]]; then until_true $limit_s nearly_over $name; fi
    must "resume-node" rmctl resume-node n2 >/dev/null
    see "$name: n2 is back when its limit leaves $(left_msec $name) ms"
    if [[ $name == late ]]; then
        rmctl plan >"$work/plan"
        grep -qE "Runs: +$(job late): folded; stays: its time limit leaves too little for going back, which takes [0-9.]* s" "$work/plan" ||
            fail "plan does not say why: $(<"$work/plan")"
        see "$(grep stays "$work/plan")"
        finish late
        same "how it ended" "$(q job late state)" TIMEOUT
        same "its moves" "$(q job late moves)" 1
    else
        must "$name does not go back" until_true 30 went_back $name
        see "$name went back: $(rmctl list-moves | tail -n 1)"
        release $name
        finish $name
        ended_well $name memory
    fi
done
