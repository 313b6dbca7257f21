#!/bin/bash
# A sensor of a node says that it fails: the ranks on it leave, live or at once, and nothing else begins there until it says that all is well again. What it
# has said outlasts rmd, and is taken back when rmd is started without it.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4 --set "sensors.load = program" --set sensors.interval=1s --set sensors.readings=1 --set sensors.hold=1s --set sensors.program_args=/opt/check
for n in $(nodes); do
    on "$n" sh -c 'mkdir -p /opt && echo 0 >/opt/how && printf "#!/bin/sh\necho fan 2 says so\nexit \$(cat /opt/how)\n" >/opt/check && chmod 755 /opt /opt/check && chmod 644 /opt/how'
done

# shown NODE PATTERN: list-nodes shows it so.
shown() {
    grep -qE "^$1 +.*$2" <<<"$(rmctl list-nodes)"
}
wants() {
    until_true 20 shown "$@" || fail "$1 is not shown with '$2': $(rmctl list-nodes)"
    see "$(rmctl list-nodes | grep "^$1 ")"
}
left() {
    ! grep -q " $1\$" <<<"$(q place live)"
}

start live n1 --group-size 1 -n 4 "$programs/memory" --mb=32 --stop-file="$(stop_file live)"
running live
node=$(q where live 1)
on "$node" sh -c 'echo 1 >/opt/how'
wants "$node" 'fan 2 says so'
sleep 1
same "moves because of a warning" "$(moves_of live)" 0

# As Nagios has it, 2 is critical.
on "$node" sh -c 'echo 2 >/opt/how'
begun=$EPOCHREALTIME
must "the job stays on $node" until_true 30 left "$node"
see "critical: all has left $node after $(msec_since "$begun") ms, at most 1000 ms of which until the sensor is asked"
wants "$node" 'FAILING .*fan 2 says so'
on "$node" sh -c 'echo 3 >/opt/how' # unknown: its word stays
bed_do restart-rmd "$node" || fail "rmd on $node does not start again"
must "all are not back" until_true 20 all_joined
wants "$node" 'FAILING .*fan 2 says so'

on "$node" sh -c 'echo 0 >/opt/how'
until_true 20 shown "$node" '(IDLE|MIXED)' || fail "$node is not in use again: $(rmctl list-nodes)"
on "$node" sh -c 'echo 2 >/opt/how'
wants "$node" FAILING
on "$node" sed -i 's/^load *=.*/load =/; s/^program_args.*//' /etc/rmd/rmd.conf
bed_do restart-rmd "$node" || fail "rmd on $node does not start again"
until_true 20 shown "$node" '(IDLE|MIXED)' || fail "what the sensor has said stays: $(rmctl list-nodes)"
release live
finish live
ended_well live good
