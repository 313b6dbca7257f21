#!/bin/bash
# Nobody sees what the cluster does, or everybody sees whose work it is: metrics of each node and of the cluster count what has happened, once each,
# also when a node is lost and when another node leads; nothing that users or administrators write is in them, and in the page only for those whom it concerns.
# limit: 120
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

secret=s3cret
places=(/run/rmd/web.sock 7701)

# get NODE PATH [ACCEPT]
get() {
    on "$1" "$programs/http" get /run/rmd/web.sock "${@:2}"
}
# figure NAME: of the cluster, in the words of the text: 'rmd_moves_total{reason="asked",result="done"}'
figure() {
    get "$(q leader)" /metrics/cluster | awk -v name="$1" 'index($0, name " ") == 1 { print $NF }'
}
figure_is() {
    [[ $(figure "$1" 2>/dev/null) == "$2" ]]
}
# all_texts: all that any endpoint of any node says, in each format and on each way.
all_texts() {
    local node place path accept
    for node in $(nodes); do
        [[ $node != "${lost:-}" ]] || continue
        for place in "${places[@]}"; do
            for path in / /metrics /metrics/cluster /metrics/nothing; do
                for accept in text/plain application/openmetrics-text; do
                    echo "== $node $place $path $accept"
                    on "$node" "$programs/http" get "$place" "$path" "$accept" 2>&1
                done
            done
        done
    done
}

# One of the places cannot be had: rmd says so, and serves at the others.
cluster 3 --cores 4 --set "web.listen=/nonexistent/web.sock ${places[0]} 127.0.0.1:${places[1]}"
bed_do logs n1 | grep -q 'web: .*/nonexistent/web.sock.*nothing is served there' || fail "rmd does not say where it cannot listen: $(bed_do logs n1 | grep web)"
as alice n1 mkdir "/home/alice/$secret-directory"
settings=("${secret}_VARIABLE=$secret-value")
start "$secret-name" n1 --wdir "/home/alice/$secret-directory" --group-size 1 -n 2 --on-node-loss restart "$programs/spin" \
    --stop-file="$(stop_file s)" "--$secret-argument"
running "$secret-name"
number=$(job "$secret-name")
from=$(q where "$secret-name" 1)
move "$secret-name" 1 "$(a_node_but "$from")"
must "the move is not counted" until_true 10 figure_is 'rmd_moves_total{reason="asked",result="done"}' 1
same "freezes" "$(figure rmd_move_freeze_seconds_count)" 1
# Another node counts this, and reports it when its time comes.
must "jobs that have waited: $(figure rmd_job_waiting_seconds_count)" until_true 10 figure_is rmd_job_waiting_seconds_count 1
must "no checkpoint" rmctl checkpoint-job "$number" >/dev/null
must "the checkpoint is not counted" until_true 10 figure_is 'rmd_checkpoints_total{result="done"}' 1
must "the pause is not counted" until_true 10 figure_is rmd_checkpoint_pause_seconds_count 1
see "$(get "$(q leader)" /metrics/cluster | grep -c '^[^#]') series of the cluster, $(get n1 /metrics | grep -c '^[^#]') of a node"

# --- who answers, and whom ---
leader=$(q leader)
for node in $(nodes); do
    want=503
    [[ $node != "$leader" ]] || want=200
    same "$node: /metrics/cluster" "$(on "$node" "$programs/http" status 7701 /metrics/cluster)" "$want"
    same "$node: /metrics" "$(as bob "$node" "$programs/http" status /run/rmd/web.sock /metrics)" 200
done
for method in POST PUT DELETE; do same "$method" "$(on n1 "$programs/http" status 7701 /metrics "$method")" 405; done
# A page from elsewhere, of another site or of another port, may lead to rmd's page, and takes nothing in its reader's name. Without a session a page of rmd's own gets 401.
for site in cross-site same-site anything; do
    for path in /stream /session; do same "$path, asked for by a page of $site" "$(on n1 "$programs/http" status 7701 "$path" GET "Sec-Fetch-Site: $site")" 403; done
    same "a link to the page, $site" "$(on n1 "$programs/http" status 7701 / GET "Sec-Fetch-Site: $site")" 200
