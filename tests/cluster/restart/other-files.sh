#!/bin/bash
# A file that another one was put in the place of since the checkpoint is not the job's any more: a restart leaves it alone, and waits with the reason, and nothing that was saved goes, whether
# the job was stopped or lost its node. Who lets it go on says when the file is back, or that the other one counts; what may pass is tried again without being asked.
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2 --set cluster.node_timeout=2s
must "there are no three voters" until_true 30 voters_up
must "no job may be saved" until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true
log=/home/alice/log
alice() { as alice n1 "$@"; }
# lines NAME: a job that adds a numbered line to $log ten times a second, which it has open, or opened in another way, and to $log.closed, which it opens for each,
# and so to $log.theirs once there is $log.go.
# shellcheck disable=SC2016 # the job's shell expands it
lines() {
    alice sh -c "rm -f $log $log.*"
    start "$1" n1 --on-node-loss restart --checkpoint 1h --group-size 1 -n 1 sh -c 'exec 3'"$2$log"'; echo run: running; n=0
        while [ ! -e '"$(stop_file "$1")"' ]; do n=$((n + 1)); echo line $n >&3; echo line $n >>'"$log.closed"'
            [ ! -e '"$log.go"' ] || echo line $n >>'"$log.theirs"'; sleep 0.1; done; echo good'
    running "$1"
    must "$1 writes nothing" until_true 20 written 5
}
written() { (($(alice grep -c . "$log") >= $1)); }
saved() {
    rmctl checkpoint-job "$(job "$1")" "${@:2}" --timeout 60 >"$work/said" 2>&1 || fail "$1 is not saved: $(<"$work/said")"
}
# waits NAME WHY: it is held, with the checkpoint that it has.
waits() {
    must "$1 does not wait: $(q job "$1" state), $(q job "$1" reason)" q state "$1" PENDING 60 >/dev/null
    until_true 20 says "$1" "$2" || fail "$1: why it waits: '$(q job "$1" reason)', not '$2'"
    see "$1: $(q job "$1" reason)"
    rmctl list-checkpoints --no-header "$(job "$1")" | grep -q ' DONE ' || fail "$1 has no checkpoint any more"
}
says() { [[ $(q job "$1" reason) == *"$2"* ]]; }
# What may pass is tried three times by itself, and meanwhile there is nothing to be asked for.
let_go_on() {
    rmctl restart-job "$(job "$1")" "${@:2}" 2>"$work/said" || [[ $(q job "$1" state) == RUNNING ]]
}
goes_on() {
    until_true 20 let_go_on "$@" || fail "$1 is not let go on: $(<"$work/said")"
    must "$1 does not run again: $(q job "$1" state), $(q job "$1" reason)" q state "$1" RUNNING 60 >/dev/null
}
# ends NAME: every number once, in order.
ends() {
    release "$1"
    finish "$1"
    ended_well "$1" '^good$'
    for file in "$log" "$log.closed"; do
        alice sh -c "awk '\$2 != NR { print; exit 1 }' $file" >"$work/wrong" || fail "$1: a line of $file is lost or twice: $(<"$work/wrong")"
    done
}
rotate() {
    alice sh -c "mv $log $log.1; seq 3000 >$log"
}
untouched() {
    same "lines of the other file after $1" "$(alice sh -c "seq 3000 | cmp - $log && echo same")" same
}

ways=(_ '>>' '>' '<>')
for number in $(thorough "1 2 3" $((1 + RANDOM % 3))); do
    name=stopped$number
    lines "$name" "${ways[number]}"
    saved "$name" --stop
    must "$name does not stop" q state "$name" PENDING 30 >/dev/null
    case $number in
    1) rotate ;;
    2) alice sh -c "rm $log; seq 3000 >$log" ;;
    3) alice sh -c "seq 3000 >$log.new; mv $log $log.1; mv $log.new $log" ;;
    esac
    rmctl restart-job "$(job "$name")"
    waits "$name" "$log: it is another file"
    untouched "$name"
    if ((number == 2)); then
        goes_on "$name" --other-files
        release "$name"
        finish "$name"
        ended_well "$name" '^good$'
    else
        # Notes that somebody has added meanwhile are not in the files that go back, and not lost.
        alice sh -c "echo note >>$log.1; echo note >>$log.closed; mv $log.1 $log"
        goes_on "$name"
        for file in "$log" "$log.closed"; do
            must "what was added to $file after the job had stopped is lost" alice sh -c "grep -qx note $file.cut-*"
        done
        ends "$name"
    fi
done

# Something else has the name of its socket.
start named n1 --checkpoint 1h --group-size 1 -n 1 python3 -u -c 'import os, socket, sys, time
bound = socket.socket(socket.AF_UNIX)
bound.bind("/home/alice/bound")
print("run: running")
while not os.path.exists(sys.argv[1]): time.sleep(0.05)
print("good")' "$(stop_file named)"
running named
saved named --stop
must "named does not stop" q state named PENDING 30 >/dev/null
alice sh -c 'rm /home/alice/bound; echo other >/home/alice/bound'
rmctl restart-job "$(job named)" --other-files
waits named '/home/alice/bound: a file stands where the job had a socket'
same "the file" "$(alice cat /home/alice/bound)" other
alice rm /home/alice/bound
goes_on named
saved named --stop
must "named does not stop again" q state named PENDING 30 >/dev/null
must "its socket has no name any more" alice test -S /home/alice/bound
goes_on named
must "its socket was not bound again" alice test -S /home/alice/bound
release named
finish named
ended_well named '^good$'

