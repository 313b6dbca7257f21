# For tests of commands, sourced by them: `call`, which they define, runs the command; `failed` is 1 after a check that failed.
# shellcheck shell=sh
failed=0

# check NAME EXPECTED-STATUS EXPECTED-TEXT ARGUMENTS..: the text must be a part of what is printed
check() {
        name=$1 status=$2 text=$3
        shift 3
        out=$(call "$@")
        got=$?
        case "$out" in
        *"$text"*) ;;
        *)
                echo "FAILED $name: '$out' does not contain '$text'"
                failed=1
                ;;
        esac
        [ "$got" = "$status" ] || {
                echo "FAILED $name: exit status $got, not $status"
                failed=1
        }
}
