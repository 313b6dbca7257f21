#!/bin/bash
# The MPI daemon of a group ends before it has connected to mpirun, which cannot notice that by itself: rm-agent has to tell it. So it does when the group,
# or its head, has moved meanwhile, or rmd was started again: the job fails at once, with the daemon's exit code and the same words as without a move.
# One that crashes when all its ranks have ended well takes nothing from the job.
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# begin NAME: the daemon of group 1 waits.
begin() {
    start "$1" n1 --group-size 1 -n 2 "$programs/spin" --seconds=100
    must "$1 does not start" q state "$1" RUNNING 20 >/dev/null
    until_true 20 waits "$1" || fail "the daemon of group 1 of $1 has not begun"
}
waits() {
    on n1 test -e "/home/alice/waits.$(job "$1")"
}

# elsewhere NAME GROUP: it moves.
elsewhere() {
    move "$1" "$2" "$(a_node_but "$(q where "$1" "$2")")"
}

fail_now() {
    on n1 touch "/home/alice/fail.$(job "$1")"
}

# failed NAME: as the first job, which nobody has moved.
failed() {
    local since=$EPOCHREALTIME words
    finish "$1" 20
    words=$(tr -d '\0' <"$work/$1.err" | sed 's/[0-9][0-9]*/N/g')
    see "$1: exit code $rc after $(msec_since "$since") ms, $(q moves "$1" | grep -c DONE) moves: $(q job "$1" state) $(q job "$1" reason)"
    same "its exit code" "$rc" 7
    same "its state" "$(q job "$1" state)" FAILED
    same "its reason" "$(q job "$1" reason)" "$reason"
    [[ $1 == still ]] || same "what it says" "$words" "$still_words"
    still_words=$words
}

cluster 3 --cores 4
bed_do exec n1 -- sh -c 'cat >/home/alice/daemon && chmod 755 /home/alice/daemon' <<'END'
#!/bin/sh
case $(hostname) in
*g1) touch "$HOME/waits.$RM_JOB_ID" && until [ -e "$HOME/fail.$RM_JOB_ID" ]; do sleep 0.1; done && exit 7 ;;
*) exec prted "$@" ;;
esac
END
settings=(PRTE_MCA_prte_launch_agent=/home/alice/daemon)
reason=''

begin still
fail_now still
failed still

begin group
elsewhere group 1
fail_now group
failed group

begin often
elsewhere often 1
elsewhere often -1
elsewhere often 1
elsewhere often 1
fail_now often
failed often

# It ends while nobody there looks.
begin unseen
elsewhere unseen 1
node=$(q where unseen 1)
bed_do stop-rmd "$node" --kill
fail_now unseen
sleep 1
bed_do start-rmd "$node"
failed unseen

# The head's rmd has heard that the group knows, and forgotten it.
begin forgotten
node=$(q where forgotten -1)
bed_do restart-rmd "$node" --kill
must "rmd on $node does not come back" back "$node"
elsewhere forgotten 1
fail_now forgotten
failed forgotten

# PRRTE's own does so now and then, in a job whose ranks have started others (MPI_Comm_spawn).
bed_do exec n1 -- sh -c 'cat >/home/alice/crashes && chmod 755 /home/alice/crashes' <<'END'
#!/bin/sh
prted "$@"
kill -SEGV $$
END
settings=(PRTE_MCA_prte_launch_agent=/home/alice/crashes)
run late n1 --group-size 1 -n 2 "$programs/exitcodes" ok
see "daemons that crash when all is over: exit code $rc, $(q job late state) $(q job late reason)"
same "the state of a job whose daemons crash when all is over" "$(q job late state) $rc" "COMPLETED 0"
run late-failure n1 --group-size 1 -n 2 "$programs/exitcodes" exit 1 7
same "the state of one that has failed" "$(q job late-failure state) $rc" "FAILED 7"
