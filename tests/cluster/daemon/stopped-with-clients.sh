#!/bin/bash
# An rmd that is told to stop while clients are connected ends by itself and well: with status 0, after which systemd neither starts it again nor
# calls it failed. The job that runs is taken over by the next one.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# stops WHAT [COMMAND]: an rmd is told to stop once the command is connected to it as well.
stops() {
    local status
    status=$(on n1 sh -c '/usr/bin/rmd --foreground >>/var/log/rmd.log 2>&1 & pid=$!
        until rmctl list-nodes >/dev/null 2>&1; do sleep 0.1; done
        [ -z "$1" ] || sh -c "exec $1" >/dev/null 2>&1 & client=$!
        sleep 1 # it is connected, and the front end of the job is again
        kill -TERM "$pid"; wait "$pid"; echo $?
        kill "$client" 2>/dev/null; wait "$client" 2>/dev/null; :' sh "${2:-}")
    same "exit status of rmd with $1" "$status" 0
}

cluster 1 --cores 2
start live n1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live
bed_do stop-rmd n1 || fail "rmd does not stop"
stops "a front end"
stops "a front end and one that follows events" "rmctl events --follow"
stops "a front end and one that waits for an event" "rmctl events --wait job-ended"

must "rmd does not start" bed_do start-rmd n1
release live
finish live
ended_well live hash
same "the attempt of the job" "$(q job live attempt)" 1
