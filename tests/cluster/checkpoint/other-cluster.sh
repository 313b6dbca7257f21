#!/bin/bash
# A job goes on in another cluster, from a checkpoint that root has exported with a key for that, or from one that its owner has exported, with the key of the first cluster. Without one
# of these keys nobody imports it there.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# refused WHAT PATTERN CMD...
refused() {
    if "${@:3}" >"$work/said" 2>&1; then fail "$1: it is believed"; fi
    see "$1: $(tail -n 1 "$work/said")"
    grep -q -- "$2" "$work/said" || fail "$1: it is refused for another reason: $(<"$work/said")"
}
# made: a cluster in which jobs may be saved.
made() {
    cluster 1 --cores 2
    until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"
}

made
start live n1 --checkpoint 1h -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live 60
id=$(job live)
must "there is no checkpoint" as alice n1 rmctl checkpoint-job "$id" --timeout 60 >/dev/null
on n1 sh -c 'umask 077; head -c 32 /dev/urandom >/etc/rmd/travel.key'
must "root cannot export it" on n1 rmctl export-checkpoint "$id.1" /root/travel --key-file /etc/rmd/travel.key >/dev/null
must "its owner cannot export it" as alice n1 rmctl export-checkpoint "$id.1" own >/dev/null
must "it cannot be cancelled" rmctl cancel-job "$id"
finish live
files=(/root/travel /home/alice/own /etc/rmd/travel.key /etc/rmd/cluster.key)
for file in "${files[@]}"; do on n1 cat "$file" >"$work/${file##*/}"; done
first=$bed
bed_do down

bed=${bed}b
made
for file in "${files[@]}"; do cp "$work/${file##*/}" "$beds/$bed/home/rmd/"; done
on n1 sh -c 'cd /home/rmd && install -m 600 travel.key cluster.key /root && install -o alice -m 600 travel own /home/alice && rm travel own travel.key cluster.key'
for file in travel own; do
    refused "'$file' without a key" "by cluster '$first' with the key [0-9a-f]*, and not by this one" as alice n1 rmctl import-checkpoint $file
done
refused "with the wrong key" 'is not the one in that file' on n1 rmctl import-checkpoint /home/alice/travel --key-file /root/cluster.key
must "it cannot be imported with the other cluster's key" on n1 rmctl import-checkpoint /home/alice/own --key-file /root/cluster.key >/dev/null
must "it is no good" on n1 rmctl verify-checkpoint "$id.1" >/dev/null
must "it cannot be removed" rmctl remove-checkpoint "$id.1"
must "it cannot be imported with the key for that" on n1 rmctl import-checkpoint /home/alice/travel --key-file /root/travel.key >/dev/null
must "it is no good" on n1 rmctl verify-checkpoint "$id.1" >/dev/null
must "it cannot go on" as alice n1 rmctl restart-job "$id.1"
release live
must "it does not end well" eval 'as alice n1 rmctl attach-job "$id" </dev/null 2>&1 | grep hash >"$work/said"'
see "$(<"$work/said")"
on n1 sh -c 'rm /home/alice/* /root/*.key'