done
for site in same-origin none; do same "/stream, $site" "$(on n1 "$programs/http" status 7701 /stream GET "Sec-Fetch-Site: $site")" 401; done
same "the mode of the socket" "$(on n1 stat -c %a:%U /run/rmd/web.sock)" 666:root
[[ $(on n1 ss -Hltn 'sport = 7701') == *127.0.0.1:7701* ]] || fail "it listens elsewhere, too: $(on n1 ss -Hltn)"

# --- secrets ---
on "$asker" sh -c "echo '# $secret' >/home/rmd/availability"
rmctl report-health n2 warn --reason "$secret fan" >/dev/null
user=bob
as bob n2 sh -c "printf 'n1:0\nn2:0 # $secret\nn3:0\n' >/home/bob/$secret-file"
start "$secret-waits" n2 --availability "/home/bob/$secret-file" -n 1 true
must "the second job does not wait" q state "$secret-waits" PENDING 10 >/dev/null
user=alice
all_texts >"$work/texts"
! grep -a "$secret" "$work/texts" || fail "the metrics have what users and administrators write"
! grep -aE 'alice|bob|spin|/home' "$work/texts" || fail "the metrics name users, programs or directories"
rmctl show-job "$number" --json >"$work/texts"
rmctl list-nodes --json >>"$work/texts"
for planted in name argument directory fan; do
    grep -aq "$secret.*$planted" "$work/texts" || fail "$secret ... $planted was never planted"
done
# The page's stream: the same to each as rmctl says.
on n1 "$programs/http" stream "${places[0]}" 1 >"$work/root"
as alice n1 "$programs/http" stream "${places[0]}" 1 >"$work/alice"
in_node n1 -- setpriv --reuid 65534 --regid 65534 --clear-groups "$programs/http" stream "${places[0]}" 1 </dev/null >"$work/nobody"
for planted in name argument directory; do
    grep -aq "$secret-$planted" "$work/root" && grep -aq "$secret-$planted" "$work/alice" || fail "root or the owner do not see $secret-$planted in the page"
    ! grep -a "$secret-$planted" "$work/nobody" || fail "nobody's page has $secret-$planted"
done
! grep -aE 'alice|bob' "$work/nobody" || fail "nobody's page names users"
! grep -a "$secret-waits" "$work/alice" || fail "alice's page has a job of bob's"
grep -aq '"jobs_pending":1' "$work/nobody" || fail "nobody's page does not count jobs"
for path in /stream /session; do same "$path over TCP, without a session" "$(on n1 "$programs/http" status 7701 "$path")" 401; done
rmctl report-health n2 ok >/dev/null

# --- a node is lost: its work is counted, by one of the others ---
lost=$(nodes | grep -vx "$(q leader)" | head -n 1)
asker=$(nodes | grep -vx "$lost" | head -n 1)
q place "$secret-name" | grep -q " $lost\$" || move "$secret-name" 1 "$lost"
attempt=$(q job "$secret-name" attempt)
bed_do power-off "$lost"
must "the job does not run again" until_true 40 eval '(($(q job "$secret-name" attempt) > attempt)) && [[ $(q job "$secret-name" state) == RUNNING ]]'
must "the recovery is not counted" until_true 10 figure_is 'rmd_recoveries_total{result="done"}' 1
[[ $(figure rmd_work_lost_seconds_total) != 0 ]] || fail "no work was lost"
see "recovery: $(figure rmd_recovery_seconds_sum) s; work lost: $(figure rmd_work_lost_seconds_total) s"
must "the lost node is not in the metrics" until_true 10 figure_is 'rmd_nodes{state="DOWN"}' 1

# --- the next leader goes on counting, and counts nothing of before once more ---
before=$EPOCHREALTIME leader=$(q leader)
bed_do restart-rmd "$leader"
must "$leader is not back" back "$leader" "$before"
moves() {
    figure 'rmd_moves_total{reason="asked",result="done"}'
}
must "nobody has the metrics of the cluster" until_true 10 eval '[[ $(moves 2>/dev/null) ]]'
before=$(moves)
move "$secret-name" 1 "$(nodes | grep -vxe "$lost" -e "$(q where "$secret-name" 1)")"
must "the next leader does not count one move: it had $before, and has $(moves)" until_true 10 eval '(($(moves 2>/dev/null || echo 0) == before + 1))'
user=bob
on "$asker" rmctl cancel-job "$(job "$secret-waits")" >/dev/null
finish "$secret-waits"
user=alice
on "$asker" touch "$(stop_file s)"
finish "$secret-name"
