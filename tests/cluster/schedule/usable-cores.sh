#!/bin/bash
# A node may be used with one of its two cores: all that runs there has one core, under a policy that chooses no cores too, with threads that
# are started later and bind themselves to all cores (to these only a cpuset says no at once). With more cores they are free again.
# complete: availability/files and unit tests of folding show the same in smaller
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

[[ $(nproc) -ge 2 ]] || { see "NOT TRIED: this machine has one core" && exit 0; }
cluster 1 --cores 2

# allow N: so many cores of n1 may be used.
allow() {
    on n1 sh -c "echo n1:$1 >/home/rmd/availability"
}
# cpus: on how many CPUs together all threads of all capsules may run.
cpus() {
    # shellcheck disable=SC2016 # the node's shell expands it
    on n1 sh -c 'for p in $(pgrep -x "crowd|spin|mpirun|prterun|prted"); do cat /proc/$p/task/*/status; done 2>/dev/null' |
        sed -n 's/^Cpus_allowed_list:\t//p' | tr ',' '\n' | awk -F - '{ for (c = $1; c <= ($2 == "" ? $1 : $2); c++) seen[c] = 1 } END { print length(seen) }'
}
have() {
    [[ $(cpus) == "$1" ]]
}
# used NAME: cores that its ranks used in their last three seconds.
used() {
    tail -n 4 "$work/$1.out" | sed -n 's/.* used \([0-9.]*\) cores$/\1/p' | head -n 3 | awk '{ sum += $1 } END { print sum / NR }'
}

for with in "no controllers" controllers; do
    [[ $with != controllers ]] || give_controllers n1
    see "--- with $with"
    wide=''
    if [[ $with == controllers ]]; then
        if ! limited n1 cpuset; then continue; fi
        wide=--wide
    else
        until_true 5 unlimited n1 cpuset || fail "status does not say that cores are kept by affinity: $(on n1 rmctl status)"
    fi
    allow 2
    for policy in distrib treematch; do
        start "$policy" n1 --policy $policy --group-size 1 -n 1 "$programs/crowd" --threads=3 --late=1 $wide --stop-file="$(stop_file $policy)"
        running "$policy"
        start "spin-$policy" n1 --policy $policy -n 1 "$programs/spin" --stop-file="$(stop_file "spin-$policy")"
        running "spin-$policy"
        allow 1
        until_true 20 have 1 || fail "$policy: 1 of 2 cores may be used, but what runs has $(cpus)"
        sleep 5 # no second that `used` looks at has begun before
        have 1 || fail "$policy: 1 of 2 cores may be used, but after a while what runs has $(cpus)"
        cores=$(used "$policy")
        see "$policy: 1 of 2 cores usable: crowd used $cores"
        awk -v c="$cores" 'BEGIN { exit !(c > 0 && c < 1.1) }' || fail "$policy: it used $cores cores"
        allow 2
        release "spin-$policy"
        finish "spin-$policy"
        until_true 20 have 2 || [[ $policy == treematch ]] || fail "$policy: 2 of 2 cores may be used, but what runs has $(cpus)"
        sleep 2
        see "$policy: 2 of 2: threads may run on $(cpus), crowd used $(used "$policy")"
        release "$policy"
        finish "$policy"
        ended_well "$policy" done
        on n1 sh -c 'rm -f /home/alice/*.stop'
    done
done
