#!/bin/bash
# A sensor that hangs, dies or floods is a fault that rmctl status shows: rmd goes on, jobs go on, and other sensors answer. It is asked again,
# nothing of it is left, and when it warns or says critical again, that is shown.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2 --set "sensors.load = program disk hwmon" --set sensors.interval=1s --set sensors.readings=2 --set sensors.hold=2s \
    --set sensors.program_args="/opt/check now" --set sensors.program_timeout=1s --set sensors.disk_high=101 --set sensors.disk_low=100.5
# As nobody, who can only read what is in /opt.
cat >"$work/check" <<'END'
#!/bin/sh
case $(cat /opt/how) in
well) echo "all fans turn | fans=4" ;;
warns) echo "fan 2 is slow"; exit 1 ;;
critical) echo "fan 2 stands still, user $(id -u), $1"; exit 2 ;;
unknown) echo "no controller"; exit 3 ;;
hangs) trap '' TERM INT HUP; sleep 3600 & sleep 3601; sleep 3602 ;;
dies) kill -SEGV $$ ;;
floods) exec cat /dev/zero ;;
esac
END
chmod 755 "$work/check"
on n1 mkdir -p /opt
on n1 sh -c 'echo well >/opt/how.new && chmod 644 /opt/how.new && mv /opt/how.new /opt/how'
bed_do copy "$work/check" n1:/opt
on n1 chown root:root /opt/check

status() {
    rmctl status
}
shows() {
    grep -qE -- "$1" <<<"$(status)"
}
# how WHAT: what the program does from now on.
how() {
    on n1 sh -c 'echo "$1" >/opt/how' sh "$1"
}
# wants LINE WHY: it is shown in time.
wants() {
    until_true 30 shows "$1" || fail "$2: $(status)"
    see "$(status | grep -E -m 1 -- "$1")"
}
pid=$(on n1 cat /run/testbed-rmd.pid)
start live n1 -n 1 "$programs/memory" --mb=20 --stop-file="$(stop_file live)"
running live 30

wants '^Sensor program: +ok for .*: all fans turn$' "the program's status is not shown"
wants '^Sensor disk: +ok for .*/: [0-9.]+ % \(low threshold 100.5\)' "the disk is not shown"
# Some machines have temperatures, and others say so.
wants "^(Sensor hwmon: +ok|Warning: .*sensor 'hwmon': no temperatures)" "nothing of hwmon"

how warns
wants '^Sensor program: +warn for .*: fan 2 is slow$' "a warning is not shown"
on n1 grep -q "sensor 'program' says warn: fan 2 is slow" /var/log/rmd.log || fail "it is not logged"

# Faults: each is told, the word stays as it was, and the disk is asked on.
hangs_on() {
    on n1 pgrep -f 'sleep 360[0-2]' >/dev/null
}
how hangs
wants "^Warning: .*sensor 'program': killed after 1.0 s" "a hung program is not told of"
shows '^Sensor program: +warn for' || fail "a fault has changed the status: $(status)"
answer=$(date +%s%N)
for ((i = 0; i < 20; i++)); do status >/dev/null || fail "rmd does not answer"; done
see "20 answers in $((($(date +%s%N) - answer) / 1000000)) ms"
how floods
must "something of the hung program is left" until_true 20 eval '! hangs_on'
wants "^Warning: .*sensor 'program': /opt/check: killed: it wrote more than 64 KiB" "a flood is not told of"
how dies
wants "^Warning: .*sensor 'program': /opt/check: killed by signal 11" "a crash is not told of"
how unknown
wants "^Warning: .*sensor 'program': /opt/check: exit status 3: no controller" "unknown is not told of"
shows '^Sensor disk: +ok' || fail "another sensor does not go on: $(status)"
on n1 sh -c '[ $(grep -c "sensor .program.: killed after" /var/log/rmd.log) -lt 10 ]' || fail "the log is filled"

# It answers again, at once with the worst.
how critical
wants '^Sensor program: +critical for .*: fan 2 stands still, user 65534, now$' "critical is not shown"
shows "^Warning: .*sensor 'program'" && fail "the fault is still shown: $(status)"
how well
wants '^Sensor program: +ok for .*: all fans turn$' "it does not get better"
grep -q '"name": *"program"' <<<"$(rmctl status --json)" || fail "nothing of it in JSON"

same "rmd's pid" "$(on n1 cat /run/testbed-rmd.pid)" "$pid"
rmd_runs n1 || fail "rmd has ended"
release live
finish live
ended_well live good
