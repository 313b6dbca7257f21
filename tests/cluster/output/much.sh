#!/bin/bash
# Much output on both streams, faster than anybody reads it, also to a reader that is slow or leaves, and a last line without
# an end.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2
run much n1 -n 4 "$programs/flood" --only=out --lines=50000 --width=60
same "exit code" "$rc" 0
must "standard output" whole "$work/much.out" out 4 60
run errors n1 -n 4 "$programs/flood" --only=err --lines=50000 --width=60
same "exit code" "$rc" 0
must "standard error" whole "$work/errors.err" err 4 60
run both n1 -n 4 "$programs/flood" --lines=3000 --pause-usec=200
# On a loaded machine mpirun gets chunks instead of lines and lets ends of lines slip into the other stream, as it does without
# rmd when its ranks are on other hosts (over bench/inside-rsh, on a machine with seven times too much to do: 5 of 24 runs, and
# 10 of 24 under rmd, where no rank is on mpirun's own host). Then at least nothing is lost, and nothing comes twice. In
# each rank's letters: 3000 records of 48 and an end of 16, on both streams.
letters() {
    sed "/^rm-mpirun: /d" "$work/both.out" "$work/both.err" | LC_ALL=C tr -cd "$1" | wc -c
}
if ! whole "$work/both.out" out 4 || ! whole "$work/both.err" err 4; then
    for range in '0-?' '@-O' 'P-_' '`-o'; do
        same "letters $range on both streams" "$(letters "$range")" $((2 * (3000 * 48 + 16)))
    done
    see "both streams together: all is there, each once"
fi

run wide n1 -n 2 "$programs/flood" --only=out --lines=100 --width=20000
must "wide lines" whole "$work/wide.out" out 2 20000

run open n1 -n 1 "$programs/flood" --only=out --lines=10 --no-newline
must "without an end" whole "$work/open.out" out 1
as alice n1 mpirun -n 1 --mca btl self,sm "$programs/flood" --only=out --lines=10 --no-newline 2>/dev/null >"$work/plain"
must "the last bytes differ from mpirun's" cmp "$work/open.out" "$work/plain"

bed_do exec n1 --user alice -- rm-mpirun --job-name slow -n 2 "$programs/flood" --only=out --lines=20000 --width=100 2>/dev/null </dev/null |
    { sleep 3 && cat; } >"$work/slow.out"
must "to a slow reader" whole "$work/slow.out" out 2 100

# As with mpirun: a reader that leaves is no reason for the job to hang.
timeout 60 "$testbed_tool" exec --name "$bed" n1 --user alice -- sh -c \
    'rm-mpirun --job-name left -n 2 "$1" --lines=200000 --width=100 2>/dev/null </dev/null | head -n 5' sh "$programs/flood" >"$work/left.out" ||
    fail "a job whose reader has left hangs"
same "lines for a reader that leaves" "$(wc -l <"$work/left.out")" 5
must "job 'left' goes on for ever" q state left COMPLETED,FAILED,CANCELLED 30 >/dev/null
