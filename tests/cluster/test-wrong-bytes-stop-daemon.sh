#!/bin/bash
# Bytes that are not ours, on every socket: refused with a line in the log, and rmd goes on.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

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
    if ! until_true 5 eval "(( \$(log_lines n1) > $before ))"; then fail "$what: no line in the log"; fi
    after=$(on n1 cat /run/testbed-rmd.pid)
    rmd_runs n1 && [[ $pid == "$after" ]] || fail "$what: rmd is gone"
    see "$what: $(bed_do logs n1 | tail -n +$((before + 1)) | grep -m 1 -iE 'refus|drop|clos|wrong|bad|not|invalid|fail|large|magic|tls|peer' || bed_do logs n1 | tail -n 1)"
}

local_socket=UNIX-CONNECT:/run/rmd/rmd.sock
peer_socket=TCP:10.77.0.1:7700

cluster 2 --cores 2
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

# Another user at what belongs to root; and many connections that say nothing.
for socket in $(on n1 find /run/rmd -type s ! -name rmd.sock); do
    as alice n1 socat -u OPEN:/dev/null "UNIX-CONNECT:$socket" 2>"$work/refused" && fail "alice can connect to $socket"
    see "alice at $socket: $(sed 's/.*: //' "$work/refused" | tail -n 1)"
    throw "capsule socket: noise" n1 sh -c 'head -c 10000 /dev/urandom | socat -u - "UNIX-CONNECT:$1"' sh "$socket"
done
as alice n1 bash -c 'for ((i = 0; i < 300; i++)); do socat -u UNIX-CONNECT:/run/rmd/rmd.sock OPEN:/dev/null & done; sleep 2; kill $(jobs -p); wait' 2>/dev/null
must "rmd does not answer after 300 silent connections" rmctl status >/dev/null
all_joined || fail "n2 is lost"
same "the job" "$(q job live state)" RUNNING
move live 1 "$(a_node_but "$(q where live 1)")"
release live
finish live
ended_well live hash
