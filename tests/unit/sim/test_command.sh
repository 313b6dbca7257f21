#!/bin/sh
# rm-sim as it is typed: what it prints and writes, and how it fails. Arguments: rm-sim, policies.
set -u
sim=$1 policies=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

call() {
        "$sim" --policy-dir "$policies" "$@" 2>&1
}

# shellcheck source=SCRIPTDIR/../check.sh
. "${0%/*}/../check.sh"

cat >"$work/trace" <<END
; two jobs
1 0 -1 60 4 -1 -1 4 60 -1 1 -1 -1 -1 -1 -1 -1 -1
2 0 -1 60 4 -1 -1 4 60 -1 1 -1 -1 -1 -1 -1 -1 -1
END
echo "1 0 -1" >"$work/bad"
echo "30 n1 0" >"$work/away"
echo "30 n9 0" >"$work/nowhere"
check table 0 'jobs ended                                  2
jobs that never could                       0
wait, mean ' -c 2x2 "$work/trace"
check 'standard input' 0 'jobs ended                                  2' -c 2x2 - <"$work/trace"
sed '2s/ 60 4/ 0 4/' "$work/trace" >"$work/cancelled"
check 'a job that never ran' 0 '1 incomplete lines of the trace were ignored' -c 2x2 "$work/cancelled"
gzip -c "$work/trace" >"$work/trace.gz"
check 'compressed' 1 "$work/trace.gz: it is compressed: zcat $work/trace.gz | rm-sim ... -" -c 2x2 "$work/trace.gz"
check malleable 0 'greedy greedy+malleable' -c 2x4 --malleable 1 "$work/trace"
check 'the malleable ones' 0 'malleable jobs                              0                2' -c 2x4 --malleable 1 "$work/trace"
check 'not with easy' 0 '"policy": "easy"' -c 2x4 -p easy --malleable 1 --json "$work/trace"
check 'more than all' 2 "--malleable: '2' is no number from 0 to 1" -c 2x2 --malleable 2 "$work/trace"
check 'half a range' 2 "--malleable: SHARE or SHARE:LEAST:MOST, not '1:0.5'" -c 2x2 --malleable 1:0.5 "$work/trace"
check json 0 '"bounded_slowdown": {' -c 2x2 --json -p easy -p greedy "$work/trace"
check files 0 'easy' -c 2x2 -a "$work/away" -p easy --csv "$work/csv" --svg "$work/svg" "$work/trace"
[ "$(wc -l <"$work/csv")" = 3 ] && grep -q '^easy,1,' "$work/csv" && grep -q '</svg>' "$work/svg" || {
        echo "FAILED files: $(cat "$work/csv" "$work/svg")"
        failed=1
}
# A file that it writes does not get the number of a stream that is closed: nothing that is printed comes into it.
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-' '2>&- -p nix'; do # the last one ends with an error
        eval '"$sim" --policy-dir "$policies" -c 2x2 -p easy --csv "$work/apart" "$work/trace" >/dev/null 2>/dev/null' "$closed"
        [ "$(cut -d , -f 1 "$work/apart" | paste -sd ' ')" = 'policy easy easy' ] || {
                echo "FAILED $closed: $(cat "$work/apart")"
                failed=1
        }
done
check 'bad trace' 1 "$work/bad:1: 3 fields, and a job has 18" -c 2x2 "$work/bad"
check 'bad availability' 1 "$work/nowhere:1: there is no node 'n9'" -c 2x2 -a "$work/nowhere" "$work/trace"
check 'no trace' 1 'No such file' -c 2x2 "$work/none"
check 'no policy' 1 "policy 'nix'" -c 2x2 -p nix "$work/trace"
check 'no cluster' 2 'a trace and --cluster are needed' "$work/trace"
check 'bad number' 2 "'x' is no number" -c 2x2 --settle x "$work/trace"
for odd in 0x10 ' 1' nan 1e999; do
        check "odd number '$odd'" 2 "'$odd' is no number from 0 to 1000000" -c 2x2 --settle "$odd" "$work/trace"
done
check 'no whole number' 2 "--group-size: '1.5' is no whole number" -c 2x2 -g 1.5 "$work/trace"
check 'bad name' 2 "'../x' is no name of a policy" -c 2x2 -p ../x "$work/trace"
check 'no place to write' 1 'No such file or directory' -c 2x2 --csv "$work/none/csv" "$work/trace"
exit $failed
