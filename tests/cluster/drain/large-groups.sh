#!/bin/bash
# Ten groups with 512 MiB each (64 MiB where the run is not thorough) leave their node at once: neither that node nor those to which they go ever need more
# memory than the groups hold, a tenth of what came, and 64 MiB, and every page is right.
# complete: drain/drain drains, and this one looks at how much memory that takes
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"
mib=$(thorough 512 64)
groups=10

cluster 3 --cores $groups
on n1 sh -c "printf 'n1:$groups\nn2:0\nn3:0\n' >/home/rmd/availability"
start big n1 --group-size 1 -n $groups "$programs/memory" --mb="$mib" --zero-percent=0 --dirty-percent=1 --pause-usec=20000 --stop-file="$(stop_file big)"
running big 120
same "groups on n1, and the head" "$(q place big | grep -c ' n1$')" $((groups + 1))
on n1 sh -c "printf 'n1:$groups\nn2:$groups\nn3:$groups\n' >/home/rmd/availability"
must "the others may not be used" until_true 20 eval '[[ $(q node n2 usable_cores) == "$groups" && $(q node n3 usable_cores) == "$groups" ]]'
for n in $(nodes); do watch_memory "$n"; done
rmctl drain-node n1 --reason "new fans" --wait --timeout 200 >"$work/drain" 2>&1 || fail "drain-node --wait: $(tail -n 3 "$work/drain")"
see "$(tail -n 1 "$work/drain")"
for ((g = 0; g < groups; g++)); do q filled big $g 60 >/dev/null || fail "the memory of group $g does not arrive"; done
for n in $(nodes); do
    memory_watched "$n"
    came=$((after > before ? after - before : 0))
    see "$n: $before MiB before, $after after, at most $peak; $samples samples; then, in MiB: $parts"
    ((peak <= before + came * 11 / 10 + 64)) || fail "$peak MiB on $n"
done
same "what is on n1" "$(q place big | grep -c ' n1$')" 0
release big
finish big 120
ended_well big good
