#!/bin/bash
# Ranks find what they would find under mpirun: user, groups, folder, umask, limits, nice value, I/O priority, scheduling policy, environment (of variables with any name), no more privileges.
# Another launcher that has started rm-mpirun is not asked for nodes, and programs of any kind start.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# In a shell of alice's with a folder, umask, limits and variables of her own.
inside='mkdir -p "work here" && cd "work here" && umask 0027 && ulimit -n 777 && ulimit -S -s 4096 && export FOO="a b\"c" RM_PRIORITY=3 &&
    f() { :; } && export -f f && exec nice -n 5 ionice -c 2 -n 6 chrt --batch 0 env "a b=c  d" x.y=1 "$@"'

cluster 2 --cores 2
variables=(FOO HOME PATH OMPI_COMM_WORLD_SIZE BASH_FUNC_f%% "a b" x.y)
as alice n1 bash -c "$inside" bash mpirun --oversubscribe -n 2 --mca btl self,sm "$programs/surroundings" "${variables[@]}" 2>/dev/null |
    grep -v hostname | sort >"$work/plain"
as alice n1 bash -c "$inside" bash rm-mpirun --group-size 1 -n 2 "$programs/surroundings" "${variables[@]}" RM_JOB_ID RM_ATTEMPT 2>"$work/err" |
    sort >"$work/all"
grep -vE 'hostname|RM_|arg[89]' "$work/all" >"$work/managed"
if ! diff "$work/plain" "$work/managed" >"$work/diff"; then fail "they differ: $(tr '\n' '|' <"$work/diff")"; fi
see "$(wc -l <"$work/plain") facts are the same, among them:"
grep -E ' 0 (uid|cwd|umask|nice|scheduling|io_priority|nofile|stack|CapEff|FOO|a b)' "$work/managed"
grep -q ' 1 RM_JOB_ID=[0-9]' "$work/all" || fail "RM_JOB_ID is not there"
grep -q ' 1 RM_ATTEMPT=[0-9]' "$work/all" || fail "RM_ATTEMPT is not there"
# The folder is the user's, not the front end's.
as alice n1 rm-mpirun -n 1 sh -c 'echo x >made-by-a-rank'
same "a file that a rank has made" "$(on n2 stat -c '%U %a' /home/alice/made-by-a-rank)" "alice 644"

# Who has no PATH, or hardly any variables, as a daemon's children, starts jobs all the same.
for few in "-u PATH" "-i HOME=/home/alice" "-i HOME=/home/alice LANG=C"; do
    # shellcheck disable=SC2086 # options of env
    same "what a job says that was started by 'env $few'" "$(as alice n1 env $few /usr/bin/rm-mpirun --group-size 1 -n 2 /bin/echo hi 2>&1 | paste -sd ' ')" "hi hi"
done

# started BY VARIABLE=VALUE...: the first one is seen by both ranks, one on each node.
started() {
    said=$(as alice n1 env "${@:2}" timeout 20 rm-mpirun --group-size 1 -n 2 sh -c "echo \$${2%%=*}" 2>"$work/started") || fail "started by $1: exit $?: $(<"$work/started")"
    same "what ranks see of $1" "$(sort <<<"$said" | paste -sd ' ')" "${2#*=} ${2#*=}"
}
started Slurm SLURM_JOBID=30 SLURM_JOB_ID=30 SLURM_NODELIST=n9 SLURM_JOB_NODELIST=n9 SLURM_NNODES=1 SLURM_TASKS_PER_NODE=2 SLURM_JOB_CPUS_PER_NODE=2
started PBS PBS_JOBID=31 PBS_ENVIRONMENT=PBS_BATCH PBS_NODEFILE=/home/alice/none
started LSF LSB_JOBID=32 LSF_ENVDIR=/etc LSB_DJOB_HOSTFILE=/home/alice/none LSB_HOSTS=n9
started "Grid Engine" JOB_ID=33 SGE_ROOT=/opt/none ARC=lx PE_HOSTFILE=/home/alice/none
started Flux FLUX_URI=local:///none FLUX_JOB_ID=34 FLUX_JOB_SIZE=2

# A library that rmd preloads would come before that of the sanitizer.
as alice n1 sh -c 'printf "#include <mpi.h>\n#include <stdio.h>\nint main(void) { MPI_Init(NULL, NULL); puts(\"checked\"); MPI_Finalize(); return 0; }\n" >checked.c &&
    mpicc -fsanitize=address -o checked checked.c' >"$work/compiled" 2>&1 || fail "a program with a sanitizer is not compiled: $(<"$work/compiled")"
for options in detect_leaks=0 detect_leaks=0:abort_on_error=1; do
    same "what it says with $options" "$(as alice n1 env ASAN_OPTIONS=$options rm-mpirun -n 1 ./checked 2>&1)" checked
done
