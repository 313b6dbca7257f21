#!/bin/bash
# `rm-mpirun ... | head` comes to its end, as `yes | head` does: the job is cancelled when its output has lost its reader.
# limit: 90
. "${BASH_SOURCE[0]%/*}/lib.sh"

no_ranks() {
    [[ $(on n1 "$programs/count" yes) == 0 ]]
}

cluster 1 --cores 2
# Not as fast as yes(1) writes: on a busy machine mpirun then takes what ranks write for minutes before it passes any of it on.
as alice n1 sh -c 'printf "#!/bin/sh\nwhile echo y; do sleep 0.02; done\n" >yes && chmod +x yes' || fail "no program"
begun=$EPOCHREALTIME
as alice n1 timeout 60 bash -c 'rm-mpirun --job-name unread -n 2 ./yes 2>err | head -n 3; echo "code ${PIPESTATUS[0]}"' >"$work/unread.out"
as alice n1 cat err >"$work/unread.err"
see "after $(msec_since "$begun") ms: $(tr '\n' ' ' <"$work/unread.out"), $(q job unread state): $(tail -n 1 "$work/unread.err")"
same "what came" "$(tr '\n' ' ' <"$work/unread.out")" "y y y code 141 "
same "its state" "$(q job unread state)" CANCELLED
grep -q '^rm-mpirun: standard output was closed (SIGPIPE)' "$work/unread.err" || fail "it does not say why"
must "ranks are left" until_true 10 no_ranks
