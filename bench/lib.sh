# Sourced by every benchmark: an emulated cluster and jobs as in the tests, statistics and tables.
# shellcheck shell=bash
#
# A benchmark prints a table with medians and spread; with --csv FILE every single measurement goes there too. It says on
# what machine it ran, since figures mean nothing without.

bench_dir=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
. "$bench_dir/../tests/cluster/lib.sh"

csv=''
quick=''
polls=yes

# The options that all benchmarks have; what is left over comes into `arguments`.
# shellcheck disable=SC2034 # each benchmark decides what it leaves out
bench_options() {
    arguments=()
    while (($#)); do
        case $1 in
        --csv) csv=${2:?--csv needs a file} && shift ;;
        --quick) quick=yes ;;
        -h | --help)
            awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
            exit 0
            ;;
        *) arguments+=("$1") ;;
        esac
        shift
    done
    ((EUID == 0)) || { echo "bench: must be run as root" >&2 && exit 1; }
}

machine() {
    printf '%s, %d cores, %d GB, Linux %s\n' "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)" "$(nproc)" \
        "$(awk '/^MemTotal/ { print int($2 / 1e6 + 0.5) }' /proc/meminfo)" "$(uname -r)"
}

# record FIELD...: a line of the CSV.
record() {
    [[ ! $csv ]] || (IFS=, && printf '%s\n' "$*" >>"$csv")
}
record_head() {
    [[ ! $csv ]] || (IFS=, && printf '%s\n' "$*" >"$csv")
}

# Of the numbers on standard input, one a line: median, and "smallest..largest".
median() {
    sort -g | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; else print "nan" }'
}
spread() {
    sort -g | awk 'NR == 1 { a = $1 } { b = $1 } END { printf "%.3f..%.3f\n", a, b }'
}
# percentile P: the smallest of them that P per cent do not exceed.
percentile() {
    sort -g | awk -v p="$1" '{ v[NR] = $1 } END { i = int(NR * p / 100 + 0.999999); print v[i < 1 ? 1 : i] }'
}

# interval FILE COLUMN_A COLUMN_B: "LOW HIGH", between which median(B) / median(A) lies with 95 % (bootstrap, 1000 draws).
interval() {
    awk -v a="$2" -v b="$3" '
        function median_of_draw(v,    i, j, x, d) {
            for (i = 1; i <= NR; i++) {
                x = v[int(rand() * NR) + 1]
                for (j = i - 1; j > 0 && d[j] > x; j--) d[j + 1] = d[j]
                d[j + 1] = x
            }
            return NR % 2 ? d[(NR + 1) / 2] : (d[NR / 2] + d[NR / 2 + 1]) / 2
        }
        { p[NR] = $a + 0; q[NR] = $b + 0 }
        END { srand(1); for (k = 0; k < 1000; k++) print median_of_draw(q) / median_of_draw(p) }' "$1" |
        sort -g | awk 'NR == 26 { low = $1 } NR == 975 { print low, $1 }'
}

# verdict TEXT CONDITION: an awk expression that should hold.
verdict() {
    if awk "BEGIN { exit !($2) }"; then echo "reached: $1"; else echo "NOT reached: $1"; fi
}

# calc EXPRESSION
calc() {
    awk "BEGIN { printf \"%.6g\n\", $1 }"
}

seconds_since() {
    calc "$(msec_since "$1") / 1000"
}

# setting KEY: of section cluster, as rmd on n5 has it.
setting() {
    local value
    value=$(on n5 sed -n "s/^$1 *= *//p" /etc/rmd/rmd.conf | tail -n 1)
    [[ $value ]] || value=$(sed -n "s/.*KEY(\"cluster\", \"$1\", .*\"\(.*\)\").*/\1/p" "$repo_dir/daemon/config/config.c")
    echo "${value:-?}"
}
