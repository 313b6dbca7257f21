#!/bin/bash
# A program that writes nonsense where rm-agent leaves its requests, as fast as it can, fills neither the log of its capsule nor the
# node's /run with it; and mpirun's own requests are still heard.
# limit: 60
. "${BASH_SOURCE[0]%/*}/lib.sh"

cat >"$work/litter" <<'END'
#!/usr/bin/python3
import os, time
end, n = time.monotonic() + 4, 0
wake = os.open("/run/rm/agent/wake", os.O_WRONLY | os.O_NONBLOCK)
while time.monotonic() < end:
    for _ in range(100):
        n += 1
        path = "/run/rm/agent/1%05d-%d" % (n % 100000, n)
        with open(path + ".tmp", "w") as f:
            f.write("nonsense")
        os.rename(path + ".tmp", path + ".req")
        try:
            os.write(wake, b".")
        except BlockingIOError:
            pass  # PID 1 has not looked yet, and will
print("litter: %d requests" % n)
END
chmod 755 "$work/litter"
cluster 1 --cores 2
bed_do copy "$work/litter" "n1:$programs"
start litter n1 --group-size 1 -n 1 "$programs/litter"
until_true 20 on n1 sh -c 'ls /run/rmd/capsules/*.g0.i*/log' >/dev/null 2>&1
# The largest that its logs ever were, seen four times a second.
largest=0
until gone "${front_pid[litter]}"; do
    size=$(on n1 sh -c 'cat /run/rmd/capsules/j*/log 2>/dev/null | wc -c')
    ((size <= largest)) || largest=$size
    sleep 0.2
done
finish litter
ended_well litter 'requests'
see "$(<"$work/litter.out"); the logs had at most $largest bytes"
(($(sed 's/[^0-9]//g' "$work/litter.out") > 500)) || fail "too few to show anything"
((largest > 0)) || fail "nothing was refused"
((largest < 8192)) || fail "the logs of the capsules grew to $largest bytes"
run after n1 --group-size 1 -n 2 true
same "the next job's exit code" "$rc" 0
