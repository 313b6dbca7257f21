#!/bin/bash
# What a user could not read himself comes into no image of his: files of others that his job has open without the right to read them, also after they have lost their
# names, in whatever socket, the memory of programs that were set-user-ID, and what the kernel tells only root. That an export is encrypted (security/export) is a second barrier.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 4
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"
for n in $(nodes); do
    on "$n" sh -c "umask 077; for name in path named queue memory; do echo TOP-SECRET-of-root >/etc/secret-\$name; done"
    on "$n" sh -c "umask 022; echo for everybody >/etc/open-to-all; install -m 4755 $programs/hides /usr/local/bin/hides-as-root"
done

# begin NAME PROGRAM HOW FILE
begin() {
    start "$1" n1 --checkpoint 1h --on-node-loss restart -n 1 "$2" --how="$3" --file="$4" --stop-file="$(stop_file "$1")"
    must "$1 does not run: $(<"$work/$1.err")" until_true 30 grep -q '^hides: running' "$work/$1.out"
}
# replace FILE: as who saves a file does.
replace() {
    on n1 sh -c "umask 077; echo new >$1.new && mv $1.new $1"
}
# refused NAME WHY: neither saved nor moved.
refused() {
    as alice n1 rmctl checkpoint-job "$(job "$1")" --timeout 30 >"$work/said" 2>&1 && fail "$1 is saved: $(<"$work/said")"
    grep -q "$2" "$work/said" || fail "$1: why it is not saved: $(<"$work/said")"
    see "$1: $(tail -n 1 "$work/said" | grep -o 'process.*')"
    rmctl migrate-job "$(job "$1")" --group 0 --to n2 --wait --timeout 30 >"$work/said" 2>&1 && fail "$1 is moved: $(<"$work/said")"
    grep -q "$2" "$work/said" || fail "$1: why it is not moved: $(<"$work/said")"
}
ends() {
    release "$1"
    finish "$1"
    same "the exit code of $1" "$rc" 0
}

# A user changes his own password, as himself, while his job holds the file that had all passwords: nothing of that file is in what he gets from rmd.
cat >"$work/passwd-of-alice" <<'END'
#!/usr/bin/python3
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execlp("passwd", "passwd")
for question, answer in (b"Current password:", sys.argv[1]), (b"New password:", sys.argv[2]), (b"Retype new password:", sys.argv[2]):
    said = b""
    while question not in said:
        said += os.read(terminal, 4096)
    os.write(terminal, answer.encode() + b"\n")
try:
    while os.read(terminal, 4096):
        pass
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
chmod 755 "$work/passwd-of-alice"
bed_do copy "$work/passwd-of-alice" "n1:$programs"
on n1 sh -c 'printf "alice:%s\nbob:%s\n" first-Word-17 Word-of-bob-18 | chpasswd'
before=$(on n1 stat -c %i /etc/shadow)
mapfile -t hashes < <(on n1 sed -n 's/^\(alice\|bob\):\([^:]*\):.*/\2/p' /etc/shadow)
same "hashes" "${#hashes[@]}" 2
begin password "$programs/hides" path /etc/shadow
must "alice cannot change her password" as alice n1 "$programs/passwd-of-alice" first-Word-17 second-Word-19
[[ $(on n1 stat -c %i /etc/shadow) != "$before" ]] || fail "passwd has not replaced /etc/shadow: the test tells nothing"
refused password 'has /etc/shadow.* open, which its owner cannot read'
as alice n1 rmctl drill "$(job password)" --timeout 60 >"$work/password.drill" 2>&1 && fail "a drill says that it can be saved: $(<"$work/password.drill")"
as alice n1 rmctl export-checkpoint "$(job password).1" /home/alice/password.export >"$work/said" 2>&1 && fail "there is something to export"
as alice n1 rmctl show-job "$(job password)" >"$work/password.shown"
as alice n1 rmctl events >"$work/password.events"
# A core of the job's own program has no more than the program had.
on n1 pkill -ABRT -x hides
finish password
for hash in "${hashes[@]}"; do
    grep -qF -e "$hash" "$work"/password.* && fail "alice is told a hash: $(grep -lF -e "$hash" "$work"/password.*)"
    same "files of alice's, of rmd's and of the log with a hash" \
        "$(on n1 grep -rlF -e "$hash" /home/alice /var/lib/rmd /run/rmd /var/crash /tmp 2>/dev/null || true)$(bed_do logs n1 | grep -F -e "$hash" || true)" ""
