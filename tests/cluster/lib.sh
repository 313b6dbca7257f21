# Sourced by every cluster test: an emulated cluster of its own, users' commands in it, jobs to disturb, and the end that
# looks for leftovers. See CONTRIBUTING for how to add a test.
# shellcheck shell=bash
#
# A test:   . "${BASH_SOURCE[0]%/*}/../lib.sh"
#           cluster 4 --cores 2
#           ... `must`, `fail`, `see` ...
# It ends with 0 if it came to its end, nothing failed, and no node has anything left of its jobs.
#
# environment: RM_TEST_KEEP=1      leave the cluster of a failed test standing, to look at
#              RM_TEST_THOROUGH=1  as many repetitions as `thorough` names, and programs that poll as they like
#              RM_TEST_SLOW        how long this machine takes for what it does, in percent of the one that bounds in time were written on
#                                  (tools/lib/slowness)
#              RM_TEST_USED        file that gets what the test has used of a processor

set -uo pipefail

# What tests run outside of their nodes is the system's, as it is inside.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

tests_dir=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
repo_dir=${tests_dir%/*}
# shellcheck source-path=SCRIPTDIR source=../../tools/lib/children.sh
. "$repo_dir/tools/lib/children.sh"
# shellcheck source-path=SCRIPTDIR source=remains.sh
. "$tests_dir/cluster/remains.sh"
testbed_tool=$repo_dir/tools/testbed
programs=/home/rmd/t
test_name=$(cd "$(dirname "$0")" && pwd) test_name=${test_name##*/}-${0##*/} test_name=${test_name%.sh}
bed=${test_name:0:24} bed=${bed%-}-$$
beds=${RMD_RUN:-/var/lib/rmd-testbed}
# end_by_signal STATUS: a signal has come. bash dies of a trap that exits within `read -t`, so wait_seconds does it there.
in_wait='' end_status=''
end_by_signal() {
    [[ $in_wait ]] || exit "$1"
    end_status=$1
}

work=''
trap '[[ ! $work ]] || rm -rf "$work"' EXIT
trap 'end_by_signal 143' TERM HUP
trap 'end_by_signal 130' INT
work=$(mktemp -d "/tmp/rmd-$test_name.XXXXXX")
leave_record "$work" "$beds" "$bed"
node_count=0
rc=0
slowness=${RM_TEST_SLOW:-100}
declare -A front_pid
# Nothing ever comes here: to wait for that is to sleep, without a process for it.
exec {never}<> <(:)

# --- saying ---

see() {
    printf '  %s\n' "$*"
}

# Where the test's own standard error is: a test may have sent that of a command away, whose failure `must` tells.
exec {shown}>&2
fail() {
    printf 'FAIL: %s\n' "$*" >&"$shown"
    exit 1
}

# must WHAT CMD...: the command succeeds, or the test has failed.
must() {
    local what=$1
    shift
    "$@" || fail "$what"
}

# A writer that `grep -q` cuts off ends by SIGPIPE, and with pipefail that counts as no match: on a busy machine, when the writer is the later one.
# So grep reads to the end here.
grep() {
    local word quiet='' words=() counts
    for word; do
        if [[ $word =~ ^-[a-zA-Z]*q[a-zA-Z]*$ ]]; then quiet=yes word=${word/q/}; fi
        [[ $word == - ]] || words+=("$word")
    done
    if [[ ! $quiet ]]; then
        command grep "$@"
    else
        counts=$(command grep -hc "${words[@]}")
        [[ $counts =~ [1-9] ]]
    fi
}

# same WHAT HAVE WANT
same() {
    [[ $2 == "$3" ]] || fail "$1: '$2', not '$3'"
}

# thorough MANY FEW: how often something is repeated: MANY times in a thorough run, else FEW times. Without them: is it one?
thorough() {
    if (($# == 0)); then
        [[ ${RM_TEST_THOROUGH:-} ]]
    elif [[ ${RM_TEST_THOROUGH:-} ]]; then
        echo "$1"
    else
        echo "$2"
    fi
}

# --- the cluster ---

bed_do() {
    case $1 in
    exec)
        in_node "${@:2}"
        return
        ;;
    stop-rmd | restart-rmd | power-off | cut) await_voters ;;
    esac
    "$testbed_tool" "$1" --name "$bed" "${@:2}"
}

# Nodes come to keep the log one after the other, two seconds apart. Before there are three none may be lost: before a test disturbs the first one, it waits.
voters_awaited=''
await_voters() {
    [[ ! $voters_awaited ]] || return 0
    voters_awaited=yes
    until_true 20 voters_up || true
}

# in_node NODE [--user U] -- CMD...: what `testbed exec` does, by one process. Commands that need a node that is on find it off otherwise.
in_node() {
    "$beds/$bed/node" exec "$beds/$bed/$1.sock" "${@:2}"
}

# The programs are built once; a runner that starts many tests does it for all.
build_programs() {
    [[ ${RM_TEST_PROGRAMS:-} ]] || RM_TEST_PROGRAMS=$("$repo_dir/tools/build" --programs) || fail "tests/programs do not build"
}

# A test that says `# packages: LIST` has nodes with those of tools/root.packages.LIST.
more_packages() {
    local list
    list=$(sed -n 's/^# packages: *\([a-z]*\)$/\1/p' "$0" | head -n 1)
    [[ ! $list ]] || RMD_ROOT=$("$repo_dir/tools/root" --with "$list") || fail "no root with the packages of root.packages.$list"
    [[ ! $list ]] || export RMD_ROOT
}

# A test that says `# commit: COMMIT` has $older, rmd as it was then, and $newer, that of today, for tools/testbed install.
older='' newer=''
both_versions() {
    older=$("$repo_dir/tools/build" --commit "$(sed -n 's/^# commit: *\([0-9a-f]*\)$/\1/p' "$0" | head -n 1)") || fail "no older rmd"
    newer=${RMD_DESTDIR:-$("$repo_dir/tools/build" --path)} || fail "no rmd"
}

# update NODE DIR: as an administrator does.
update() {
    must "rmd cannot be installed on $1" bed_do install "$1" "$2"
    must "rmd on $1 does not start again" bed_do restart-rmd "$1"
}

# cluster N [OPTION of tools/testbed up]...
# Ranks that wait for messages would use all of this machine: in nodes of tests they sleep instead (tests/programs/polite.c), unless the run is
# thorough or the test says `# polls`, and in benchmarks ($polls).
cluster() {
    local polite=() options=() word
    node_count=$1
    # A node that this machine keeps waiting is not lost: what rmd takes for silence is longer where the machine is slower.
    for word; do
        [[ ! $word =~ ^cluster\.voters= ]] || voters_awaited=none
        [[ ! $word =~ ^cluster\.node_timeout=([0-9]+)s$ ]] || word=cluster.node_timeout=$(((BASH_REMATCH[1] * slowness + 99) / 100))s
        options+=("$word")
    done
    ((node_count >= 3)) || voters_awaited=none
    more_packages
    build_programs
    trap at_end EXIT
    thorough || [[ ${polls:-} ]] || grep -q '^# polls' "$0" || polite=(--put "$RM_TEST_PROGRAMS/polite.so:/usr/libexec/rmd/rm-yield.so")
    bed_do up "${options[@]}" "${polite[@]}" 2>"$work/up.err" || fail "no cluster: $(tail -n 3 "$work/up.err")"
    mkdir "$beds/$bed/home/rmd/t"
    cp "$RM_TEST_PROGRAMS"/* "$tests_dir"/cluster/inside/* "$beds/$bed/home/rmd/t"
    inventory_all >"$work/before"
}

# scenario NAME: what follows is one of several that share the cluster. Nothing is left of the one before: no job, no drain, no edit of the
# availability file, no file of a user, and what the nodes had is as it was.
current_scenario='' scenario_began=''
scenario() {
    local node
    if [[ $current_scenario ]]; then
        scenario_ends
        on "$asker" sh -c 'rm -rf /home/alice/* /home/bob/*; echo "# none" >/home/rmd/availability'
        for node in $(nodes); do
            [[ ! $(q node "$node" state) =~ DRAIN ]] || must "$node is not resumed" rmctl resume-node "$node" >/dev/null
        done
    fi
    current_scenario=$1 scenario_began=$EPOCHREALTIME
    see "-- $1"
}
scenario_ends() {
    [[ ! ${!front_pid[*]} ]] || fail "$current_scenario: jobs still have a front end: ${!front_pid[*]}"
    until_true 15 nothing_left || fail "$current_scenario has left behind: $(head -n 5 "$work/left" | tr '\n' '|')"
    see "-- $current_scenario: $(msec_since "$scenario_began") ms"
}

nodes() {
    local k
    for ((k = 1; k <= node_count; k++)); do echo "n$k"; done
}

# on NODE CMD...: as root. as USER NODE CMD...: as that user, in the home directory.
on() {
    in_node "$1" -- "${@:2}" </dev/null
}
as() {
    in_node "$2" --user "$1" -- "${@:3}" </dev/null
}

# rmctl as root on n1; rmctl_on NODE ...
rmctl() {
    on n1 rmctl "$@"
}

# q ARG...: a question that inside/q answers, asked on $asker (a node that is up).
asker=n1
q() {
    local server=$beds/$bed/home/rmd/t/$asker.q status=0 asked=("--slow=$slowness" "$@")
    "$beds/$bed/node" ask "$server" "${asked[@]}" || status=$?
    if ((status == 254)); then
        # None is there yet, or it went with the power of its node.
        status=0
        rm -f "$server"
        in_node "$asker" --detach -- "$programs/q" --serve "$programs/$asker.q" </dev/null >/dev/null 2>&1 || return 1
        until_true 20 test -S "$server" || return 1
        "$beds/$bed/node" ask "$server" "${asked[@]}" || status=$?
    fi
    return "$status"
}

# wait_seconds SECONDS
wait_seconds() {
    in_wait=yes
    read -r -t "$1" -u "$never" || true
    in_wait=''
    [[ ! $end_status ]] || exit "$end_status"
}

# until_true SECONDS CMD...: the bound is for a machine that is as fast as the one on which it was written.
until_true() {
    local deadline=$((${EPOCHREALTIME/[.,]/} + $1 * slowness * 10000)) looks=0
    shift
    until "$@"; do
        ((${EPOCHREALTIME/[.,]/} < deadline)) || return 1
        wait_seconds 0.$((++looks < 3 ? looks : 3))
    done
}

# in_time MSEC BOUND: it took at most so many, for a machine as fast as the one on which the bound was written.
in_time() {
    (($1 <= $2 * slowness / 100))
}

# asks_root NODE SECONDS: root's rmctl status again and again, in the background, and beside it a program that asks nobody: what the machine itself holds up. Both at real-time priority,
# as rmd itself: whether users leave root's shell a processor is not the question here.
asks_root() {
    on "$1" chrt -f 2 "$programs/probe" "$2" rmctl status >"$work/asked" &
    asking=($!)
    on "$1" chrt -f 2 "$programs/probe" "$2" true >"$work/asked-nobody" &
    asking+=($!)
}

# judged_answers: how many came and how many were refused; of the one that took longest beside what held up the other program meanwhile, awake or asleep: how long
# it took without that and with it. A hold-up at another time excuses nothing.
judged_answers() {
    awk '
        FNR == NR { from[FNR] = $3; to[FNR] = $3 + $1; n = FNR; next }
        $2 == "slept" { next }
        {
            answers++
            refused += $2 != 0
            own = $1
            for (i = 1; i <= n; i++) {
                begin = from[i] > $3 ? from[i] : $3
                end = to[i] < $3 + $1 ? to[i] : $3 + $1
                if (end > begin) own -= end - begin
            }
            if (answers == 1 || own > worst) { worst = own; whole = $1 }
        }
        END { print answers + 0, refused + 0, worst + 0, whole + 0 }' "$work/asked-nobody" "$work/asked"
}

# answered BOUND: once "${asking[@]}" have ended: root was refused nothing, and each answer came within so many milliseconds, beside what the machine has held up meanwhile.
answered() {
    local answers refused worst whole
    [[ -s $work/asked-nobody ]] || fail "the program that asks nobody has not run"
    read -r answers refused worst whole < <(judged_answers)
    see "root asked $answers times, was refused $refused times; the ten slowest, in ms: $(awk '$2 != "slept" { print $1 }' "$work/asked" | sort -rn | head -n 10 | paste -sd ' ');" \
        "the slowest beside hold-ups of the machine: $worst of $whole; these, in ms: $(cut -d ' ' -f 1 "$work/asked-nobody" | sort -rn | head -n 3 | paste -sd ' ')"
    ((answers > 0)) || fail "root's rmctl was never answered"
    ((refused == 0)) || fail "root's rmctl status was refused"
    in_time "$worst" "$1" || fail "root's rmctl status took $whole ms, $((whole - worst)) ms of which the machine held up what asks nobody, too"
}

msec_since() {
    echo $(((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}) / 1000))
}

# --- jobs ---

# start NAME NODE ARG...: rm-mpirun in the background as $user (alice) with $settings in its environment, output in $work/NAME.out and .err.
user=alice
settings=()
start() {
    local name=$1 node=$2
    shift 2
    # Before it begins: what an earlier job of that name has said is none of this one's.
    : >"$work/$name.out" 2>"$work/$name.err"
    in_node "$node" --user "$user" -- env "${settings[@]}" rm-mpirun --job-name "$name" "$@" \
        </dev/null >"$work/$name.out" 2>"$work/$name.err" &
    front_pid[$name]=$!
}

begun_or_over() {
    grep -qs ': running' "$work/$1.out" || { [[ ${front_pid[$1]:-} ]] && ! kill -0 "${front_pid[$1]}" 2>/dev/null; }
}

# The program's first line is out, so all its ranks have passed MPI_Init. A job that has ended without it is not waited for.
running() {
    local name=$1
    until_true "${2:-20}" begun_or_over "$name" && grep -qs ': running' "$work/$name.out" ||
        fail "job $name does not run: $(tail -n 3 "$work/$name.err" "$work/$name.out" 2>&1 | tr '\n' '|')"
}

# For a job whose program would compute as fast as it can, and has nothing else to do than to be there: options of rm-mpirun with which its ranks sleep in
# each step that it reports, and while they wait for each other.
paced=(-x "LD_PRELOAD=$programs/paced.so $programs/polite.so" -x OMPI_MCA_mpi_yield_when_idle=1)

# job NAME: its number.
job() {
    q job "$1" id
}

stop_file() {
    echo "/home/$user/$1.stop"
}

# release NAME: the program may end.
release() {
    on "$asker" touch "$(stop_file "$1")"
}

# finish NAME [SECONDS]: waits for the front end; its exit code in rc.
finish() {
    local name=$1 seconds=${2:-60} pid=${front_pid[$1]}
    until_true "$seconds" gone "$pid" || fail "job $name has not ended within $seconds s"
    rc=0
    wait "$pid" || rc=$?
    unset "front_pid[$name]"
}

# gone PID: a child of this shell has ended.
gone() {
    local running
    children_running "$1"
    ((${#running[@]} == 0))
}

# run NAME NODE ARG...: in the foreground; rc, $work/NAME.out, $work/NAME.err.
run() {
    start "$@"
    finish "$1" 120
}

# ended_well NAME PATTERN: exit code 0 and the program's own verdict.
ended_well() {
    ((rc == 0)) || fail "job $1 ended with $rc: $(tail -n 3 "$work/$1.err" | tr '\n' '|')"
    grep -q "$2" "$work/$1.out" || fail "job $1 did not say '$2': $(tail -n 3 "$work/$1.out" "$work/$1.err" | tr '\n' '|')"
}

# migrate NAME GROUP NODE [ARG...]: asks for a move; the head is group -1 here.
migrate() {
    on "$asker" rmctl migrate-job "$(job "$1")" --group "${2/#-1/head}" --to "$3" "${@:4}"
}

# move NAME GROUP NODE: and wait until it has arrived. It may be moved on at once, if that made the node too full.
move() {
    local text
    text=$(q move "$@" 2>&1) || fail "group $2 of $1 to $3: $text; moves: $(q moves "$1" | tail -n 3 | tr '\n' '|')"
}

# a_node_but NODE: another one, by chance.
a_node_but() {
    nodes | grep -vx "$1" | shuf -n 1 --random-source=<(yes "$RANDOM")
}

# watch_memory NODE: what the files of moves and the memory of processes take there, until memory_watched.
declare -A watcher
watch_memory() {
    on "$1" rm -f /run/watched
    on "$1" "$programs/footprint" /run/watched >"$work/memory-$1" &
    watcher[$1]=$!
    must "nobody looks at the memory of $1" until_true 10 test -s "$work/memory-$1"
}

# memory_watched NODE: $before, $after (of processes) and $peak (of all) in MiB, $samples, and $parts of the peak.
memory_watched() {
    on "$1" touch /run/watched
    wait "${watcher[$1]}"
    read -r before after peak samples parts < <(tail -n 1 "$work/memory-$1")
}

# --- hpcc ---

# hpl NAME GROUP-SIZE: Debian's hpcc, unmodified, with 8 ranks, as job NAME. Its ranks poll while they wait; in a quick run they sleep instead, so that all other tests get on.
# What else hpcc does than HPL grows with the square of the problem and would take minutes then: so a small one, cut into small pieces.
hpl() {
    local name=$1 how=() input=()
    thorough || how=(-x "LD_PRELOAD=$programs/polite.so")
    thorough || input=(-e 's/^1500 /500 /' -e 's/^80 /8 /')
    as alice n1 mkdir -p "/home/alice/$name"
    bed_do exec n1 --user alice -- sh -c "cat >/home/alice/$name/hpccinf.txt" < <(sed "${input[@]}" -e '' "$tests_dir/data/hpcc/hpccinf.txt")
    start "$name" n1 --group-size "$2" -n 8 --wdir "/home/alice/$name" "${how[@]}" hpcc
}

# hpl_residues NAME: the lines that HPL computes from its solution: a single other bit shows.
hpl_residues() {
    as alice n1 grep -E 'Ax-b|PASSED|FAILED|^(Success|HPL_(N|NB|RnormI|Anorm1|AnormI|Xnorm1|XnormI|BnormI))=' "$1/hpccoutf.txt" |
        grep -vE '^(WALL|CPU)' | sort
}

# whole FILE out|err RANKS [WIDTH]: what `flood` wrote has arrived, each record once, whole and in order.
whole() {
    local said status=0
    # What rm-mpirun itself has to say goes to standard error too.
    said=$(sed "/^rm-mpirun: /d; ${not_of_flood:-}" "$1" | bed_do exec n1 -- "$programs/flood" --check="$2" --ranks="$3" --width="${4:-40}") || status=1
    see "std$2: $said"
    return "$status"
}

# Job flood, two ranks, is told to end, and does so as if nothing had been.
flood_ends_whole() {
    release flood
    finish flood
    same "flood's exit code" "$rc" 0
    must "standard output" whole "$work/flood.out" out 2
    must "standard error" whole "$work/flood.err" err 2
}

# keep_moving NAME MANY: moves the groups of a job, and its head, about until MANY have arrived or it is over.
keep_moving() {
    local name=$1 many=$2 group groups
    must "$name does not run" q state "$name" RUNNING 30 >/dev/null
    groups=$(q place "$name" | wc -l)
    while (($(moves_of "$name") < many)) && [[ $(q job "$name" state) =~ RUNNING|MIGRATING|FOLDED ]]; do
        group=$((RANDOM % groups - 1))
        # It may be on its way already, or the job over: then the next look tells.
        migrate "$name" "$group" "$(a_node_but "$(q where "$name" "$group")")" --wait --timeout 60 >"$work/migrate" 2>&1 || sleep 0.3
    done
}

# moves_of NAME: how many have arrived.
moves_of() {
    q moves "$1" | grep -c ' DONE '
}

# hash_of NAME: what `ordered` printed. iterations_of NAME.
hash_of() {
    sed -n 's/.*hash \([0-9a-f]*\).*/\1/p' "$work/$1.out"
}
iterations_of() {
    sed -n 's/.*iterations \([0-9]*\) .*/\1/p' "$work/$1.out"
}

# same_as_undisturbed NAME RANKS ARG...: an `ordered` that was disturbed against one that is left alone.
same_as_undisturbed() {
    local name=$1 ranks=$2 n
    shift 2
    n=$(iterations_of "$name")
    [[ $n ]] || fail "job $name has printed no result: $(tail -n 3 "$work/$name.err")"
    start "$name-alone" "$asker" "$@" -n "$ranks" "$programs/ordered" --iterations="$n"
    finish "$name-alone" 600 # it has as much to compute as the other
    ended_well "$name-alone" hash
    see "disturbed: $n iterations, hash $(hash_of "$name"); undisturbed: $(hash_of "$name-alone")"
    same "the result of $n iterations" "$(hash_of "$name")" "$(hash_of "$name-alone")"
}

# kill_processes PROGRAM JOB-NUMBER RANK...: as mpirun counts them.
kill_processes() {
    local node
    for node in $(nodes); do
        on "$node" sh -c 'program=$1 id=$2; shift 2
            for p in $(pgrep -x "$program"); do
                e=$(tr "\0" "\n" </proc/$p/environ)
                case $e in *"RM_JOB_ID=$id
"*) ;; *) continue ;; esac
                for rank; do case $e in *"OMPI_COMM_WORLD_RANK=$rank
"*) kill -KILL $p ;; esac; done
            done' sh "$@"
    done
}

# --- jobs that grow and shrink ---

# resize_field NAME FIELD: of Job.resize. listens NAME: its program has asked for changes.
resize_field() {
    on "$asker" rmctl show-job --json "$(job "$1")" | python3 -c 'import json, sys
print(json.load(sys.stdin)["jobs"][0].get("resize", {}).get(sys.argv[1], ""))' "$2"
}
listens() {
    [[ $(resize_field "$1" listens) == True ]]
}

# has_ranks NAME N: so many are active, and no change is under way.
has_ranks() {
    [[ $(resize_field "$1" active) == "$2" && $(resize_field "$1" requested) =~ ^0?$ ]]
}

# figure NAME: of the last move, as in `rmctl list-moves --json`.
figure() {
    on n1 python3 -c 'import json, sys; print(json.loads(sys.argv[1])["moves"][-1].get(sys.argv[2], 0))' "$(rmctl list-moves --json)" "$1"
}

# resize NAME N: and wait until its program has changed.
resize() {
    as "$user" "$asker" rmctl resize-job "$(job "$1")" "$2" --timeout 180 >"$work/resize" 2>&1 ||
        fail "$1 does not change to $2 ranks: $(tail -n 3 "$work/resize")"
}

# frozen NAME: how many of its groups stand still. stands_still NAME N.
frozen() {
    local node
    for node in $(nodes); do
        on "$node" sh -c 'for d in /sys/fs/cgroup/rmd-capsules/"j$1."*/payload; do cat "$d/cgroup.freeze"; done 2>/dev/null' sh "$(job "$1")"
    done | grep -c 1
}
stands_still() {
    (($(frozen "$1") == $2))
}

# --- rmd ---

# start_rmd_with NODE VARIABLE=VALUE
start_rmd_with() {
    on "$1" sh -c "cd / && { $2 setsid /usr/bin/rmd --foreground </dev/null >>/var/log/rmd.log 2>&1 &
        echo \$! >/run/testbed-rmd.pid; }"
}

