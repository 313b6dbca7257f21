#!/bin/bash
# A freeze grows with the memory of the group although that has been sent ahead: CRIU saves it once more. A capsule alone.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

installed=${RMD_DESTDIR:-$("$repo_dir/tools/build" --path)} || fail "no rmd"
tool=${installed%-destdir}-plain/tests/unit/capsule/capsule-try
[[ -x $tool ]] || fail "no capsule-try beside $installed"
cluster 1 --no-rmd
bed_do copy "$tool" "$(find "$installed" -name rm-capsule)" "n1:$programs"
library=$(find "$installed" -name criu-pages.so)
library_dir=$(dirname "${library#"$installed"}")
on n1 mkdir -p "$library_dir"
bed_do copy "$library" "n1:$library_dir"
on n1 "$programs/apart" "$programs/capsule-try" "$programs/rm-capsule" 256 >"$work/apart.out" 2>&1 || fail "$(tail -n 3 "$work/apart.out")"
while read -r line; do see "$line"; done <"$work/apart.out"