done

begin path "$programs/hides" path /etc/secret-path
replace /etc/secret-path
refused path 'has /etc/secret-path.* open, which its owner cannot read'
ends path
# Its name may go at any time.
begin named "$programs/hides" path /etc/secret-named
refused named 'has /etc/secret-named open, which its owner cannot read'
ends named
begin queue "$programs/hides" queue /etc/secret-queue
replace /etc/secret-queue
refused queue 'has descriptors under way in a socket'
ends queue
begin memory /usr/local/bin/hides-as-root memory /etc/secret-memory
refused memory 'keeps its memory from its owner'
ends memory
# What the kernel tells only root: a restore would open it as CRIU.
begin frames "$programs/hides" read /proc/self/pagemap
refused frames 'uses /proc/[0-9]*/pagemap, of which the kernel tells CRIU more than its owner'
ends frames

# Children of rmd and of PID 1 can do what rmd-cluster(7) says, and no more, while a group is saved and moved.
declare -A may=()
declare -A bits=([none]=0 [all]=$((~0)) [dac_read_search]=$((1 << 2)) [net_admin]=$((1 << 12)) [net_raw]=$((1 << 13)) [sys_ptrace]=$((1 << 19)) [sys_admin]=$((1 << 21)))
while read -r process who names; do
    may["$process $who"]=0
    for name in $names; do
        [[ ${bits[$name]:-} ]] || fail "rmd-cluster(7) names the capability '$name', which this test does not know"
        may["$process $who"]=$((may["$process $who"] | bits[$name]))
    done
done < <(sed -n '/^\.Ss Privileges of processes/,/^\.El/s/^\.It \([a-z]*[a-z-]*\) Ta \([a-z]*\) Ta \(.*\)/\1 \2 \3/p' "${BASH_SOURCE[0]%/*}/../../../docs/rmd-cluster.7")
((${#may[@]} > 10)) || fail "no table of privileges in rmd-cluster(7)"
# judge NODE: what was seen there.
judge() {
    local process uid set core who all=0
    while read -r process uid set core; do
        case $uid in 0) who=root ;; 65534) who=nobody ;; *) who=owner ;; esac
        [[ $process != rmd ]] || continue
        [[ ${may["$process $who"]:-} || $who == root ]] || process=programs
        [[ ${may["$process $who"]:-} ]] || fail "on $1 a process $process is $who, which rmd-cluster(7) does not say"
        [[ $who != owner || $process == programs || $set == 0 || $core == [01] ]] ||
            fail "on $1 a process $process of owner with capabilities $set may leave a core of $core bytes, which he could read"
        ((0x$set & ~may["$process $who"])) && fail "on $1 a process $process of $who has capabilities $set, more than rmd-cluster(7) says"
        [[ $process == rm-mover || $process == criu && $who == owner ]] && all=$((all + 1))
    done <"$work/privileges.$1"
    ((all >= 2)) || fail "on $1 neither rm-mover nor criu were seen: the test has not looked: $(<"$work/privileges.$1")"
}

# To look at what is open takes root's time, and how much that is the user decides: who has very much is refused before anybody looks.
cat >"$work/many" <<'END'
#!/usr/bin/python3
import os, resource, sys, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
for _ in range(17000):
    os.dup(0)
print("hides: running", flush=True)
while not os.path.exists(sys.argv[-1].split("=", 1)[1]):
    time.sleep(0.02)
END
chmod 755 "$work/many"
bed_do copy "$work/many" "n1:$programs"
begin many "$programs/many" many /etc/open-to-all
refused many 'has more than a move can look at (170.* descriptors in a process, and there may be 16384)'
ends many