# With named fault points: a line such as `move.source.transfer:kill` in /run/rmd/fault is one fault, once.
start_rmd_with_faults() {
    start_rmd_with "$1" RM_FAULT_FILE=/run/rmd/fault
}

# The same on all nodes, all of which are stopped first.
all_rmds_with_faults() {
    local node
    for node in $(nodes); do bed_do stop-rmd "$node"; done
    for node in $(nodes); do start_rmd_with_faults "$node"; done
    must "not all nodes join with faults" until_true 30 all_joined
}

# give_controllers NODE: a new start of its rmd, in groups of the node's own in these hierarchies; again: in the same. None: it starts as before.
give_controllers() {
    bed_do stop-rmd "$1"
    on "$1" sh -c 'for c in $2; do
            [ ! -d /run/controllers/$c/$1 ] || continue
            mkdir -p /run/controllers/$c
            mount -t cgroup -o $c cgroup /run/controllers/$c || { [ $c = cpu ] && mount -t cgroup -o cpu,cpuacct cgroup /run/controllers/$c; } || exit 1
            mkdir /run/controllers/$c/$1 || exit 1
        done 2>/dev/null
        cd /run/controllers && [ ! -e cpuset ] || for f in cpus mems; do cat cpuset/cpuset.$f >cpuset/$1/cpuset.$f; done
        [ ! -e cpu ] || echo 8192 >cpu/$1/cpu.shares # beside the group, each session on this machine may count as one
        for c in $2; do echo $$ >$c/$1/cgroup.procs || exit 1; done
        cd / && { setsid /usr/bin/rmd --foreground </dev/null >>/var/log/rmd.log 2>&1 & echo $! >/run/testbed-rmd.pid; }
        ' sh "$bed-$1" "$(v1_controllers | paste -sd ' ')" || fail "$1 gets no controllers"
    given_controllers=yes
    must "all are not back" until_true 20 all_joined
    [[ -e $work/given-$1 ]] || inventory_all >"$work/before"
    : >"$work/given-$1"
}

