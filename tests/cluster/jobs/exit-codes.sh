#!/bin/bash
# The exit code of rm-mpirun is that of plain mpirun, for every way a rank can end.
# limit: 180
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# In a quick run only what ends while others wait for it, and every fourth.
between_hosts_too() {
    if thorough || [[ $between_hosts ]] || ((i % 4 == 0)); then echo 1; fi
}

cluster 2 --cores 4
bad=0
i=0
# Between hosts Open MPI talks TCP: a rank that sees its peer's connection close aborts, with 14, most often before mpirun has heard why the peer is gone.
# Nothing that ends at once without MPI, such as `true`: mpirun waits for it for ever now and then when it runs on another host.
while IFS='|' read -r between_hosts arguments; do
    # shellcheck disable=SC2086 # several arguments
    as alice n1 mpirun --oversubscribe -n 3 --mca btl self,sm $arguments >"$work/plain" 2>&1
    plain=$?
    for size in 3 $(between_hosts_too); do
        i=$((i + 1))
        # shellcheck disable=SC2086
        run "e$i" n1 --group-size "$size" -n 3 $arguments
        verdict=same
        ((rc == plain)) || { verdict=DIFFERENT && bad=1; }
        see "$(printf '%-45s mpirun %3d, in groups of %d %3d  %s %s' "${arguments#"$programs/"}" "$plain" "$size" "$rc" "$verdict" "$(q job "e$i" reason)")"
    done
    [[ $arguments != *no-such-program ]] || missing=e$i
done <<END
|$programs/exitcodes ok
|$programs/exitcodes exit 1 7
|$programs/exitcodes exit 0 255
yes|$programs/exitcodes signal 1 9
yes|$programs/exitcodes signal 2 11
yes|$programs/exitcodes signal 0 15
yes|$programs/exitcodes signal 1 6
yes|$programs/exitcodes abort 1 5
yes|$programs/exitcodes unfinalized 2 3
yes|$programs/exitcodes unfinalized 0 200
|$programs/there-is-no-such-program
|/etc/passwd
|sleep 0.5
|sleep no-number
END
# What was not found is said, as by mpirun.
grep -q 'there-is-no-such-program' "$work/$missing.err" || fail "a missing program is not named: $(<"$work/$missing.err")"
# What its daemon has written down moves with a group.
start moved n1 --group-size 1 -n 3 "$programs/exitcodes" signal 1 11 --delay-msec=5000
must "it does not run" q state moved RUNNING 20 >/dev/null
move moved 1 "$(a_node_but "$(q where moved 1)")"
finish moved
see "a crash in a group that has moved: exit code $rc, $(q job moved reason)"
same "the exit code after a crash in a group that has moved" "$rc" 139
run wd n1 -n 1 --wdir /nowhere "$programs/exitcodes" ok
((rc != 0)) || fail "a missing folder is accepted"
run option n1 --no-such-option -n 1 "$programs/exitcodes" ok
((rc != 0)) || fail "a wrong option of mpirun is accepted"
((bad == 0)) || fail "exit codes differ"
