# Sourced by enter-root and node-init: what a fresh root needs besides its own files.
# Both run in a mount namespace of their own, with the new root mounted and current.
# shellcheck shell=bash

# Device nodes by mknod, or (in containers that may not) by binding the machine's.
mounts_dev() {
    local name numbers
    mount -t tmpfs -o mode=0755,nosuid rmd-dev dev
    while read -r name numbers; do
        # shellcheck disable=SC2086 # two numbers
        if ! mknod -m 0666 "dev/$name" c $numbers 2>/dev/null; then
            : >"dev/$name"
            mount --bind "/dev/$name" "dev/$name"
        fi
    done <<'END'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
END
    mkdir dev/pts dev/shm
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    ln -s /proc/self/fd/0 dev/stdin
    ln -s /proc/self/fd/1 dev/stdout
    ln -s /proc/self/fd/2 dev/stderr
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