# unlimited NODE CONTROLLER: the node's rmd says that it has none.
unlimited() {
    on "$1" rmctl status | grep -q "not enforced here:.*$2"
}

# limited NODE CONTROLLER: the node can hold jobs to limits of this kind. What this machine has, rmd must make use of; where it has nothing, rmd must say so.
limited() {
    if v1_controllers | grep -qx "$2"; then
        if unlimited "$1" "$2"; then fail "this machine has the controller $2, but rmd says: $(on "$1" rmctl status | grep 'not enforced')"; fi
        return 0
    fi
    if unlimited "$1" "$2"; then
        see "NOT ENFORCED here: emulated nodes get no $2 controller on this machine; rmd says so: $(on "$1" rmctl status | grep 'not enforced')"
        return 1
    fi
    return 0
}

# give_controllers has made groups, which are on the machine itself.
given_controllers=''

rmd_runs() {
    on "$1" sh -c 'read -r pid </run/testbed-rmd.pid && kill -0 "$pid"' 2>/dev/null
}

# The daemon of each, which may have been started a moment ago, follows or leads with a state as new as that of $asker is now.
all_joined() {
    local index node
    index=$(q index) || return 1
    for node in $(nodes); do is_current "$node" "$index" 0 || return 1; done
}

# voters_up: there are three voters, and all of them are there.
voters_up() {
    on "$asker" rmctl status | grep -q 'quorum 2, 1 may be lost'
}

