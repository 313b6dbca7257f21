# Sourced by tools and tests that start children.
# shellcheck shell=bash

# children_running PID...: sets `running` to those of this shell's children that have not ended. `kill -0` would not tell: a number is given
# away again as soon as bash has seen the end of a child, on a machine that starts hundreds of programs a second within minutes.
children_running() {
    local all pid
    all=" $(jobs -pr | tr '\n' ' ') "
    running=()
    for pid; do [[ $all != *" $pid "* ]] || running+=("$pid"); done
}

# end_children SIGNAL PID...: a signal for each that has not ended.
end_children() {
    local running
    children_running "${@:2}"
    ((${#running[@]} == 0)) || kill -"$1" "${running[@]}" 2>/dev/null || true
}
