#!/bin/bash
# What a job is launched with, passwords in its environment as well, is only where root alone can read it, on the nodes that need it, and goes with
# the job. While the job waits it outlives restarts and the loss of one copy; a job all of whose copies are lost fails and says so.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

secret=hunter2-$RANDOM-$RANDOM
# submit NAME: a job of alice's at n2 that waits, with a password, 600 kB more of environment, a word of 5,000 letters and a folder of 900.
submit() {
    # shellcheck disable=SC2016 # the node's shell expands it
    as alice n2 bash -c 'd=$(printf "d%.0s" {1..150}) && mkdir -p $d/$d/$d/$d/$d/$d && cd $d/$d/$d/$d/$d/$d && export PASSWORD=$2
        x=$(head -c 100000 /dev/zero | tr "\0" x) && export A=$x B=$x C=$x D=$x E=$x F=$x
        exec rm-mpirun --job-name "$1" --group-size 1 -n 2 --detach sh -c "echo \$PASSWORD \${#1} \${#PWD} \${#F}" sh "$(printf "w%.0s" {1..5000})"' \
        bash "$1" "$2" >/dev/null 2>"$work/$1.err" || fail "job $1 is not taken: $(<"$work/$1.err")"
}
# Files with the password in them, one a line. The tool's own disk of a node is not looked at, only rmd's directories.
found() {
    local node
    for node in n1 n2; do on $node grep -rlF "$1" /var/lib/rmd /run/rmd 2>/dev/null | sed "s/^/$node /"; done
}
copies() {
    local node
    for node in n1 n2; do on $node find /var/lib/rmd/launch -type f 2>/dev/null | sed "s/^/$node /"; done
}
count_copies() {
    (($(copies | wc -l) == $1))
}
# The output of job NAME, which has ended or will: what its two ranks have printed.
output() {
    as alice n2 rmctl attach-job "$(job "$1")" 2>/dev/null | sort | uniq -c | xargs
}
drain() {
    must "the nodes cannot be drained" on n1 rmctl drain-node n1 n2 --reason "so that jobs wait"
}

cluster 2 --cores 2
expected="2 $secret 5000 $(as alice n2 sh -c 'echo $((${#HOME} + 6 * 151))') 100000"
drain
submit waits "$secret"
same "files with the password that are no copies" "$(found "$secret" | grep -v ' /var/lib/rmd/launch/')" ""
must "no copy at both nodes: $(copies)" until_true 10 count_copies 2
for node in n1 n2; do
    same "modes on $node" "$(on $node sh -c 'stat -c "%U %a" /var/lib/rmd/launch /var/lib/rmd/launch/*' | xargs)" "root 700 root 600"
    if on $node setpriv --reuid=bob --clear-groups find /var/lib/rmd/launch 2>/dev/null | grep -q .; then fail "bob sees them on $node"; fi
done
on n1 rmctl show-job --json "$(job waits)" >"$work/shown"
if grep -qE "$secret|w{1200}|body_digest\": \"." "$work/shown"; then fail "show-job: $(head -c 300 "$work/shown")"; fi
grep -q 'www\.\.\."' "$work/shown" || fail "show-job does not say that the command line is cut: $(head -c 2000 "$work/shown")"

# Both are killed, and the leader has lost its copy.
bed_do stop-rmd n1 --kill
bed_do stop-rmd n2 --kill
on n1 sh -c 'rm /var/lib/rmd/launch/*'
bed_do start-rmd n1
bed_do start-rmd n2
must "they do not join again" until_true 20 all_joined
must "the leader has not got a copy again" until_true 10 count_copies 2
# And what it has is damaged.
on n1 sh -c 'for f in /var/lib/rmd/launch/*; do echo "PASSWORD=forged" >$f; done'
rmctl resume-node n1 n2
must "the job does not end" q state waits COMPLETED 30 >/dev/null
printed=$(output waits)
same "what its ranks print" "$printed" "$expected"
must "copies are kept: $(copies)" until_true 20 count_copies 0
same "files with the password" "$(found "$secret" | grep -v /spool/)" ""
see "the job was launched from the copy at n2, and printed: $printed"

drain
submit lost "$secret"
must "no copy at both nodes" until_true 10 count_copies 2
on n1 sh -c 'rm /var/lib/rmd/launch/*'
on n2 sh -c 'rm /var/lib/rmd/launch/*'
rmctl resume-node n1 n2
must "it does not fail" q state lost FAILED 30 >/dev/null
see "$(q job lost reason), exit code $(q job lost exit_code)"
[[ $(q job lost reason) == *"environment and command line are lost"* ]] || fail "its reason"
(($(q job lost exit_code) != 0)) || fail "its exit code is 0"
output lost >/dev/null || :