voter_names() {
    on "$asker" rmctl status | sed -n 's/^Voters: *\([^;]*\);.*/\1/p' | tr ' ' '\n' | sort | paste -sd ' '
}
# voters_are_first: n1, n2 and n3 are the voters, also where others were there before them.
voters_are_first() {
    local node others
    must "there are no three voters" until_true 30 voters_up
    others=$(voter_names | tr ' ' '\n' | grep -vxE 'n[123]' || true)
    for node in $others; do on "$asker" rmctl drain-node "$node" --reason "another is to vote" >/dev/null; done
    until_true 30 eval 'voters_up && [[ $(voter_names) == "n1 n2 n3" ]]' || fail "the voters are $(voter_names)"
    for node in $others; do on "$asker" rmctl resume-node "$node" >/dev/null; done
}

# back NODE [SINCE]: waits until its rmd, one that was started after SINCE ($EPOCHREALTIME), follows or leads, with a state as new as that of $asker is now,
# in which it is up.
back() {
    local index=0
    [[ $1 == "$asker" ]] || index=$(q index) || return 1
    until_true 60 is_current "$1" "$index" "${2:-0}"
}
is_current() {
    asker=$1 q current "${@:2}" 2>"$work/current"
}

# events KIND: how many there are.
events() {
    rmctl events --json | grep -c "\"kind\": \"$1\""
}
# hold_sending NODE: the next rm-mover there stays at the end of its first round of memory, until sending_goes_on. Its rmd starts again for that, with fault points.
hold_sending() {
    local began=$EPOCHREALTIME
    bed_do stop-rmd "$1"
    start_rmd_with_faults "$1"
    must "$1 is not back" back "$1" "$began"
    on "$1" sh -c 'echo mover.send.round:hold >/run/rmd/fault'
}
sending_is_held() {
    on "$1" grep -qs 'round:held' /run/rmd/fault
}
sending_goes_on() {
    on "$1" rm /run/rmd/fault
}