# It works in another directory, its program was copied over, its log written anew: it waits. What others have added to its log, and their chmod, does not matter.
dir=/home/alice/several
alice sh -c "mkdir $dir; echo first >$dir/log; cp /usr/bin/python3 $dir/program; cp -p $dir/program $dir/program.bak"
start several n1 --checkpoint 1h --group-size 1 -n 1 --wdir "$dir" "$dir/program" -u -c 'import os, sys, time
log = os.open("log", os.O_WRONLY | os.O_APPEND)
header = os.open("header", os.O_RDWR | os.O_CREAT)
listed = os.open(".", os.O_RDONLY)
os.write(header, b"0" * 10000)
print("run: running")
n = 0
while not os.path.exists(sys.argv[1]):
    n += 1
    os.write(log, b"line %d\n" % n)
    os.write(header, b"data")
    os.pwrite(header, b"%09d" % n, 0)
    os.close(os.open("made%d" % (n % 2), os.O_WRONLY | os.O_CREAT, dir_fd=listed))
    time.sleep(0.05)
print("good")' "$(stop_file several)"
running several
saved several --stop
must "several does not stop" q state several PENDING 30 >/dev/null
alice sh -c "mv $dir $dir.1; mkdir $dir"
rmctl restart-job "$(job several)"
waits several "$dir: it is another directory"
same "what was made in the other directory" "$(alice ls "$dir")" ''
alice sh -c "rmdir $dir; mv $dir.1 $dir; cat /usr/bin/true >$dir/program"
rmctl restart-job "$(job several)"
waits several "$dir/program: its contents were changed"
alice sh -c "cd $dir; cat program.bak >program; touch -r program.bak program; cp -p log log.bak; seq 3000 >log"
rmctl restart-job "$(job several)"
waits several "$dir/log: its contents were changed"
same "the log that was written anew" "$(alice sh -c "seq 3000 | cmp - $dir/log && echo same")" same
alice sh -c "cd $dir; cat log.bak >log; echo note >>log; chmod 600 log; chmod 711 .; mv header h; ln -s h header; printf 1 | dd of=h conv=notrunc 2>&1"
goes_on several
release several
finish several
ended_well several '^good$'
alice sh -c "cd $dir; grep -qx note log.cut-* && ! grep -x note log && sed -n 's/^line //p' log | awk '\$1 != NR { exit 1 }'" ||
    fail "its log: $(alice sh -c "cd $dir; ls; tail -n 3 log*" | tail -n 20 | tr '\n' '|')"
rmctl events --no-header | grep -F "job $(job several):" >"$work/told"
for file in log header; do
    grep -q "perhaps not as they were.*$dir/$file" "$work/told" || fail "no event names $file: $(<"$work/told")"
done

# It is away for a while.
lines gone '>>'
saved gone --stop
must "gone does not stop" q state gone PENDING 30 >/dev/null
alice mv "$log" "$log.1"
rmctl restart-job "$(job gone)"
waits gone "$log: No such file"
alice mv "$log.1" "$log"
goes_on gone
ends gone

# Its node is lost meanwhile.
lines lost '>>'
[[ $(q where lost 0) != n1 ]] || move lost 0 n2
# Somebody else has made one of its files after it began, and adds to it before its node is lost.
alice sh -c "echo first >$log.theirs; sleep 2; touch $log.go"
must "it does not write to the file" until_true 20 alice grep -q line "$log.theirs"
saved lost
saved lost
alice sh -c "echo note >>$log.theirs"
rotate
victim=$(q where lost 0)
bed_do power-off "$victim" >/dev/null
waits lost "$log: it is another file"
same "checkpoints" "$(rmctl list-checkpoints --no-header "$(job lost)" | grep -c ' DONE ')" 2
untouched lost
alice mv "$log.1" "$log"
goes_on lost
must "what somebody had added to a file of his own is lost" alice sh -c "grep -qx note $log.theirs.cut-*"
ends lost
bed_do power-on "$victim" >/dev/null
must "$victim is not back" until_true 60 all_joined

# What may pass is tried again, and counts as no attempt; but not for ever.
all_rmds_with_faults
lines again '>>'
saved again --stop
must "again does not stop" q state again PENDING 30 >/dev/null
faults() { for node in "${@:2}"; do on "$node" sh -c "yes move.restart.restore:fail | head -n $1 >/run/rmd/fault"; done; }
failures() { rmctl events --no-header | grep -c "job $(job again) leaves its nodes: checkpoint .* was not restored"; }
attempts=$(q job again attempt)
faults 1 n1 n2
goes_on again
tries=$(failures)
see "$tries restores failed, and attempt $(q job again attempt) after $attempts runs"
((tries == 1 || tries == 2)) || fail "$tries restores have failed"
saved again --stop
must "again does not stop" q state again PENDING 30 >/dev/null
faults 20 n1 n2 n3
rmctl restart-job "$(job again)"
waits again "tries again"
same "restores that failed" "$(($(failures) - tries))" 3
for node in $(nodes); do on "$node" rm -f /run/rmd/fault; done
goes_on again
ends again
