#!/bin/sh
# The policy kit as somebody outside gets it: install rmd into an empty folder, build the example with what pkg-config says, and run
# it. Arguments: meson, build folder, example, rm-policy-run, rm-plugin-host, snapshots.
set -u
meson=$1 build=$2 example=$3 run=$4 host=$5 data=$6
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # the host reads policies as nobody

fail() {
        echo "FAILED $*"
        exit 1
}

DESTDIR=$work/root "$meson" install -C "$build" --no-rebuild --quiet --tags devel >"$work/log" 2>&1 || fail "install: $(cat "$work/log")"
pc=$(find "$work/root" -name rm-policy.pc)
[ -n "$pc" ] || fail 'no rm-policy.pc was installed'
flags() {
        PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$work/root pkg-config "$@" rm-policy
}
cp "$example" "$work/first-fit.c"
# shellcheck disable=SC2046 # words
(cd "$work" && cc -std=c17 -Wall -Wextra -Werror -shared -fPIC -o first-fit.so first-fit.c $(flags --cflags)) || fail 'the example does not build'
[ -n "$(flags --variable=policydir)" ] || fail 'pkg-config does not say where policies go'
plan=$("$run" --policy-host "$host" --policy-dir "$work" --policy first-fit --json "$data/two-nodes.json") || fail 'the example does not run'
case $plan in
*'"placement":[{"job":"j1","node":"n1","ranks":8},{"job":"j2","node":"n1","ranks":7}],"waiting":["j3"]'*) ;;
*) fail "its plan: $plan" ;;
esac
plan=$("$run" --policy-host "$host" --policy-dir "$work" --policy first-fit "$data/two-nodes.json" | head -n 1)
[ "$plan" = 'policy   first-fit' ] || fail "how it is called: $plan"
# It lets running groups stay on a node that is to be left: the host sees that.
said=$("$run" --policy-host "$host" --policy-dir "$work" --policy first-fit "$data/running.json" 2>&1) && fail "a bad plan passed: $said"
case $said in
*"policy 'first-fit': invalid answer: node 'n1' gets 2 ranks, but has 0 cores"*) ;;
*) fail "said of a bad plan: $said" ;;
esac
