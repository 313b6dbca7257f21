#!/bin/bash
# Prometheus does not understand what rmd serves, or its rules wake nobody: promtool judges the metrics and the rules, Prometheus itself scrapes both endpoints, its
# parser of OpenMetrics reads them strictly, and the dashboard asks only for metrics that there are.
# packages: prometheus
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

get() {
    on "$1" "$programs/http" get 7701 "$2" "$3"
}

cluster 3 --cores 2 --set "web.listen=/run/rmd/web.sock 127.0.0.1:7701"
start busy n1 --group-size 1 -n 2 "$programs/spin" --stop-file="$(stop_file busy)"
running busy
move busy 1 "$(a_node_but "$(q where busy 1)")"
leader=$(q leader)
bed_do copy "$repo_dir/config/rmd-alerts.yml" "$repo_dir/config/rmd-dashboard.json" "$tests_dir/data/alerts/cases.yml" "$leader:$programs/" ||
    fail "the rules do not get to the node"
for path in /metrics /metrics/cluster; do
    get "$leader" "$path" text/plain >"$work/plain" || fail "$path is not served"
    get "$leader" "$path" application/openmetrics-text >"$work/open" || fail "$path is not served"
    in_node "$leader" -- promtool check metrics <"$work/plain" >"$work/verdict" 2>&1 || fail "promtool check metrics, $path: $(<"$work/verdict")"
    [[ ! -s $work/verdict ]] || fail "promtool check metrics, $path: $(<"$work/verdict")"
    in_node "$leader" -- python3 -c '
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
print(sum(len(f.samples) for f in text_string_to_metric_families(sys.stdin.read())))' <"$work/open" >"$work/verdict" 2>&1 ||
        fail "$path is not OpenMetrics: $(tail -n 1 "$work/verdict")"
    see "$path: promtool check metrics: no finding; $(<"$work/verdict") samples of OpenMetrics"
    cat "$work/plain" >>"$work/all"
done
# A judge that finds nothing in anything is none.
! in_node "$leader" -- promtool check metrics <<<'wrong_name_total_ 1' >/dev/null 2>&1 || fail "promtool finds nothing wrong in what is wrong"

on "$leader" promtool check rules "$programs/rmd-alerts.yml" >"$work/verdict" 2>&1 || fail "promtool check rules: $(<"$work/verdict")"
grep -q 'SUCCESS: 12 rules found' "$work/verdict" || fail "promtool check rules: $(<"$work/verdict")"
on "$leader" promtool test rules "$programs/cases.yml" >"$work/verdict" 2>&1 || fail "promtool test rules: $(<"$work/verdict")"
see "promtool test rules: $(grep -c SUCCESS "$work/verdict") of 1 files"

# Every name in the rules and in the dashboard is one that is served.
grep -hoE '\brmd_[a-z_]+|\bprocess_[a-z_]+' "$repo_dir/config/rmd-alerts.yml" "$repo_dir/config/rmd-dashboard.json" | sort -u >"$work/asked"
grep -oE '^[a-z_]+' "$work/all" | sort -u >"$work/served"
comm -23 "$work/asked" "$work/served" >"$work/unknown"
[[ ! -s $work/unknown ]] || fail "nobody serves $(tr '\n' ' ' <"$work/unknown")"
see "$(wc -l <"$work/asked") of $(wc -l <"$work/served") metrics are used by rules and dashboard"

# --- Prometheus itself, with the rules ---
cat >"$work/prometheus.yml" <<EOF
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [$programs/rmd-alerts.yml]
scrape_configs:
  - job_name: rmd
    static_configs: [{ targets: ['127.0.0.1:7701'] }]
  - job_name: rmd-cluster
    metrics_path: /metrics/cluster
    static_configs: [{ targets: ['127.0.0.1:7701'] }]
EOF
bed_do copy "$work/prometheus.yml" "$leader:$programs/" || fail "the configuration does not get to the node"
in_node "$leader" -- sh -c "mkdir /tmp/prometheus && echo \$\$ >/tmp/prometheus/pid && exec prometheus --config.file=$programs/prometheus.yml \
    --storage.tsdb.path=/tmp/prometheus/data --web.listen-address=127.0.0.1:9090" </dev/null >"$work/prometheus.log" 2>&1 &
prometheus=$!
ask() {
    on "$leader" python3 -c '
import json, sys, urllib.parse, urllib.request
url = "http://127.0.0.1:9090/api/v1/query?" + urllib.parse.urlencode({"query": sys.argv[1]})
print(" ".join(r["value"][1] for r in json.load(urllib.request.urlopen(url, timeout=5))["data"]["result"]))' "$1" 2>/dev/null
}
has() {
    [[ $(ask "$1") == "$2" ]]
}
must "Prometheus does not scrape: $(tail -n 2 "$work/prometheus.log")" until_true 30 has 'sum(up)' 2
must "Prometheus does not know the move" until_true 15 has 'sum(rmd_moves_total{result="done"})' 1
same "its median freeze is one" "$(ask 'histogram_quantile(0.5, sum by (le) (rmd_move_freeze_seconds_bucket)) > bool 0')" 1
same "samples that it has of the node" "$(ask 'scrape_samples_scraped{job="rmd"}')" 30
on "$leader" sh -c 'kill "$(cat /tmp/prometheus/pid)"'
wait "$prometheus"
on "$leader" rm -r /tmp/prometheus
release busy
finish busy