# --- partitions ---

# flap NODE SECONDS: its link fails and comes back every few hundred milliseconds, so long.
flap() {
    local end=$((${EPOCHREALTIME/[.,]/} + $2 * 1000000))
    while ((${EPOCHREALTIME/[.,]/} < end)); do
        bed_do cut "$1" 2>>"$work/flap"
        sleep "0.$((RANDOM % 4 + 2))"
        bed_do heal "$1" 2>>"$work/flap"
        sleep "0.$((RANDOM % 4 + 2))"
    done
}

# start_looked_at NAME NODE LOSS RANKS GROUP-SIZE PROGRAM...: a job with --on-node-loss LOSS whose groups are on two of n4, n5 and n6. Beside each
# rank `pulse` tells when that runs.
start_looked_at() {
    local name=$1 node=$2 loss=$3 ranks=$4 size=$5
    shift 5
    on n1 sh -c 'printf "n1:0\nn2:0\nn3:0\nn4:%d\nn5:%d\nn6:%d\n" "$1" "$1" "$1" >"$2"' sh "$size" "/home/alice/$name.nodes"
    start "$name" "$node" --on-node-loss "$loss" --restarts 20 --availability "/home/alice/$name.nodes" --group-size "$size" -n "$ranks" sh -c \
        "$programs/pulse /home/alice/$name.\$RM_ATTEMPT.\$OMPI_COMM_WORLD_RANK </dev/null >/dev/null 2>&1 & exec $*"
}

