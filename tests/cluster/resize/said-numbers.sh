#!/bin/bash
# A program that says after a change that it has a number of active ranks which the job may not have (fewer than --min-ranks, none, more than there are) is not believed: its cores stay its own, an event tells
# of it, and it can be asked for other numbers from then on.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 4 --set sched.resize_interval=0

# Rank 0 of a program that knows the protocol of the program socket, and says of each change that it has so many ranks as the file asks for.
cat >"$work/says.py" <<'EOF'
import os, socket, sys, time
said = sys.argv[1]
def number(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])
def say(word, epoch, ranks):
    body = b"\x08" + number(word) + b"\x18" + number(epoch) + b"\x20" + number(ranks)
    door.send(b"\x22" + number(len(body)) + body)
door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
print("says: running", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.1)
    if os.environ["OMPI_COMM_WORLD_RANK"] != "0":
        continue
    try:
        door.connect("/run/rm/door")
        say(0, 0, 4)
        epoch, ranks = [int(word) for word in open(said).read().split()]
        say(2, epoch, 0)
        say(4, epoch, ranks)
    except (OSError, ValueError):
        pass
EOF
bed_do copy "$work/says.py" n1:/home/alice/says.py
as alice n1 touch /home/alice/said
start says n1 --group-size 2 -n 4 --max-ranks 6 --min-ranks 2 python3 /home/alice/says.py /home/alice/said "$(stop_file says)"
running says

field() {
    rmctl show-job --json "$(job says)" | python3 -c 'import json, sys
j = json.load(sys.stdin)["jobs"][0]
print(j["resize"].get(sys.argv[1]) or 0)' "$1"
}
has() {
    [[ $(field "$1") == "$2" ]]
}
must "its program is not heard" until_true 30 has listens True

# says SAID WANTED LEFT: it is asked for WANTED ranks, says that it has SAID, and counts as having LEFT.
says() {
    : >"$work/resize"
    as alice n1 rmctl resize-job "$(job says)" "$2" --timeout 20 >"$work/resize" 2>&1 &
    must "nothing is wanted of it: $(<"$work/resize")" until_true 20 has requested "$2"
    as alice n1 sh -c "echo $(field epoch) $1 >/home/alice/said.new && mv /home/alice/said.new /home/alice/said"
    must "the change to $2 does not end when the program says $1" until_true 20 has requested 0
    wait $!
    same "its active ranks, when it says $1" "$(field active)" "$3"
    rmctl events | grep -q "job $(job says) cannot have $1 active ranks, as its program says, but 2 to $3: it counts as having $3" || fail "no event tells of $1: $(rmctl events | tail -n 3)"
}
says 1 3 4
says 0 3 4
says 7 5 5
rmctl list-nodes --json | python3 -c 'import json, sys
ranks = sum(n["ranks"] for n in json.load(sys.stdin)["nodes"])
sys.exit(ranks != 5)' || fail "its five ranks do not hold five cores: $(rmctl list-nodes)"
release says
finish says
same "its exit code" "$rc" 0
