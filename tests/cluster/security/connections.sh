#!/bin/bash
# Whoever connects to the sockets of rmd, and says nothing, nonsense or too much, keeps nobody else out and fills no log.
# limit: 360
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2

# A user who holds connections to the local socket, silent or greeted, as many as there are: root and other users are served; the user
# is told why there are no more for him.
scenario "silent clients"
# served WHO CMD...: within 2 s and with exit code 0.
served() {
    local who=$1 began=$EPOCHREALTIME
    shift
    "$@" >"$work/answer" 2>&1 || fail "$who is not served: $(head -n 1 "$work/answer")"
    see "$who is served within $(msec_since "$began") ms"
}
as alice n1 "$programs/badclient" silent 200 6 >"$work/silent" 2>&1 &
holder=$!
until_true 20 test -s "$work/silent" || fail "alice's connections were never all made"
served "root beside 200 silent connections of alice's" rmctl status
served "bob beside them" as bob n1 rmctl list-jobs
served "alice herself" as alice n1 rmctl list-jobs
wait "$holder"
as bob n1 "$programs/badclient" greeted 1100 8 >"$work/greeted" 2>/dev/null &
holder=$!
until_true 60 test -s "$work/greeted" || fail "bob's connections were never all made"
served "root beside 1100 greeted connections of bob's" rmctl status
served "alice beside them" as alice n1 rmctl list-jobs
as bob n1 rmctl status >"$work/answer" 2>&1 && fail "bob has one connection more than he may"
see "bob himself: $(head -n 1 "$work/answer")"
grep -q '64 connections' "$work/answer" || fail "bob is not told why: $(head -n 1 "$work/answer")"
wait "$holder"
served "bob, when they have gone" as bob n1 rmctl status
lines=$(bed_do logs n1 | wc -l)
((lines < 300)) || fail "the log has $lines lines of it"
see "the log has $lines lines"

# Strangers who connect to the peers' port without end: a node that joins gets in, and the log does not grow with each of them.
scenario "strangers at the port of peers"
before=$(bed_do logs n1 | wc -l)
on n2 "$programs/badclient" strangers 10.77.0.1 10 >"$work/strangers" &
strangers=$!
sleep 2
bed_do restart-rmd n2 --kill >/dev/null 2>&1 || fail "rmd of n2 does not start again"
until_true 8 all_joined || fail "n2 does not get in beside strangers"
wait "$strangers"
lines=$(($(bed_do logs n1 | wc -l) - before))
see "$(<"$work/strangers") strangers, $lines lines in the log"
(($(<"$work/strangers") > 500)) || fail "too few strangers to tell"
((lines < 100)) || fail "the log has $lines lines of them"

# Bytes that are not ours, on every socket: refused with a line in the log, and rmd goes on.
scenario "wrong bytes"
log_lines() {
    bed_do logs "$1" | wc -l
}

# throw WHAT NODE CMD...: CMD sends; then the log must have a new line, and rmd be there.
throw() {
    local what=$1 node=$2 before pid after
    shift 2
    before=$(log_lines n1)
    pid=$(on n1 cat /run/testbed-rmd.pid)
    on "$node" timeout 20 "$@" >"$work/answer" 2>&1
    if ! until_true 20 eval "(( \$(log_lines n1) > $before ))"; then fail "$what: no line in the log"; fi
    after=$(on n1 cat /run/testbed-rmd.pid)
    rmd_runs n1 && [[ $pid == "$after" ]] || fail "$what: rmd is gone"
    see "$what: $(bed_do logs n1 | tail -n +$((before + 1)) | grep -m 1 -iE 'refus|drop|clos|wrong|bad|not|invalid|fail|large|magic|tls|peer' || bed_do logs n1 | tail -n 1)"
}

local_socket=UNIX-CONNECT:/run/rmd/rmd.sock
peer_socket=TCP:10.77.0.1:7700
start live n2 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
send='printf "$1" | socat -u - "$2"'
throw "local socket: wrong magic" n1 sh -c "$send" sh 'GET / HTTP/1.0\r\n\r\n' "$local_socket"
throw "local socket: oversized frame" n1 sh -c "$send" sh 'RML1\377\377\377\377aaaa' "$local_socket"
throw "local socket: truncated message" n1 sh -c "$send" sh 'RML1\000\000\000\004\012\377\377\377' "$local_socket"
throw "local socket: a frame cut short" n1 sh -c "$send" sh 'RML1\000\000\001\000aaaa' "$local_socket"
throw "local socket: noise" n1 sh -c 'head -c 1000000 /dev/urandom | socat -u - "$1"' sh "$local_socket"
throw "local socket: a peer's frame" n1 sh -c "$send" sh 'RMP1\000\000\000\000' "$local_socket"
throw "peer socket: no TLS" n2 sh -c "$send" sh 'GET / HTTP/1.0\r\n\r\n' "$peer_socket"
throw "peer socket: noise" n2 sh -c 'head -c 100000 /dev/urandom | socat -u - "$1"' sh "$peer_socket"
identity=$(on n1 sed -n 's/^name *= *//p' /etc/rmd/rmd.conf | head -n 1)
tls='{ printf "$3"; sleep 1; } | openssl s_client -quiet -tls1_3 -psk "$1" -psk_identity "$2" -connect 10.77.0.1:7700'
throw "peer socket: wrong key" n2 sh -c "$tls" sh 00112233445566778899aabbccddeeff "$identity" x
throw "peer socket: a certificate instead of the key" n2 sh -c 'sleep 1 | openssl s_client -quiet -tls1_3 -connect 10.77.0.1:7700'
throw "peer socket: TLS 1.2" n2 sh -c 'sleep 1 | openssl s_client -quiet -tls1_2 -connect 10.77.0.1:7700'
key=$(on n1 cat /etc/rmd/cluster.key)
throw "peer socket: our key, wrong magic" n2 sh -c "$tls" sh "$key" "$identity" 'RML1\000\000\000\001a'
throw "peer socket: our key, oversized frame" n2 sh -c "$tls" sh "$key" "$identity" 'RMP1\377\377\377\377a'
throw "peer socket: our key, truncated message" n2 sh -c "$tls" sh "$key" "$identity" 'RMP1\000\000\000\004\012\377\377\377'

# Another user at what belongs to root, which is all but what users ask for jobs and for metrics (web/hostile); and many connections that say
# nothing.
for socket in $(on n1 find /run/rmd -type s ! -name rmd.sock ! -name web.sock); do
    as alice n1 socat -u OPEN:/dev/null "UNIX-CONNECT:$socket" 2>"$work/refused" && fail "alice can connect to $socket"
    see "alice at $socket: $(sed 's/.*: //' "$work/refused" | tail -n 1)"
    throw "capsule socket: noise" n1 sh -c 'head -c 10000 /dev/urandom | socat -u - "UNIX-CONNECT:$1"' sh "$socket"
done
as alice n1 bash -c 'for ((i = 0; i < 300; i++)); do socat -u UNIX-CONNECT:/run/rmd/rmd.sock OPEN:/dev/null & done; sleep 2; kill $(jobs -p); wait' 2>/dev/null
must "rmd does not answer after 300 silent connections" rmctl status >/dev/null
must "n2 is lost" until_true 10 all_joined
same "the job" "$(q job live state)" RUNNING
move live 1 "$(a_node_but "$(q where live 1)")"
release live
finish live
ended_well live hash