# pulses NAME K RANKS: as `pulse` has it, so on whatever side of a cut.
pulses() {
    (($(on n1 sh -c 'ls "$1"' sh "/home/alice" | grep -cE "^$1\.$2\.[0-9]+\$") == $3))
}

# one_copy NAME: never two copies of a rank of it.
one_copy() {
    on n1 "$programs/copies" "/home/alice/$1" >"$work/copies" 2>&1 || fail "$1: $(<"$work/copies")"
}

# told_of_restarts NAME: rm-mpirun has said in one line for each attempt but the first that it begins, and nothing else but that the job waited.
told_of_restarts() {
    local attempt
    attempt=$(q job "$1" attempt)
    same "lines of rm-mpirun that tell of restarts of $1" \
        "$(grep -c '^rm-mpirun: .*starts again from its beginning' "$work/$1.err")" "$((attempt - 1))"
    same "lines of rm-mpirun in all" \
        "$(grep '^rm-mpirun: ' "$work/$1.err" | grep -vcE ': job [0-9]+ (waits|starts( on |$))')" "$((attempt - 1))"
}

# attempt_runs NAME K: its four ranks have said "attempt K", and the job runs.
attempt_runs() {
    until_true 40 has_said "$1" "$2" || fail "attempt $2 of $1 does not run: $(q job "$1" state), $(q job "$1" reason), $(tail -n 3 "$work/$1.err")"
    must "$1 does not run" q state "$1" RUNNING 20 >/dev/null
    same "its attempt" "$(q job "$1" attempt)" "$2"
}
has_said() {
    [[ $(grep -ascx "attempt $2" "$work/$1.out") == 4 ]]
}

