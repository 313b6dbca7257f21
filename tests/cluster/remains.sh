# Sourced by tests of clusters and by what runs them: who has made a directory of a test, and the end of what a test has left that was killed.
# shellcheck shell=bash

# begin_of PID: when it was, in a unit of the kernel, so that a number that is used again is not taken for the one before; fails if it does not run.
begin_of() {
    local stat fields
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -ra fields <<<"${stat##*) }"
    # A zombie holds nothing any more.
    [[ ${fields[0]} != Z ]] && echo "${fields[19]}"
}

# leave_record DIR [BEDS BED]: this process has made it, and the testbed BED, whose disks are below BEDS.
leave_record() {
    printf '%s\n' "$(readlink /proc/self/ns/pid)" "$$" "$(begin_of "$$")" "${@:2}" >"$1/owner"
}

# is_left OWNER: its process has ended. One of another pid namespace, whose numbers mean nothing here, may live.
is_left() {
    local space='' pid='' since=''
    { read -r space && read -r pid && read -r since; } <"$1" || return 1
    [[ $space == "$(readlink /proc/self/ns/pid)" && $pid =~ ^[0-9]+$ && $(begin_of "$pid") != "$since" ]]
}

# remove_groups BED: those that its nodes have in the machine's cgroup v1 hierarchies (give_controllers).
remove_groups() {
    local controller own mount
    for controller in $(v1_controllers); do
        mount=$(awk -v c="$controller" '$3 == "cgroup" && "," $4 "," ~ "," c "," { print $2; exit }' /proc/mounts)
        own=$(awk -F : -v c="$controller" '"," $2 "," ~ "," c "," { print $3 }' /proc/self/cgroup)
        find "$mount${own%/}/" -depth -type d -path "*/$1-n*" -exec rmdir {} + 2>/dev/null
    done
}

# The machine's cgroup v1 hierarchies of what rmd limits with, and of processor time, if it has them so. Emulated nodes have a v2 tree, in which such
# controllers are not.
v1_controllers() {
    awk '$3 == "cgroup" { print $4 }' /proc/mounts | tr ',' '\n' | grep -xE 'memory|pids|cpuset|cpu'
}

# remove_remains: of tests whose process has ended, and which have not removed their own: they were killed. A directory that is not root's is nobody's record.
remove_remains() {
    local dir beds bed
    for dir in /tmp/rmd-*/; do
        dir=${dir%/}
        [[ -d $dir && ! -L $dir && -O $dir && -f $dir/owner ]] && is_left "$dir/owner" || continue
        { read -r bed && read -r bed && read -r bed && read -r beds && read -r bed || bed=''; } <"$dir/owner"
        echo "run: removing what a killed test has left: $dir${bed:+, testbed $bed}" >&2
        if [[ $bed ]]; then
            RMD_RUN=$beds "$repo_dir/tools/testbed" down --name "$bed" 2>/dev/null
            remove_groups "$bed"
        fi
        rm -rf --one-file-system "$dir"
    done
}
