#!/bin/bash
# Programs are run that lie in the group's own /tmp and /dev/shm: their processes can be restored only if rm-mover, which has written them there, does not have them
# open any more. With last = postcopy it is at work for long after.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2 --link 200mbit --set move.last=postcopy

# What is mapped privately and written goes ahead, in blocks; the same contents then come out of these. The rest is memory that follows later.
cat >"$work/rank.py" <<'EOF'
import mmap, os, shutil, subprocess, sys
places = "/tmp/sleep", "/dev/shm/sleep"
kept = []
for place in places:
    shutil.copy("/usr/bin/sleep", place)
    with open(place, "rb") as f:
        pages = mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    for at in range(0, len(pages), 4096):
        pages[at] = pages[at]
    kept.append(pages)
programs = [subprocess.Popen([place, "1000"]) for place in places]
memory = bytearray(24 << 20)
print("rank: running", flush=True)
while not os.path.exists(sys.argv[1]):
    memory[:] = os.urandom(len(memory))
good = all(p.poll() is None for p in programs)
for p in programs:
    p.kill()
print("good" if good else "BAD", flush=True)
EOF
bed_do copy "$work/rank.py" n1:/home/alice/rank.py
start own n1 --on-node-loss restart -n 1 python3 /home/alice/rank.py "$(stop_file own)"
running own
for ((i = 0; i < 2; i++)); do
    to=$(a_node_but "$(q where own 0)")
    migrate own 0 "$to" --wait --timeout 60 >"$work/migrate" 2>&1 || fail "to $to: $(<"$work/migrate")"
    q settled 60 >/dev/null || fail "not settled"
    (($(figure later_bytes) > 0)) || fail "its memory was not post-copied"
done
release own
finish own
ended_well own good
