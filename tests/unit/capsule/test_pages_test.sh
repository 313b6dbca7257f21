#!/bin/sh
# rm-pages-test with the CRIU of this system. Arguments: rm-pages-test, the library for CRIU.
set -u
program=$1 library=$(realpath "$2")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
criu=$(command -v criu) || {
        echo 'FAILED: there is no criu'
        exit 1
}
# shellcheck source=tests/unit/check.sh
. "${0%/*}/../check.sh"

call() {
        "$program" "$@" 2>&1
}

# one_line NAME: of what was printed last
one_line() {
        [ "$(printf '%s\n' "$out" | wc -l)" = 1 ] || {
                echo "FAILED $1: more than one line: $out"
                failed=1
        }
}

mounts() {
        grep -c ' /dev/shm ' /proc/self/mountinfo
}
before=$(mounts)
check 'all well' 0 '16 MiB dumped and restored in ' "$criu" "$library"
one_line 'all well'
check 'without the library' 1 "CRIU's images hold " "$criu" /nonexistent
one_line 'without the library'
check 'without CRIU' 1 "CRIU's dump failed: no message" /nonexistent/criu "$library"
one_line 'without CRIU'
check 'no arguments' 2 'usage: '
check 'too many arguments' 2 'usage: ' a b c
[ "$before" = "$(mounts)" ] || {
        echo 'FAILED: it leaves a mount'
        failed=1
}

# Killed in the middle: nothing may go on without it.
printf '#!/bin/sh\nexec sleep 4711\n' >"$work/criu"
chmod 755 "$work" "$work/criu"
await() {
        for _ in $(seq 100); do
                if pgrep -f '^sleep 4711' >/dev/null; then state=running; else state=gone; fi
                [ "$state" = "$1" ] && return
                sleep 0.05
        done
        echo "FAILED killed: the dump is not $1"
        failed=1
}
"$program" "$work/criu" "$library" >/dev/null &
await running
kill -KILL $!
await gone
exit "$failed"