# memory_of NODE FIELD [PID]: of the status of a process there, rmd if none is named, in kB.
memory_of() {
    # shellcheck disable=SC2016 # the node's shell expands it
    on "$1" sh -c '[ "$2" ] || read -r pid </run/testbed-rmd.pid; sed -n "s/^$1:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/${2:-$pid}/status"' sh "$2" "${3:-}"
}

# --- the end ---

inventory_all() {
    local node
    for node in $(nodes); do
        on "$node" "$programs/inventory" | sed "s/^/$node: /"
    done | sort
}

nothing_left() {
    inventory_all >"$work/after" && comm -13 "$work/before" "$work/after" >"$work/left" && [[ ! -s $work/left ]]
}

# Where the processes stand that a move or a checkpoint may wait for.
report_movers() {
    local pid name
    find "$(testbed_cgroup)" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -nu | while read -r pid; do
        { read -r name <"/proc/$pid/comm"; } 2>/dev/null && [[ $name == rm-mover || $name == criu ]] || continue
        printf -- '--- %s: %s, in %s: %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-80)" "$(<"/proc/$pid/wchan")" \
            "$(sed 's/^[^ ]* //' "/proc/$pid/stack" | head -n 4 | paste -sd ' ')"
    done 2>/dev/null
}

diagnose() {
    local node file
    for node in $(nodes); do
        printf -- '--- rmd on %s\n' "$node"
        bed_do logs "$node" 2>&1 | tail -n "${RM_TEST_LOG_LINES:-25}"
    done
    on n1 rmctl list-nodes 2>&1
    on n1 rmctl list-jobs --all 2>&1 | tail -n 12
    on n1 rmctl list-moves --wide 2>&1 | tail -n 12
    report_movers
    for file in "$work"/*.out "$work"/*.err "$work/current"; do
        [[ ! -s $file ]] || { printf -- '--- %s\n' "${file##*/}" && tail -c 6000 "$file"; }
    done
}

