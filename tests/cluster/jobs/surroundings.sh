#!/bin/bash
# Ranks find what they would find under mpirun: user, groups, folder, umask, limits, environment, no more privileges.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# In a shell of alice's with a folder, umask, limits and variables of her own.
inside='mkdir -p "work here" && cd "work here" && umask 0027 && ulimit -n 777 && ulimit -S -s 4096 && export FOO="a b\"c" RM_PRIORITY=3 &&
    exec "$@"'

cluster 2 --cores 2
variables=(FOO HOME PATH OMPI_COMM_WORLD_SIZE)
as alice n1 bash -c "$inside" bash mpirun --oversubscribe -n 2 --mca btl self,sm "$programs/surroundings" "${variables[@]}" 2>/dev/null |
    grep -v hostname | sort >"$work/plain"
as alice n1 bash -c "$inside" bash rm-mpirun --group-size 1 -n 2 "$programs/surroundings" "${variables[@]}" RM_JOB_ID RM_ATTEMPT 2>"$work/err" |
    sort >"$work/all"
grep -vE 'hostname|RM_|arg[56]' "$work/all" >"$work/managed"
if ! diff "$work/plain" "$work/managed" >"$work/diff"; then fail "they differ: $(tr '\n' '|' <"$work/diff")"; fi
see "$(wc -l <"$work/plain") facts are the same, among them:"
grep -E ' 0 (uid|cwd|umask|nofile|stack|CapEff|FOO)' "$work/managed"
grep -q ' 1 RM_JOB_ID=[0-9]' "$work/all" || fail "RM_JOB_ID is not there"
grep -q ' 1 RM_ATTEMPT=[0-9]' "$work/all" || fail "RM_ATTEMPT is not there"
# The folder is the user's, not the front end's.
as alice n1 rm-mpirun -n 1 sh -c 'echo x >made-by-a-rank'
same "a file that a rank has made" "$(on n2 stat -c '%U %a' /home/alice/made-by-a-rank)" "alice 644"
