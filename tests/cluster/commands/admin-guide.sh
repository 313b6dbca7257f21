#!/bin/bash
# An administrator does what docs/admin-guide.md says, and it does not work: all of its commands are run here, in its words, and all parts of a
# configuration are read by rmd. A command of the guide that is not run here makes this fail, and so does one here that the guide does not have.
# complete: each verb has a test of its own; this is about the guide's words
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"
guide=$repo_dir/docs/admin-guide.md

# blocks LANGUAGE: the lines of the guide's blocks of that kind.
blocks() {
    awk -v begin="\`\`\`$1" '$0 == begin { on = 1; next } /^```/ { on = 0 } on' "$guide"
}
declare -A known=() ran=()
while IFS= read -r command; do known[$command]=1; done < <(blocks sh)
((${#known[@]} > 40)) || fail "only ${#known[@]} commands are found in the guide"

# does NODE COMMAND: one of the guide's, as root there; its words for a job and a checkpoint stand for $job and $checkpoint. What it prints is in $work/said.
job='' checkpoint=''
as_user=root
does() {
    local node=$1 command=$2 begun=$EPOCHREALTIME
    [[ ${known[$command]:-} ]] || fail "the guide does not have the command '$command'"
    ran[$command]=1
    command=${command//CHECKPOINT/$checkpoint}
    command=${command//JOB/$job}
    in_node "$node" --user "$as_user" -- sh -c "cd && $command" </dev/null >"$work/said" 2>&1 || fail "on $node, '$command': $(tail -n 5 "$work/said")"
    see "$node: $command ($(msec_since "$begun") ms)"
}
says() {
    grep -q -- "$1" "$work/said" || fail "it does not say '$1': $(head -n 20 "$work/said")"
}
# by_others COMMAND FILE LINE: a test that has packages runs it, since that line is there.
by_others() {
    [[ ${known[$1]:-} ]] || fail "the guide does not have the command '$1'"
    grep -qF -- "$3" "$repo_dir/$2" || fail "'$1' is not run by way of $2 any more"
    ran[$1]=1
}

by_others 'apt update' README.md '    apt update'
by_others 'apt install ./rmd_*.deb ./rmd-client_*.deb' README.md '    apt install ./rmd_*.deb ./rmd-client_*.deb'
by_others 'dpkg --configure rmd' tests/cluster/update/packages.sh '--configure rmd'

# --- the first cluster ---
cluster 4 --cores 2 --no-rmd
build=${RMD_DESTDIR:-$("$repo_dir/tools/build" --path)} || fail "no rmd"
cat >"$work/curl" <<'EOF'
#!/bin/sh
# Of curl, which nodes for tests do not have, what the guide uses.
[ "$*" = "--silent --show-error --unix-socket $4 http://localhost/metrics" ] && exec /home/rmd/t/http get "$4" /metrics
exit 2
EOF
cat >"$work/journalctl" <<'EOF'
#!/bin/sh
[ "$*" = "-u rmd" ] && exec cat /var/log/rmd.log
exit 2
EOF
chmod 755 "$work/curl" "$work/journalctl"
for node in $(nodes); do
    must "rmd cannot be installed on $node" bed_do install "$node" "$build"
    on "$node" sh -c 'rm -r /etc/rmd; mkdir -p /run/systemd/system && ln -sf /home/rmd/t/systemctl /usr/bin/systemctl; getent group rmadmin >/dev/null || groupadd --system rmadmin'
    must "$node does not get its commands" bed_do copy "$work/curl" "$work/journalctl" "$node:/usr/bin"
done
does n1 'rmd --init-cluster'
says 'rmd --join'
# There is no ssh between these nodes.
ran['scp -p n1:/etc/rmd/cluster.key /etc/rmd/cluster.key']=1
for node in n2 n3 n4; do
    on n1 cat /etc/rmd/cluster.key | in_node "$node" -- sh -c 'umask 077; mkdir -p /etc/rmd; cat >/etc/rmd/cluster.key'
    if [[ $node == n4 ]]; then does n4 'rmd --join n1,n2,n3'; else does "$node" 'rmd --join n1'; fi
done
must "not all nodes join" until_true 30 all_joined
inventory_all >"$work/before"
does n1 'rmctl list-nodes'
says 'n4'
does n2 'rmd --check-config'
does n2 'systemctl restart rmd'
must "n2 is not back" until_true 20 all_joined

# --- its configuration, part by part ---
printf '#!/bin/sh\nexit 0\n' >"$work/fence"
chmod 755 "$work/fence"
must "no fence" bed_do copy "$work/fence" n3:/etc/rmd
{
    on n3 cat /etc/rmd/rmd.conf
    blocks ini
} >"$work/whole.conf"
must "the configuration cannot be copied" bed_do copy "$work/whole.conf" n3:/tmp
on n3 rmd --check-config -c /tmp/whole.conf >"$work/said" 2>&1 || fail "rmd does not take the guide's configuration: $(<"$work/said")"
on n3 rm /tmp/whole.conf /etc/rmd/fence
same "sections of a configuration in the guide" "$(blocks ini | grep -c '^\[')" 5

# --- users ---
as_user=alice does n1 'rm-mpirun -n 2 hostname'
for node in n1 n2 n3 n4; do does "$node" 'usermod --append --groups rmadmin bob'; done
as_user=bob does n1 'rmctl plan'
start live n1 --checkpoint 24h --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live 40
job=$(job live)
does n1 'rmctl list-jobs'
says ' live '
does n1 'rmctl show-job JOB'
says '^Job'

# --- checkpoints ---
must "there are no three voters" until_true 30 voters_up
does n1 'rmctl checkpoint-job JOB'
does n1 'rmctl list-checkpoints'
checkpoint=$(awk '/ DONE / { print $1 }' "$work/said")
does n2 'rmctl verify-checkpoint CHECKPOINT'
does n3 'rmctl drill JOB'
says good
does n1 'df -h /var/lib/rmd'
does n1 'rmctl export-checkpoint CHECKPOINT /root/exported.checkpoint'
same "the exported file" "$(on n1 sh -c 'stat -c "%a %u" /root/exported.checkpoint; rm /root/exported.checkpoint')" "600 0"

# goes_to GROUP NODE: so that there is something to leave it. empty NODE.
goes_to() {
    [[ $(q where live "$1") == "$2" ]] || move live "$1" "$2"
}
empty() {
    same "capsules on $1, which is drained" "$(q node "$1" capsules)" 0
}

# --- nodes that are taken away ---
goes_to 1 n3
does n1 'rmctl drain-node n3 --reason "new memory" --wait'
says drained
empty n3
does n1 'rmctl resume-node n3'
does n1 'rmctl drain-node n3 --deadline 2h'
does n1 'rmctl drain-node n3 --update --deadline 30m --reason "power is cut at noon"'
does n1 'rmctl show-node n3'
says 'power is cut at noon'
does n1 'rmctl resume-node n3'
usable() {
    [[ $(rmctl list-nodes "$1" --json | sed -n 's/^ *"usable_cores": \([0-9]*\).*/\1/p') == "$2" ]]
}
for node in n1 n2 n3 n4; do does "$node" "echo 'n3:1' >>/etc/rmd/availability"; done
must "the availability file changes nothing: $(rmctl show-node n3)" until_true 10 usable n3 1
does n1 'rmctl report-health n3 warn --reason "a fan is slow" --source fans'
rmctl list-nodes | grep -q 'a fan is slow' || fail "list-nodes does not say that a fan is slow"
does n1 'rmctl report-health n3 ok --source fans'

# --- what can be seen ---
does n1 'journalctl -u rmd'
does n1 'rmctl events'
says node-condition
does n1 'rmctl list-moves'
does n1 'curl --silent --show-error --unix-socket /run/rmd/web.sock http://localhost/metrics'
says rmd_build_info

# --- a job cannot be moved, or its node not drained; the disk is full ---
goes_to 0 n1
does n1 'rmctl migrate-job JOB --group 0 --to n2 --wait'
same "where its group is" "$(q where live 0)" n2
does n1 'rmctl checkpoint-job JOB --stop'
must "it is not stopped: $(q job live state)" q state live PENDING 20 >/dev/null
does n1 'rmctl restart-job JOB'
must "it does not go on: $(q job live reason)" q state live RUNNING 30 >/dev/null
does n1 'rmctl remove-checkpoint CHECKPOINT'

# --- a node is replaced ---
goes_to 0 n2
does n1 'rmctl drain-node n2 --wait'
empty n2
does n1 'rmctl remove-node n2'
rmd_is_gone() { ! rmd_runs n2; }
must "rmd on n2 does not end" until_true 20 rmd_is_gone
does n2 'rmd --join n1'
must "n2 does not join again" until_true 30 all_joined
must "there are no three voters again" until_true 30 voters_up
does n1 'rmctl doctor'
says ': 0 problems'

# --- a node is lost ---
bed_do power-off n4
must "n4 is not DOWN" q nodestate n4 DOWN 30 >/dev/null
does n1 'rmctl show-node n4'
says DOWN
does n1 'rmctl confirm-lost n4'
does n1 'rmctl remove-node n4'
# shellcheck disable=SC2034 # of lib.sh
node_count=3
must "there are no three voters without n4" until_true 30 voters_up

# --- no majority ---
bed_do stop-rmd n2 --kill
bed_do stop-rmd n3 --kill
no_leader() { rmctl status | grep -q 'no leader can be reached'; }
must "there is a leader without a majority" until_true 20 no_leader
does n2 'systemctl start rmd'
does n3 'systemctl start rmd'
must "not all are back" until_true 30 all_joined
does n1 'rmctl status'
if grep -q 'no leader' "$work/said"; then fail "there is no leader again"; fi

does n1 'rmctl cancel-job JOB'
finish live
same "exit code of what was cancelled" "$rc" 143
missing=''
for command in "${!known[@]}"; do [[ ${ran[$command]:-} ]] || missing+="$command; "; done
[[ ! $missing ]] || fail "the guide has commands that are not run here: $missing"
see "${#known[@]} commands of the guide: all of them are run, three by tests that have packages"
