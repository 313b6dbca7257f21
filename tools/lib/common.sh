# Sourced by every tool: messages, refusals, the cache, locks. Needs nothing that a minimal Debian lacks.
# shellcheck shell=bash disable=SC2034 # what it sets is for those who source it

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

tools_dir=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
repo_dir=${tools_dir%/*}
# shellcheck source-path=SCRIPTDIR source=children.sh
. "$tools_dir/lib/children.sh"
# Sub-tools stay quiet about what their caller has said already.
tool_name=${0##*/}
cache_dir=${RMD_CACHE:-/var/cache/rmd}

say() {
    printf '%s: %s\n' "$tool_name" "$*" >&2
}

die() {
    say "$*"
    exit 1
}

usage_error() {
    say "$* (see 'tools/$tool_name --help')"
    exit 2
}

# The comment block at the head of the tool is its help.
print_help() {
    awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$tools_dir/$tool_name"
}

# --- refusals, all before anything is changed ---

require_root() {
    ((EUID == 0)) || die "must be run as root: sudo tools/$tool_name"
}

require_debian() {
    command -v apt-get >/dev/null && command -v dpkg >/dev/null ||
        die "needs a Debian 12 or 13 machine (there is no apt-get here)"
}

# require_space DIR MEGABYTES: DIR need not exist yet.
require_space() {
    local dir=$1 need_mb=$2 have_mb
    while [[ ! -d $dir ]]; do dir=${dir%/*} dir=${dir:-/}; done
    have_mb=$(df --output=avail -B1M "$dir") have_mb=${have_mb##*[!0-9]}
    ((have_mb >= need_mb)) ||
        die "not enough disk: $1 needs $need_mb MB free and has $have_mb MB (RMD_CACHE names another folder)"
}

# One line for each thing that this kernel, or this container, does not give.
kernel_lacks() {
    local kind cgroup probe
    for kind in mount uts ipc net pid cgroup time; do
        # Joining a new time namespace happens at the fork.
        unshare "--$kind" --fork true 2>/dev/null || echo "$kind namespaces"
    done
    unshare --net perl "$tools_dir/lib/probe-netlink" 2>&1
    unshare --mount --propagation private sh -c 'mount -t tmpfs none /mnt && cd /mnt && mkdir a b c d &&
        mount -t overlay -o lowerdir=a,upperdir=b,workdir=c none d' 2>/dev/null || echo overlayfs
    if cgroup=$(cgroup_mount); then
        probe=$cgroup/rmd-probe-$$
        if mkdir "$probe" 2>/dev/null; then
            [[ -e $probe/cgroup.freeze && -e $probe/cgroup.kill ]] || echo "the cgroup v2 freezer and cgroup.kill"
            rmdir "$probe"
        else
            echo "a cgroup v2 tree to write in (at $cgroup)"
        fi
    else
        echo "a mounted cgroup v2 tree"
    fi
    return 0
}

# What was found out about this machine holds until it boots again: asking costs forty processes.
# known FACT, learn FACT
known() {
    local fact
    [[ -r $cache_dir/facts ]] || return 1
    while IFS= read -r fact; do
        [[ $fact != "$(</proc/sys/kernel/random/boot_id) $1" ]] || return 0
    done <"$cache_dir/facts"
    return 1
}
learn() {
    mkdir -p "$cache_dir"
    echo "$(</proc/sys/kernel/random/boot_id) $1" >>"$cache_dir/facts"
}

require_kernel() {
    local lacks
    ! known kernel || return 0
    lacks=$(kernel_lacks | paste -sd ,)
    [[ -z $lacks ]] || die "this machine's kernel ($(uname -r)) lacks what emulated nodes need: ${lacks//,/, }"
    learn kernel
}

# Prints where the cgroup v2 tree is mounted.
cgroup_mount() {
    local lines line fields
    # At once: to read such a file line by line has the kernel make all of it for each.
    mapfile -t lines </proc/self/mountinfo
    for line in "${lines[@]}"; do
        [[ $line == *' - cgroup2 '* ]] || continue
        read -ra fields <<<"$line"
        echo "${fields[4]}"
        return 0
    done
    return 1
}

# --- locks ---

# take_lock FD FILE WHAT: waits for another process that holds FILE, saying so; held until FD is closed.
# A holder may remove the file when it is done, so what was locked must still be what lies there.
take_lock() {
    local fd=$1 file=$2 what=$3
    while :; do
        eval "exec $fd>>\"\$file\""
        if ! flock --nonblock "$fd"; then
            say "waiting for another $what to finish"
            flock "$fd"
        fi
        [[ /proc/$$/fd/$fd -ef $file ]] && return 0
    done
}

# --- emulated nodes ---

# Prints the program that makes emulated nodes and runs commands in them (testbed-node.c), compiled in the root when its source is new.
# Nothing of the root is needed to run it.
node_tool() {
    local source=$tools_dir/lib/testbed-node.c tool key
    key=$(cksum <"$source") || die "there is no $source"
    tool=$cache_dir/build/testbed-node-${key// /-}
    [[ -x $tool ]] || {
        "$tools_dir/root" -- cc -static -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -o "/build/${tool##*/}.$$" /src/tools/lib/testbed-node.c >&2 &&
            mv "$tool.$$" "$tool"
    } || die "$source does not compile"
    echo "$tool"
}

# --- text ---

# elapsed START: seconds with one digit, START from $EPOCHREALTIME.
elapsed() {
    local now=${EPOCHREALTIME/[.,]/} start=${1/[.,]/}
    printf '%d.%d' $(((now - start) / 1000000)) $(((now - start) / 100000 % 10))
}
