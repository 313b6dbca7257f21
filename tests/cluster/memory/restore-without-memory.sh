#!/bin/bash
# A program that is restored without its memory, and uses it at once: it sees its own, or is ended, whoever dies meanwhile. Capsules alone.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

installed=${RMD_DESTDIR:-$("$repo_dir/tools/build" --path)} || fail "no rmd"
tool=${installed%-destdir}-plain/tests/unit/capsule/capsule-try
[[ -x $tool ]] || fail "no capsule-try beside $installed"
cluster 1 --no-rmd
bed_do copy "$tool" "$(find "$installed" -name rm-capsule)" "n1:$programs"
on n1 "$programs/lazily" "$programs/capsule-try" "$programs/rm-capsule" "$programs/lacks" 256 "$(thorough 50 10)" >"$work/lazily.out" 2>&1 ||
    fail "$(tail -n 3 "$work/lazily.out")"
while read -r line; do see "$line"; done <"$work/lazily.out"
