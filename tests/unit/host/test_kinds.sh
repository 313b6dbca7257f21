#!/bin/sh
# rm-plugin-host takes --kind first, and then the options of that kind and no others. Argument: rm-plugin-host.
set -u
host=$1

call() {
        "$host" "$@" 2>&1
}

# shellcheck source=SCRIPTDIR/../check.sh
. "${0%/*}/../check.sh"

usage='usage: rm-plugin-host --kind policy|sensor|fence OPTION...'
check 'no kind' 2 "$usage"
check 'no name of a kind' 2 "$usage" --kind
check 'kind not first' 2 "$usage" --plugin psi --kind sensor
check 'unknown kind' 2 "$usage" --kind library --plugin psi
check policy 2 'rm-plugin-host: --policy NAME or --list is needed' --kind policy
check sensor 2 'rm-plugin-host: --plugin NAME is needed' --kind sensor
check fence 2 'rm-plugin-host: --plugin NAME and --node NAME are needed' --kind fence --plugin log
check 'an option of fences' 2 "unrecognized option '--node" --kind sensor --plugin psi --node=n1
check 'an option of sensors' 2 "unrecognized option '--user" --kind policy --policy greedy --user=root
check 'no time for a fence' 2 "--time-usec: '0' is no number from 1 on" --kind fence --time-usec 0
check 'no time for a policy' 1 'rm-plugin-host: snapshot: ' --kind policy --policy greedy --time-usec 0 </dev/null
check 'not less than no time' 2 "--time-usec: '-1' is no number from 0 on" --kind policy --time-usec -1
check 'too many words' 2 'rm-plugin-host: Too many arguments' --kind sensor --plugin psi again
exit $failed
