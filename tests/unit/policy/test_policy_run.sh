#!/bin/sh
# rm-policy-run on saved snapshots: what it prints, and how it fails. Arguments: rm-policy-run, rm-plugin-host, policies, data.
set -u
run=$1 host=$2 policies=$3 data=$4
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # the host reads policies as nobody

call() {
        "$run" --policy-host "$host" --policy-dir "$policies" "$@" 2>&1
}

# shellcheck source=SCRIPTDIR/../check.sh
. "${0%/*}/../check.sh"

golden=$(grep -v '^time' "$data/two-nodes.plan")
plan=$(call "$data/two-nodes.json" | grep -v '^time')
[ "$plan" = "$golden" ] || {
        echo "FAILED picture: $plan"
        failed=1
}
check json 0 '"placement":[{"job":"j1","node":"n2","ranks":8},{"job":"j2","node":"n1","ranks":7}],"waiting":["j3"],"traffic":{' \
        --json --policy greedy "$data/two-nodes.json"
check proven 0 '"cost":152,"bound":152,"proven":true' --json --time 5 - < "$data/two-nodes.json"
# The pipes to the policy do not get the number of a stream that is closed.
for closed in '<&-' '2>&-' '<&- 2>&-'; do
        eval '"$run" --policy-host "$host" --policy-dir "$policies" --json --policy greedy "$data/two-nodes.json"' "$closed" >"$work/plan"
        grep -q '"placement":\[{"job":"j1"' "$work/plan" || {
                echo "FAILED $closed: $(cat "$work/plan")"
                failed=1
        }
done
for format in --json ''; do
        # shellcheck disable=SC2086 # an option or none
        said=$("$run" --policy-host "$host" --policy-dir "$policies" $format "$data/two-nodes.json" 2>&1 >/dev/full)
        [ "$said" = 'rm-policy-run: standard output: No space left on device' ] || {
                echo "FAILED full: $format: '$said'"
                failed=1
        }
done
check running 0 '"placement":[{"job":"1","node":"n2","ranks":4},{"job":"3","node":"n3","ranks":2}],"waiting":["2"]' --json "$data/running.json"
for odd in 0x10 ' 1' inf ''; do check "odd time '$odd'" 2 "--time: '$odd' is no number of seconds" --time "$odd" "$data/two-nodes.json"; done
check 'no file' 1 'rm-policy-run: /nowhere: No such file or directory' /nowhere
check 'no policy' 1 'has neither nix.so nor nix.mod' --policy nix "$data/two-nodes.json"
check 'not a snapshot' 1 'snapshot: not valid JSON' "$0"
check 'a field is missing' 1 'rm-policy-run: -: snapshot: top level: field "jobs" is missing' - <<'END'
{"version":1,"nodes":[]}
END
# Whatever a snapshot says is quoted on one line, and does nothing to a terminal.
printf '{"version":1,"nodes":[{"name":"n1","cores":1,"penalty":1,"a\\nb\\u001b[31m":7}],"jobs":[]}' >"$work/strange"
check 'what is quoted' 1 'strange: snapshot: nodes[0]: unknown field "a?b?[31m" (fields' "$work/strange"
# As some editors write it.
{ printf '\357\273\277'; cat "$data/two-nodes.json"; } >"$work/mark"
check 'byte order mark' 0 '"cost":152' --json "$work/mark"
check 'byte order mark, picture' 0 'cost     152' "$work/mark"
awk 'BEGIN {
        printf "{\"version\":1,\"nodes\":[{\"name\":\"n1\",\"cores\":32,\"penalty\":1},{\"name\":\"n2\",\"cores\":32,\"penalty\":1}],"
        printf "\"jobs\":[{\"name\":\"j\",\"ranks\":64,\"priority\":1,\"traffic\":["
        for (i = 0; i < 64; i++) for (k = 0; k < 64; k++) if (i != k) printf "%s[%d,%d,4503599627370496]", (n++ ? "," : ""), i, k
        print "]}]}"
}' >"$work/much"
check 'more bytes than there are numbers' 0 'traffic  bytes times hops 9223372036854775807, by slot 9223372036854775807 (100.0%)' "$work/much"
check 'a path for a name' 1 "policy './mine.mod': that is no name: a policy is asked for by that of its file, without folder and ending" \
        --policy ./mine.mod "$data/two-nodes.json"
check 'an ending' 1 "policy 'greedy.so': a policy is asked for without its '.so'" --policy greedy.so "$data/two-nodes.json"
check 'the runner itself' 1 "policy 'mathprog': mathprog runs models: ask for one by its name" --policy mathprog "$data/two-nodes.json"
# Who is root becomes nobody for a policy, whatever it is; others stay who they are.
cp "$policies/greedy.so" "$work/greedy.so"
chmod 600 "$work/greedy.so"
if [ "$(id -u)" = 0 ]; then
        mkdir -m 700 "$work/closed"
        cp "$policies/fewest-nodes.mod" "$work/closed/mine.mod"
        "$host" --kind policy --policy mine --dir "$work/closed" --standard-dir "$policies" <"$data/two-nodes.json" 2>&1 | grep -q '"cost":152' || {
                echo 'FAILED a model in a closed folder'
                failed=1
        }
        check 'not for everybody' 1 "policy 'greedy': $work/greedy.so cannot be read: policies run as nobody, who must be able to" \
                --policy-dir "$work" --policy greedy "$data/two-nodes.json"
fi
# A model in a folder of its own.
cp "$policies/fewest-nodes.mod" "$work/mine.mod"
mine=$("$host" --kind policy --policy mine --dir "$work" --standard-dir "$policies" <"$data/two-nodes.json" 2>&1)
case $mine in
*'"method":"mine.mod, optimal","cost":152'*) ;;
*)
        echo "FAILED a model in a folder of its own: $mine"
        failed=1
        ;;
esac
check 'nothing that runs models' 1 "models need mathprog.so, and neither $work nor /" --policy-dir "$work" --policy mine "$data/two-nodes.json"
# One that looks through more than anybody has time for.
cp "$policies/mathprog.so" "$work/mathprog.so"
cat >"$work/endless.mod" <<'END'
set I := 1..1000000;
check: sum{i in I, k in I} i > 0;
end;
END
check 'never ends' 1 "policy 'endless': killed: no answer after 1." --policy-dir "$work" --policy endless --time 0.1 "$data/two-nodes.json"
check 'too full' 1 'running jobs do not fit: they have 4 ranks, and 2 cores may be used' - <<'END'
{"version":1,"nodes":[{"name":"n1","cores":2,"penalty":1}],"jobs":[{"name":"j","ranks":4,"priority":1,"placed":[{"node":"n1","ranks":4}]}]}
END
check 'no argument' 2 'which snapshot?'
check 'bad time' 2 "'soon' is no number" --time soon "$data/two-nodes.json"
exit $failed