# What runs as him with capabilities, to save and to restore his job, gives him nothing of them: he takes its descriptors and its memory, traces it, and lets it leave a core.
cat >"$work/reaches" <<'END'
#!/usr/bin/python3
import ctypes, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD, PROCESS_VM_READV, PTRACE_SEIZE = 438, 310, 0x4206
seen, all_got = {}, set()
def name_of(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()
def opened(path):
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        # A directory, or a program, is had by its being opened.
        return len(os.read(fd, 4096)) - 1 if path.rsplit("/", 1)[1] in ("mem", "environ", "maps", "auxv", "syscall") else fd
    except OSError:
        return None
    finally:
        os.close(fd)
def core(pid):
    try:
        hard = resource.prlimit(pid, resource.RLIMIT_CORE)[1]
        resource.prlimit(pid, resource.RLIMIT_CORE, (hard, hard))
        return None if hard in (0, 1) else 0
    except OSError:
        return None
def look(pid):
    name, got = name_of(pid), set()
    def done(what, result):
        if result is not None and result >= 0:
            got.add(f"{what} of {name}")
    if name not in ("criu", "rm-capsule", "rm-mover", "rm-uffd") or os.stat(f"/proc/{pid}").st_uid != os.getuid():
        return
    seen[name] = seen.get(name, 0) + 1
    try:
        pidfd = os.pidfd_open(pid)
        for fd in range(12):
            done("a descriptor", libc.syscall(PIDFD_GETFD, pidfd, fd, 0))
        os.close(pidfd)
    except OSError:
        pass
    word = ctypes.create_string_buffer(8)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(word), 8)
    remote = (ctypes.c_void_p * 2)(0x400000, 8)
    if libc.syscall(PROCESS_VM_READV, pid, local, 1, remote, 1, 0) < 0 and ctypes.get_errno() == 14:
        got.add(f"memory of {name}")
    for file in "mem", "environ", "maps", "auxv", "syscall", "fd/0", "exe", "cwd/.":
        done(file, opened(f"/proc/{pid}/{file}"))
    done("a trace", libc.ptrace(PTRACE_SEIZE, pid, 0, 0))
    if sys.argv[2] == "core":
        done("a core", core(pid))
    # What is restored has that name until it has its own, and is alice's then.
    if name_of(pid) == name:
        all_got.update(got)
while not os.path.exists(sys.argv[1]):
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                look(int(entry))
            except OSError:
                pass
print("seen:", *sorted(seen), "got:", *sorted(all_got), sep="\n")
END
chmod 755 "$work/reaches"
for n in $(nodes); do bed_do copy "$work/reaches" "$n:$programs"; done
begin reached "$programs/hides" read /etc/open-to-all
# Where it is saved no limit can be raised; where it is restored the hard one is that of what is restored.
as alice n1 "$programs/reaches" "$(stop_file reaching)" core >"$work/reached.n1" &
reaching=($!)
as alice n2 "$programs/reaches" "$(stop_file reaching)" - >"$work/reached.n2" &
reaching+=($!)
for _ in 1 2 3; do
    must "reached is not saved: $(<"$work/said")" as alice n1 rmctl checkpoint-job "$(job reached)" --timeout 60 >"$work/said" 2>&1
done
must "reached is not moved" move reached 0 n2
release reaching
wait "${reaching[@]}"
see "on n1: $(xargs <"$work/reached.n1"); on n2: $(xargs <"$work/reached.n2")"
for n in n1 n2; do
    grep -qx criu "$work/reached.$n" || fail "criu was not seen on $n: the test has not looked"
    same "what alice has got on $n" "$(sed '1,/^got:/d' "$work/reached.$n")" ""
done
ends reached

# The same of what he may read.
for how in path read maps; do
    if [[ $how == maps ]]; then
        for n in $(nodes); do
            on "$n" "$programs/privileges" "$(stop_file watchers)" >"$work/privileges.$n" &
            watchers+=($!)
        done
        begin open-maps "$programs/hides" read /proc/self/maps
    else
        begin "open-$how" "$programs/hides" $how /etc/open-to-all
    fi
    must "open-$how is not saved: $(<"$work/said")" as alice n1 rmctl checkpoint-job "$(job "open-$how")" --timeout 60 >"$work/said" 2>&1
    must "open-$how is not moved" move "open-$how" 0 n2
    ends "open-$how"
done
release watchers
wait "${watchers[@]}"
for n in $(nodes); do judge "$n"; done
same "what the stores have of it" "$(for n in $(nodes); do on "$n" sh -c 'grep -rl TOP-SECRET /var/lib/rmd' || true; done)" ""
for n in $(nodes); do on "$n" sh -c 'rm -f /etc/secret-* /etc/open-to-all /usr/local/bin/hides-as-root'; done
