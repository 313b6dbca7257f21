# For tests that run programs on this machine's mpirun, sourced by them, in a namespace of its own each, with their arguments in `door`, `library` and others.
# shellcheck shell=bash disable=SC2154

# The door and the names by which ranks hear are those of a capsule: of a mount and a network namespace of its own.
if [[ ! ${RM_FT_INSIDE:-} ]]; then
    RM_FT_INSIDE=yes exec unshare --mount --net --propagation private "$0" "$@"
fi
ip link set lo up
mkdir -p /run/rm
mount -t tmpfs tmpfs /run/rm

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
# As rmd sets it.
export OMPI_MCA_coll=basic,tuned,libnbc,self,inter,ftagree OMPI_MCA_mpi_preconnect_mpi=1 OMPI_MCA_mpi_yield_when_idle=1 RM_ON_RANK_LOSS=continue
log=$(mktemp)
trap 'rm -f "$log" "$log.raw"' EXIT

# run RANKS PROGRAM [ARG...]: prints its output; that of the stand-in, and errors, are in `log`, without
# the NULs with which mpirun ends its own messages, in front of what a rank says next.
run() {
    local ranks=$1 status=0
    shift
    # Ranks of the last job may outlive their mpirun for a moment, and have their names until then.
    for _ in {1..300}; do
        grep -q '@rm/' /proc/net/unix || break
        sleep 0.1
    done
    timeout 120 "$door" mpirun --with-ft ulfm --oversubscribe -n "$ranks" -x LD_PRELOAD="$library" "$@" 2>"$log.raw" || status=$?
    tr -d '\0' <"$log.raw" >"$log"
    return "$status"
}

# expect NAME WANTED IS
expect() {
    [[ $2 == "$3" ]] || {
        echo "$1: '$3' instead of '$2'" >&2
        sed 's/^/    /' "$log" >&2
        exit 1
    }
    echo "ok: $1: $3"
}

# of_log WORD: the ranks that the stand-in names, in order
of_log() {
    sed -n "s/^$1: *//p" "$log" | xargs -n1 | sort -n | xargs
}

# check_alive NAME RANKS LINE LOST COMMAND...
check_alive() {
    local name=$1 ranks=$2 line=$3 lost=$4 output
    shift 4
    output=$(run "$ranks" "$@") || expect "$name: exit code" 0 $?
    expect "$name" "$line" "$output"
    expect "$name: lost" "$lost" "$(of_log lost)"
}
