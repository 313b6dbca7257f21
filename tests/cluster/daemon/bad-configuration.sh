#!/bin/bash
# rmd --check-config says file, line and what is wrong; rmd does not start with it; a key that others can read is refused.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 1 --cores 2
must "the testbed's own file is good" on n1 rmd --check-config
check='printf "$1" | cat /etc/rmd/rmd.conf - >/tmp/c; rmd --check-config --config /tmp/c; s=$?; rm /tmp/c; exit $s'
lines=$(on n1 grep -c '' /etc/rmd/rmd.conf)
while IFS='|' read -r what text; do
    if on n1 sh -c "$check" sh "$text" >"$work/said" 2>&1; then fail "$what is accepted"; fi
    grep -qE "/tmp/c:[0-9]+" "$work/said" || fail "$what: neither file nor line: $(<"$work/said")"
    see "$what: $(head -n 1 "$work/said")"
done <<'END'
an unknown key|[node]\ncolour = red\n
an unknown section|[nodes]\ncores = 2\n
an unknown section without keys|[nodes]\n
no number|[cluster]\nport = many\n
out of range|[cluster]\nport = 70000\n
a bad network|[capsule]\nnetwork = 10.1.2.3/16\n
a sensor's threshold that is no number|[sensors]\nload = hwmon\nhwmon_low = hot\n
a bad duration|[sched]\nbudget = soon\n
not a line at all|[log]\nwhat is this\n
END
see "the good file has $lines lines"
on n1 chmod 0644 /etc/rmd/cluster.key
bed_do stop-rmd n1
bed_do start-rmd n1
must "rmd runs with a key that everybody can read" until_true 10 eval '! rmd_runs n1'
see "key 0644: $(bed_do logs n1 | tail -n 1)"
on n1 chmod 0600 /etc/rmd/cluster.key
bed_do start-rmd n1
must "it does not come back" until_true 10 all_joined
