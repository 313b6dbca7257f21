# Sourced by enter-root and node-init: what a fresh root needs besides its own files.
# Both run in a mount namespace of their own, with the new root mounted and current.
# shellcheck shell=bash

# mounts_dev [MODEL]: a copy of what devices_make has made in a folder before, or else device nodes by mknod, or (in containers that may
# not) by binding the machine's.
mounts_dev() {
    mount -t tmpfs -o mode=0755,nosuid rmd-dev dev
    if [[ ${1:-} ]]; then
        cp -a "$1/." dev/
    else
        devices_make dev bind
    fi
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
}

# devices_make FOLDER [bind]: fails where mknod does, unless it may bind.
devices_make() {
    local dev=$1 may_bind=${2:-} name numbers
    while read -r name numbers; do
        # shellcheck disable=SC2086 # two numbers
        if ! mknod -m 0666 "$dev/$name" c $numbers 2>/dev/null; then
            [[ $may_bind ]] || return 1
            : >"$dev/$name"
            mount --bind "/dev/$name" "$dev/$name"
        fi
    done <<'END'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
END
    mkdir "$dev/pts" "$dev/shm"
    ln -s pts/ptmx "$dev/ptmx"
    ln -s /proc/self/fd "$dev/fd"
    ln -s /proc/self/fd/0 "$dev/stdin"
    ln -s /proc/self/fd/1 "$dev/stdout"
    ln -s /proc/self/fd/2 "$dev/stderr"
}

mounts_volatile() {
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs tmp
    mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs run
    mkdir -m 1777 run/lock
}

# CRIU refuses to work below a chroot ("No parent found for mountpoint"), so the root is really exchanged.
mounts_pivot() {
    pivot_root . .
    umount -l .
    cd /
}

# Closes what the caller of a tool happened to leave open, except for stdin, stdout, stderr and this script itself.
close_inherited() {
    local fd
    for fd in /proc/self/fd/*; do
        fd=${fd##*/}
        ((fd > 2)) && [[ ! /proc/self/fd/$fd -ef $0 ]] && exec {fd}>&-
    done
    return 0
}
