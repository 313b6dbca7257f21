#!/bin/bash
# The exit code of rm-mpirun is that of plain mpirun, for every way a rank can end.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 2 --cores 2
bad=0
i=0
while read -r arguments; do
    i=$((i + 1))
    # shellcheck disable=SC2086 # several arguments
    as alice n1 mpirun --oversubscribe -n 3 --mca btl self,sm $arguments >"$work/plain" 2>&1
    plain=$?
    # shellcheck disable=SC2086
    run "e$i" n1 -n 3 $arguments
    verdict=same
    ((rc == plain)) || { verdict=DIFFERENT && bad=1; }
    see "$(printf '%-60s mpirun %3d, rm-mpirun %3d  %s' "${arguments#"$programs/"}" "$plain" "$rc" "$verdict")"
done <<END
$programs/exitcodes ok
$programs/exitcodes exit 1 7
$programs/exitcodes exit 0 255
$programs/exitcodes signal 1 9
$programs/exitcodes signal 2 11
$programs/exitcodes signal 0 15
$programs/exitcodes abort 1 5
$programs/exitcodes unfinalized 2 3
$programs/there-is-no-such-program
/etc/passwd
true
false
END
# What was not found is said, as by mpirun.
grep -q 'there-is-no-such-program' "$work/e9.err" || fail "a missing program is not named: $(<"$work/e9.err")"
run wd n1 -n 1 --wdir /nowhere "$programs/exitcodes" ok
((rc != 0)) || fail "a missing folder is accepted"
run option n1 --no-such-option -n 1 "$programs/exitcodes" ok
((rc != 0)) || fail "a wrong option of mpirun is accepted"
((bad == 0)) || fail "exit codes differ"
