#!/bin/bash
# The page does not load in a browser, shows no moves, or dies when rmd is started again or the leader is lost; or it shows somebody what is not his.
# packages: browser
# complete: needs a browser
# limit: 180
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

steps=()
step() {
    steps+=("$@")
}
# heard WORD: the browser has come so far, and says what follows WORD there.
heard() {
    until_true 40 eval "! kill -0 ${browser:-0} 2>/dev/null || grep -q '^$1 ' '$work/said'" && grep -q "^$1 " "$work/said" || fail "the page: $1: $(tail -n 1 "$work/why")"
    sed -n "s/^$1 //p" "$work/said" | tail -n 1
}

cluster 3 --cores 4 --set "web.listen=/run/rmd/web.sock 127.0.0.1:7701"
secret=s3cret
# What is shown is n3, which is not lost; the leader is another one.
if [[ $(q leader) == n3 ]]; then
    bed_do restart-rmd n3
    must "n3 leads on" until_true 20 eval '[[ $(q leader) != n3 && $(q leader) == n? ]]'
    must "n3 is not back" until_true 20 all_joined
fi
asker=n3
start "$secret" n3 --time 30m --group-size 1 -n 2 "$programs/spin" --stop-file="$(stop_file s)"
running "$secret"

# --- whose jobs ---
as alice n3 "$programs/http" stream /run/rmd/web.sock 2 >"$work/alice"
as bob n3 "$programs/http" stream /run/rmd/web.sock 2 >"$work/bob"
on n3 "$programs/http" stream /run/rmd/web.sock 2 >"$work/root"
for who in alice root; do grep -aq "\"name\":\"$secret\"" "$work/$who" || fail "$who does not see the job"; done
! grep -a "$secret\|alice" "$work/bob" || fail "bob sees alice's job"
grep -aq '"ranks":[1-9]' "$work/bob" || fail "bob does not see that cores are used"
same "a stream over TCP without a session" "$(on n3 "$programs/http" status 7701 /stream)" 401

# --- the link: for one use, of alice ---
as alice n3 rmctl web --json >"$work/web"
token=$(grep -o '"token": "[0-9a-f]*"' "$work/web" | grep -o '[0-9a-f]\{64\}') || fail "no token: $(<"$work/web")"
as alice n3 rmctl web | grep -q 'ssh -L 7701:/run/rmd/web.sock n3' || fail "no line for ssh"
as alice n3 "$programs/browser" "http://127.0.0.1:7701/#token=$token" until 20 "S.live && S.lists.jobs.size === 1" print "location.hash + '|' + document.cookie + '|' + S.hello.admin + '|' + [...S.lists.jobs.values()][0].spec.name" \
    >"$work/said" 2>"$work/why" || fail "the link does not lead to the page: $(<"$work/why")"
same "what is left of the link, cookies, administrator, job" "$(tail -n 1 "$work/said")" "||false|$secret"
as bob n3 "$programs/browser" "http://127.0.0.1:7701/#token=$token" until 20 "S.trouble" print "S.trouble" print "String(!!S.lists)" >"$work/said" 2>"$work/why" || fail "a used link: $(<"$work/why")"
same "a used link shows something" "$(tail -n 1 "$work/said")" false

