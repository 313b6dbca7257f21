#!/bin/bash
# A job that shares cores goes back when a node returns, as long as what its time limit leaves is worth what that takes (Wang et al. 2012). When
# it is not, the job stays, and rmctl plan says why.
# complete: unit tests of the rule and of plans show when it pays
# limit: 200
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# What is done to `late` until its end comes near has to be over before; `early` is to have plenty.
limit_s=60 early_limit_s=600

# left NAME: of the limit, in milliseconds.
left_msec() {
    echo $((limit_s * 1000 - $(date +%s%3N) + $(date -d "$(q job "$1" start)" +%s%3N)))
}

# nearly_over NAME MSEC: going back took so long, and would have to leave as much again. What follows has the rest of the limit to be seen in.
nearly_over() {
    (($(left_msec "$1") < 2 * $2 - 500))
}

went_back() {
    [[ $(q where "$1" 1) == n2 ]]
}

# folded NAME LIMIT MB: a job that has moved together on n1.
folded() {
    start "$1" n1 --time "$2" --group-size 2 -n 4 "$programs/memory" --mb="$3" --zero-percent=0 --dirty --pause-usec=10000 --stop-file="$(stop_file "$1")"
    running "$1"
    must "the drain" rmctl drain-node n2 --reason going --wait --timeout 60 >/dev/null
    same "where the second group of $1 is" "$(q where "$1" 1)" n1
    see "$1: $(rmctl list-moves | tail -n 1)"
}

# returns NAME: n2 does.
returns() {
    must "resume-node" rmctl resume-node n2 >/dev/null
    see "$1: n2 is back"
}

# Links so slow that a move of what the ranks write to all the time is no trifle: going back is worth it while the limit leaves twice that.
cluster 2 --cores 2 --link 200mbit
folded early $early_limit_s 25
returns early
must "early does not go back" until_true 30 went_back early
see "early went back: $(rmctl list-moves | tail -n 1)"
release early
finish early
ended_well early memory

# Its move takes so long that there is time to look between the instant from which it does not pay and the limit.
folded late $limit_s 50
took_msec=$(q moves late | awk '{ printf "%d", $6 / 1e3 }')
must "the limit does not come near" until_true $limit_s nearly_over late "$took_msec"
see "late: its limit leaves $(left_msec late) ms"
returns late
rmctl plan >"$work/plan"
grep -qE "Runs: +$(job late): folded; stays: its time limit leaves too little for going back, which takes [0-9.]* s" "$work/plan" ||
    fail "plan does not say why: $(<"$work/plan")"
see "$(grep stays "$work/plan")"
finish late
same "how it ended" "$(q job late state)" TIMEOUT
same "its moves" "$(q job late moves)" 1