# What the nodes have used of a processor, and what the test itself has, with all that it has started outside of nodes.
report_used() {
    local usec='' ticks
    [[ ${RM_TEST_USED:-} ]] || return 0
    read -r _ usec < <(cat "$(testbed_cgroup)/cpu.stat" 2>/dev/null)
    read -ra ticks <"/proc/$$/stat"
    printf '%d.%d s of a processor in the nodes, %d.%d s beside them' $((${usec:-0} / 1000000)) $((${usec:-0} / 100000 % 10)) \
        $(((ticks[13] + ticks[14] + ticks[15] + ticks[16]) / 100)) $(((ticks[13] + ticks[14] + ticks[15] + ticks[16]) / 10 % 10)) >"$RM_TEST_USED"
}
testbed_cgroup() {
    awk -v bed="$bed" '/ - cgroup2 / { print $5 "/rmd-testbed/" bed; exit }' /proc/self/mountinfo
}

at_end() {
    local status=$?
    trap - EXIT
    trap '' INT TERM HUP
    exec >&"$shown" 2>&1
    if ((status == 0)) && ! until_true 15 nothing_left; then
        printf 'FAIL: left behind:\n'
        head -n 20 "$work/left"
        status=1
    fi
    if ((status)); then diagnose 2>&1 | sed 's/^/    | /'; fi
    end_children KILL "${front_pid[@]}"
    report_used
    if ((status)) && [[ ${RM_TEST_KEEP:-} ]]; then
        rm -f "$work/owner"
        printf '  kept: tools/testbed ... --name %s, and %s\n' "$bed" "$work"
    else
        bed_do down 2>/dev/null
        [[ ! $given_controllers ]] || remove_groups "$bed"
        rm -rf "$work"
    fi
    exit "$status"
}
