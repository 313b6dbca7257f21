#!/bin/bash
# The tab key in a shell of a user: verbs, options, nodes, jobs, groups, policies; after the program's name, files.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2
start live n1 --group-size 1 -n 2 "$programs/spin" --stop-file="$(stop_file live)"
running live
number=$(job live)
as alice n1 sh -c 'touch programme input.dat --  -strange; chmod +x programme'
texts=() wanted=()
while IFS='|' read -r text want; do
    texts+=("$text")
    wanted+=("$want")
done <<END
rmctl drai|rmctl drain-node
rmctl list-|list-jobs list-moves list-nodes list-policies
rmctl drain-node n|n1 n2
rmctl drain-node n1,n|n1,n1 n1,n2
rmctl drain-node n1 --re|--reason
rmctl report-health n1 |critical failing n1 n2 ok warn
rmctl cancel-job |cancel-job $number
rmctl --json show-j|--json show-job
rmctl migrate-job $number --group |0 1 head
rmctl plan --policy |distrib fewest-nodes greedy spread treematch
rmctl events --|--follow --help --json --no-header --since --timeout --wait
rm-mpirun --pol|--policy
rm-mpirun --policy |distrib fewest-nodes greedy spread treematch
rm-mpirun --policy=gr|--policy=greedy
rm-mpirun --availability inp|input.dat
rm-mpirun -n 2 ./prog|./programme
rm-mpirun -n 2 hpc|hpcc
rm-mpirun -n 2 ./programme inp|input.dat
rm-mpirun -n 2 ./programme --pol|./programme --pol
END
as alice n1 "$programs/type" "${texts[@]}" >"$work/typed"
i=0
while read -r line; do
    see "$(printf '%-36s %s' "${texts[i]}" "$line")"
    [[ "$line " == *"${wanted[i]} "* ]] || fail "'${texts[i]}' becomes '$line', not '${wanted[i]}'"
    i=$((i + 1))
done <"$work/typed"
same "lines" "$i" "${#texts[@]}"
release live
finish live
