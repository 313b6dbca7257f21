#!/bin/bash
# 200 HTTP clients of two users, on the Unix socket and on TCP, that are silent, slow, deaf, fast or mad, or watch the page without reading: root's rmctl is answered within a second, another user's
# scrape too, rmd's memory stays bounded, and none of them keeps a connection.
# limit: 120
# load: 2
# complete: the unit test web-http shows the same of single clients
. "${BASH_SOURCE[0]%/*}/../lib.sh"

seconds=$(thorough 60 10)
bound_kb=$((8 << 10))

# Those that rmd has; what the kernel remembers of closed ones is no matter.
connections() {
    on n1 sh -c 'ss -Hxtnp state connected | grep "\"rmd\"" | grep -cE "web.sock|127.0.0.1:7701 "'
}
none_left() {
    (($(connections) == 0))
}

cluster 2 --cores 4 --set "web.listen=/run/rmd/web.sock 127.0.0.1:7701"
on n1 sh -c 'read -r pid </run/testbed-rmd.pid && echo 5 >/proc/$pid/clear_refs'
before=$(memory_of n1 VmRSS)
as alice n1 "$programs/http" hostile /run/rmd/web.sock "$seconds" 100 >"$work/unix" &
hostile=($!)
as bob n1 "$programs/http" hostile 7701 "$seconds" 100 >"$work/tcp" &
hostile+=($!)
in_node n1 -- setpriv --reuid 65533 --regid 65533 --clear-groups "$programs/http" hostile /run/rmd/web.sock "$seconds" 50 watch "deaf watch" </dev/null >"$work/watch" &
hostile+=($!)
asks_root n1 "$seconds"
# The one who scrapes is another user, as Prometheus is; on both ways.
scrapes=0
began=$EPOCHREALTIME
slowest=0
while (($(msec_since "$began") < (seconds - 2) * 1000)); do
    for place in /run/rmd/web.sock 7701; do
        at=$EPOCHREALTIME
        in_node n1 -- setpriv --reuid 65534 --regid 65534 --clear-groups "$programs/http" get "$place" /metrics </dev/null >"$work/scrape" ||
            fail "a scrape of $place failed beside hostile clients"
        took=$(msec_since "$at")
        ((took <= slowest)) || slowest=$took
        grep -q '^# EOF' "$work/scrape" || fail "half a scrape"
        scrapes=$((scrapes + 1))
    done
    sleep 0.3 # a user may ask ten times a second
done
must "no connection is seen while clients are there" eval '(($(connections) > 0))'
wait "${asking[@]}" "${hostile[@]}"
peak=$(memory_of n1 VmHWM)
see "hostile clients: $(<"$work/unix") (Unix), $(<"$work/tcp") (TCP), $(<"$work/watch") (watching) connections and answers"
(($(cut -d ' ' -f 2 "$work/watch") >= 2)) || fail "nobody watched the page"
see "$scrapes scrapes of another user, the slowest $slowest ms with the start of its client"
see "rmd's memory: $before kB before, at most $peak kB"
answered 1000
in_time "$slowest" 2000 || fail "a scrape took $slowest ms"
((peak - before <= bound_kb)) || fail "rmd's memory grew by $((peak - before)) kB, over $bound_kb kB"
must "connections are left" until_true 15 none_left
rmd_runs n1 || fail "rmd is gone"
