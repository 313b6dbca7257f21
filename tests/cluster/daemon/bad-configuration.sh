#!/bin/bash
# rmd --check-config says file, line and what is wrong; rmd does not start with it; a key that others can read is refused; nobody is sent with a
# secret to a place for the page that rmd could not have, and that may be another user's.
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

# --- none of the places for the page can be had ---
as bob n1 sh -c 'echo $$ >/home/bob/taken.pid; exec socat TCP-LISTEN:7702,bind=127.0.0.1,fork OPEN:/dev/null' &
taker=$!
taken() { on n1 ss -Hltn 'sport = 7702' | grep -q 7702; }
must "bob does not take the port" until_true 10 taken
places="/var/tmp/plain /nonexistent/web.sock 127.0.0.1:7702 /run/rmd/rmd.sock"
on n1 sh -c 'echo plain >/var/tmp/plain; cp /etc/rmd/rmd.conf /run/good.conf; printf "\n[web]\nlisten = %s\n" "$1" >>/etc/rmd/rmd.conf' sh "$places"
must "the configuration is not taken" on n1 rmd --check-config >/dev/null
bed_do restart-rmd n1
must "it does not come back" until_true 10 all_joined
rmctl status >"$work/said"
grep -qF "could not listen at $places for its page" "$work/said" || fail "status does not warn: $(<"$work/said")"
if as alice n1 rmctl web >"$work/said" 2>&1; then fail "there is a page: $(<"$work/said")"; fi
for place in $places; do grep -qF "could not listen at $place" "$work/said" || fail "web does not name $place: $(<"$work/said")"; done
! as alice n1 rmctl web --json 2>/dev/null | grep -E '"token": "[0-9a-f]|http:' || fail "there is a token for a place that is not rmd's"
see "$(head -n 1 "$work/said")"
on n1 sh -c 'cat /run/good.conf >/etc/rmd/rmd.conf; kill "$(cat /home/bob/taken.pid)"; rm -f /run/good.conf /var/tmp/plain* /home/bob/taken.pid'
wait "$taker" 2>/dev/null
bed_do restart-rmd n1
must "it does not come back" until_true 10 all_joined
rmctl web | grep -q 'ssh -L' || fail "there is no page again: $(rmctl web 2>&1)"