# --- below a path of another server, which runs as alice: as rmd-web(7) says ---
location=$(sed -n '/^location /,/^}/p' "$repo_dir/docs/rmd-web.7")
bare=$(sed -n '/^location \/rmd\//,/^}/p' "$repo_dir/docs/rmd-web.7")
temp=$(printf '%s_temp_path /home/alice/nginx; ' client_body proxy fastcgi uwsgi scgi)
as alice n3 sh -c 'printf %s "$0" >/home/alice/nginx.conf' "daemon off; pid /home/alice/nginx.pid; error_log stderr; worker_processes 1; events { }
    http { access_log off; keepalive_timeout 0; $temp server { listen 127.0.0.1:7803; $location
        location = /bare { proxy_pass http://unix:/run/rmd/web.sock:/; proxy_set_header Host localhost; } ${bare/rmd/bare} } }"
as alice n3 /usr/sbin/nginx -c /home/alice/nginx.conf 2>"$work/nginx" &
nginx=$!
until_true 10 eval '[[ $(on n3 "$programs/http" status 7803 /rmd/ 2>/dev/null) == 200 ]]' || fail "nginx does not serve the page: $(<"$work/nginx")"
as alice n3 "$programs/browser" http://127.0.0.1:7803/rmd/ until 20 "S.live && S.lists.jobs.size === 1" print "location.pathname + '|' + [...S.lists.jobs.values()][0].spec.name" \
    >"$work/said" 2>"$work/why" || fail "the page behind a proxy: $(<"$work/why")"
same "path, job" "$(tail -n 1 "$work/said")" "/rmd/|$secret"
same "the page at the path of a portal" "$(on n3 "$programs/http" status 7803 /pun/rmd/)" 200
# Some proxies do not add the slash.
as alice n3 "$programs/browser" http://127.0.0.1:7803/bare until 20 "S.live && S.lists.jobs.size === 1" >"$work/said" 2>"$work/why" || fail "the page at a path without a slash: $(<"$work/why")"
on n3 sh -c 'kill "$(cat /home/alice/nginx.pid)"; rm -r /home/alice/nginx.conf /home/alice/nginx'
wait "$nginx" 2>/dev/null

# --- one page through everything ---
as alice n3 sh -c 'echo $$ >/home/alice/port.pid && exec "$0" 7802 /run/rmd/web.sock' "$programs/web-port" >"$work/port" 2>/dev/null &
port=$!
must "no port" until_true 10 test -s "$work/port"
# What only the leader knows comes from there.
step until 20 "S.live && !S.leads && S.use && S.use.nodes.length === 3 && document.querySelectorAll('.node').length === 3 && document.querySelector('#jobs tbody tr')"
step print "'loaded ' + document.querySelectorAll('.core').length + ' ' + document.querySelectorAll('.core.j' + [...S.lists.jobs.values()][0].id % 8).length"
# For who hears it, and has no mouse.
step named ".numbers, .rack, main section.panel:not(.empty)" region named .node group named "#jobs tbody tr" row named "#jobs" table named "#history" image named "#link" status
step polite "#say, #say-events"
step do "window.tabs = []"
for _ in {1..6}; do step press Tab do "(e => tabs.push(e.dataset.node || e.dataset.id || e.className || e.id))(document.activeElement)"; done
step print "'keys ' + tabs.join(' ')" press Tab
# The next job: why it waits, and until when.
step say "pending please" until 20 "document.querySelector('#pending .start')" named "#pending tbody tr" row named "#pending" table
step print "'pends ' + document.querySelector('#pending .start').textContent" until 20 "S.lists.jobs.size === 1"
step until 30 "S.drawn.size > 0 && document.querySelector('#arc-labels g')"
step print "(() => { const d = [...S.drawn.values()][0]; return 'move ' + Math.round(performance.timeOrigin + d.from - at(d.move.start)); })()"
step until 30 "[...S.lists.moves.values()].some(m => m.state === 'DONE') && document.querySelector('#arcs .done text')"
step until 10 "/ is on n[0-9], it stood still for /.test(\$('say').textContent)" named "#moves tbody tr" row
step until 10 "\$('say-events').textContent"
step print "'done ' + document.querySelector('#arcs .done text').textContent"
step do "window.streams = S.streams"
step say "restart me"
step until 30 "S.streams > window.streams && S.live"
step print "'restarted ' + S.status.leader"
step say "lose it"
step until 40 "document.querySelector('.node.down') && S.live && S.status.leader && S.status.leader !== document.querySelector('.node.down').dataset.node"
step print "'lost ' + document.querySelector('.node.down').dataset.node"
step run "$programs/page-many.js"
as alice n3 "$programs/browser" http://127.0.0.1:7802/ "${steps[@]}" >"$work/said" 2>"$work/why" &
browser=$!
same "cores, and those of the job" "$(heard loaded)" "12 2"
same "where Tab leads" "$(heard keys)" "skip n1 n2 n3 $(job "$secret") events"
see "names: $(grep -a '^node n1, ' "$work/said"); $(grep -a "^job $(job "$secret"), " "$work/said")"
heard pending >/dev/null
start big n3 -n 12 "$programs/spin" --stop-file="$(stop_file s)"
pends=$(heard pends) || exit 1
[[ $pends =~ ^starts\ in\ (2[0-9]|30)\ min\ at\ the\ latest$ ]] || fail "a waiting job: '$pends'"
rmctl cancel-job "$(job big)" >/dev/null
move "$secret" 1 "$(a_node_but "$(q where "$secret" 1)")"
late=$(heard move)
in_time "$late" 1000 || fail "the page shows a move $late ms after its event"
see "a move is drawn $late ms after its event; then: $(heard done)"
[[ $(heard done) =~ :\ [0-9.]+\ m?s,\ [0-9.]+\ [kMG]?B$ ]] || fail "the page does not tell freeze and bytes: $(heard done)"
heard restart >/dev/null
bed_do restart-rmd n3
see "the page is back after rmd was started again; leader: $(heard restarted)"
heard lose >/dev/null
leader=$(q leader)
if [[ $leader != n3 ]]; then
    q place "$secret" | grep -q " $leader\$" && move "$secret" 1 n3
    bed_do power-off "$leader"
    same "the node that is lost" "$(heard lost)" "$leader"
fi
must "the page with many nodes" wait "$browser"
see "64 nodes with 64 cores: $(tail -n 1 "$work/said") (frames a second; the rest in ms)"
read -r kept lines newest live _ _ cells _ <<<"$(heard events)"
same "events kept, shown, the newest first, and still live" "$kept $lines $newest $live" "300 150 true true"
same "cores drawn" "$cells" 4096
[[ $leader == n3 ]] || bed_do power-on "$leader"
on n3 sh -c 'kill "$(cat /home/alice/port.pid)"; rm /home/alice/port.pid'
wait "$port" 2>/dev/null
on n3 touch "$(stop_file s)"
finish "$secret"
