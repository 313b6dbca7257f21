/* Capsules seen from rmd: create, adopt, drive, move and destroy them. Nothing here blocks. */
#ifndef RM_DAEMON_CAPSULE_CAPSULE_H
#define RM_DAEMON_CAPSULE_CAPSULE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "daemon/capsule/flow.h"
#include "proto/capsule.pb-c.h"

struct event_base;
struct rm_error;

/*
 * A capsule is a set of namespaces (mount, pid, net, ipc, uts) around one process tree, the
 * payload. Its PID 1 is the program rm-capsule. It holds all state, so rmd may be killed and
 * restarted at any moment: capsule_adopt_all() finds the capsules again, with everything that
 * happened meanwhile.
 *
 *   The life of a capsule    create -> run -> (exited) -> destroy
 *   A move at the source     freeze -> cut -> dump -> {destroy | open}
 *   A move at its destination
 *                            create(cut) -> restore_prepare -> restore -> {open | destroy}
 *
 * capsule_open() at the source undoes what came before it: the capsule is not cut off any more, its
 * payload is thawed, and its output is pumped again.
 *
 * After restore the processes exist but stay frozen and cut off until open: an attempt that is
 * given up has had no effect on anything outside.
 */
struct capsule_ctx;
struct capsule;

enum {
        CAPSULE_STDIN = 0,
        CAPSULE_STDOUT = 1,
        CAPSULE_STDERR = 2,

        CAPSULE_ID_MAX = 64,
        CAPSULE_GROUPS_MAX = 1024,
        CAPSULE_PEERS_MAX = 1024 * 1024 / 16,
        CAPSULE_HOSTS_MAX = 1024 * 1024,
        CAPSULE_ARGS_MAX = 2 * 1024 * 1024, /* argv and environment together */
        CAPSULE_AGENT_COMMAND_MAX = 128 * 1024,
};

/* How long a capsule may stand still, so that its peers' connections outlive it. The kernel's
 * limits on sending again are set for it (tune() in init/net/link.c), and PRRTE's keepalive takes
 * 180 s to lose patience. */
#define CAPSULE_SILENCE_MAX_USEC (120U * 1000000U)

/* The file systems of a capsule that are its own; the contents move with it. Seen from the host
 * they are below capsule_root(). NULL-terminated. */
extern const char *const capsule_tmpfs_mounts[]; /* "/tmp", "/dev/shm", "/run" */

struct capsule_config {
        struct event_base *base;
        const char *runtime_dir;   /* /run/rmd/capsules; made with mode 0700 */
        const char *cgroup_parent; /* directory in a cgroup v2 (or v1 freezer) tree; NULL: found by itself */
        const char *init_path;     /* /usr/libexec/rmd/rm-capsule */
        const char *criu_path;     /* /usr/sbin/criu */
        const char *kdat_path;     /* /run/criu.kdat */
        const char *writable;      /* directories of the node, separated by spaces, that capsules may write in; NULL: none */
};

/* The limits of what the payload of a capsule may use, where the host's control groups can hold it
 * to that. UINT64_MAX: as much as there is. */
struct capsule_limits {
        uint64_t memory_bytes; /* also what its own file systems are sized by, which needs no control group */
        uint64_t pids;         /* processes and threads */
};

/* Copies what it needs of `config`. */
int capsule_ctx_create(const struct capsule_config *config, struct capsule_ctx **ret, struct rm_error *error);
/* Lets go of all capsules and leaves them running. NULL ok. */
void capsule_ctx_destroy(struct capsule_ctx *ctx);

struct capsule_spec {
        const char *id;         /* [A-Za-z0-9._-]{1,64}, not starting with a dot: names the runtime directory and cgroup */
        const char *hostname;
        const char *hosts;      /* text of /etc/hosts in the capsule; NULL: the node's */
        const char *uplink;     /* interface of the node the link is made on; NULL: no link but lo */
        uint32_t address;       /* IPv4, network byte order */
        uint8_t prefix;         /* length, 1..32 */
        uint8_t mac[6];         /* the first two bytes are those of all capsules of the job: others' frames are dropped */
        uint32_t gateway;       /* 0: none */
        const uint32_t *peers;  /* addresses of the job's capsules, network byte order; no others can be talked to */
        size_t n_peers;
        bool cut;               /* made cut (destination of a move) */
        bool fenced;            /* runs only while it has a lease: begins without one, see capsule_renew_lease() */
        /* A restore is tried here, beside the capsule that it was made of, which runs on: the link
         * has its address and leads nowhere, files of the node are only looked at, and what was
         * restored never runs: capsule_open(), capsule_thaw() and capsule_run() fail with
         * -EPERM. */
        bool drill;
        uid_t uid; /* owner of the payload */
        gid_t gid;
        const gid_t *groups; /* supplementary */
        size_t n_groups;
        const char *spool_dir; /* on the node's disk, made with mode 0700 when missing; output is kept here */
        /* The most that all spools of this owner, which are beside it, may hold; then its output is
         * not taken. 0: no limit. */
        uint64_t spool_max_bytes;
        uint64_t spool_reserve_bytes; /* of its file system that is left free, at most a quarter */
        struct capsule_limits limits; /* memory_bytes 0: none of both. With `cut` they hold from capsule_apply_limits() on */
};

/* The reason why output cannot be kept; as in capsule.proto. */
enum capsule_stall {
        CAPSULE_STALL_NONE,
        CAPSULE_STALL_QUOTA, /* spool_max_bytes */
        CAPSULE_STALL_RESERVE, /* spool_reserve_bytes */
        CAPSULE_STALL_DISK,
};

/* The callbacks, all optional. They are called from the event loop only, never from inside a call
 * of this library. A callback may destroy the capsule. */
struct capsule_callbacks {
        /* Created or adopted, and answering; or not (error < 0, text says why; then only
         * capsule_destroy makes sense). */
        void (*ready)(struct capsule *capsule, int error, const char *text, void *userdata);
        /* The spool of `stream` now reaches to `end` (bytes since the start of the payload, over
         * all moves). */
        void (*output)(struct capsule *capsule, int stream, uint64_t end, void *userdata);
        /* rm-agent in the capsule asks for `command` (a line for /bin/sh) to be run in the capsule
         * named `host`. Repeated after adoption and after a move for those not yet answered; `id`
         * stays the same and is unique in the capsule. */
        void (*agent_request)(struct capsule *capsule, const char *id, const char *host, const char *command, void *userdata);
        /* The rm-agent of that request is gone (killed): end what it had asked for. No reply is
         * wanted. */
        void (*agent_gone)(struct capsule *capsule, const char *id, void *userdata);
        /* The payload's root ended with `wait_status` (as of waitpid(2)) and all output is in the
         * spool. Repeated after adoption. */
        void (*exited)(struct capsule *capsule, int wait_status, void *userdata);
        /* The blocker that is known to keep the payload from being moved, in one line; "": there is
         * none. Told after `ready`, and when it changes: PID 1 looks every ten seconds, more rarely
         * where it changes often. `processes`: another number when the payload has other processes;
         * 0: not known. */
        void (*blocker)(struct capsule *capsule, const char *text, uint64_t processes, void *userdata);
        /* The capsule's output is not taken for now. Told again only for another reason. NULL
         * ok. */
        void (*stalled)(struct capsule *capsule, enum capsule_stall why, void *userdata);
        /* The capsule came by a move without all of its memory: told every second, and when nothing
         * is missing any more (status.filling is false), or PID 1 has killed it (status.killed).
         * NULL ok. */
        void (*filling)(struct capsule *capsule, void *userdata);
        /* The capsule was fenced, and now has a lease again. NULL ok. */
        void (*unfenced)(struct capsule *capsule, void *userdata);
        /* status.resize_said, status.ranks_said or status.progress.own_state is another. NULL
         * ok. */
        void (*rank_said)(struct capsule *capsule, void *userdata);
        /* PID 1 died, and with it everything in the capsule. Only capsule_destroy makes sense
         * now. */
        void (*lost)(struct capsule *capsule, const char *text, void *userdata);
};

/* Makes the capsule; `ready` reports the outcome. What `spec` points at is copied. Errors: -EINVAL
 * with text for a bad spec, -EEXIST, -errno. */
int capsule_create(struct capsule_ctx *ctx, const struct capsule_spec *spec, const struct capsule_callbacks *callbacks,
                   void *userdata, struct capsule **ret, struct rm_error *error);

/* Takes over every capsule found in the runtime directory: `choose` is called for each and returns
 * the userdata for its callbacks; `ready` follows for each. Dead leftovers also appear and report
 * an error in `ready`. Returns how many, or -errno. */
typedef void *(*capsule_adopt_fn)(struct capsule *capsule, const char *id, void *arg);
int capsule_adopt_all(struct capsule_ctx *ctx, const struct capsule_callbacks *callbacks, capsule_adopt_fn choose, void *arg,
                      struct rm_error *error);

const char *capsule_id(const struct capsule *capsule);
/* NULL when there is none of that name. */
struct capsule *capsule_find(struct capsule_ctx *ctx, const char *id);
/* PID of its PID 1 as the node sees it; 0 when not ready. */
pid_t capsule_init_pid(const struct capsule *capsule);
/* "/proc/PID/root" of PID 1: the capsule's mounts seen from the node (follow with a path of
 * capsule_tmpfs_mounts). Valid until the capsule is destroyed; NULL when not ready. */
const char *capsule_root(const struct capsule *capsule);

/* The control group that its payload is in, and that of its PID 1, which is neither frozen nor
 * limited; directories, malloc'ed. */
char *capsule_payload_cgroup(const struct capsule *capsule);
char *capsule_init_cgroup(const struct capsule *capsule);
/* The control group with all of its processes that the controller memory has, or NULL; valid as
 * long as the capsule is. */
const char *capsule_memory_cgroup(const struct capsule *capsule);

enum capsule_phase {
        CAPSULE_CREATING, /* until `ready` */
        CAPSULE_EMPTY, /* no payload yet */
        CAPSULE_RUNNING,
        CAPSULE_FROZEN,
        CAPSULE_DUMPING,
        CAPSULE_RESTORING,
        CAPSULE_RESTORED, /* frozen and filtered, waits for open */
        CAPSULE_EXITED,
        CAPSULE_LOST,
};
enum capsule_phase capsule_phase(const struct capsule *capsule);
const char *capsule_phase_name(enum capsule_phase phase);

/* The progress of the payload, as its programs tell by librmrt. */
struct capsule_progress {
        uint32_t ranks; /* that have said so; 0: none, and nothing else is set but the last five */
        uint64_t done; /* steps, of the rank that is furthest behind */
        uint64_t total; /* 0: not known */
        double goal_min, goal_max; /* steps per second; 0: none */
        uint64_t done_usec; /* when that rank had done so many, monotonic */
        uint32_t excluding; /* of the next: have memory that need not be carried */
        uint32_t listening; /* ranks that want to be told something, also if `ranks` is 0 */
        uint32_t placing; /* of these: have places to be saved at */
        bool own_state_said; /* by rank 0, which is here, and what: the program restores itself */
        bool own_state;
};

/* The facts about growing and shrinking that rank 0 has told. */
struct capsule_resize_said {
        bool awake; /* the group is parked, and its ranks have not said for long that they wait: it runs */
        bool listens, ending;
        uint64_t begun, done;
        uint32_t ranks;
};

/* The facts that are known of the ranks of a group in a job that goes on without lost ones. */
struct capsule_ranks_said {
        bool speaks; /* one has said that it goes on without others */
        bool finished; /* all that are not lost have ended MPI_Finalize */
        const uint32_t *lost; /* of the group; valid until the next event of the capsule */
        size_t n_lost;
};

/* The ends of the ranks of a group that have ended by themselves, as its MPI daemon says, which is
 * the user's. Times are real; 0: none has. */
struct capsule_rank_ends {
        int signal; /* of the first that one has killed */
        uint64_t signal_usec;
        int exit_code; /* of the first that has returned another than 0 */
        uint64_t exit_usec;
        bool all_well; /* there are some, and all have ended with 0 */
};

struct capsule_status {
        enum capsule_phase phase;
        bool cut; /* nothing gets in or out */
        bool fenced; /* it has no lease, and so the payload stands still, cut off */
        uint32_t ending; /* the signal that capsule_end_ranks() gave last; 0: none */
        bool stdin_closed;
        uint64_t stdin_offset; /* bytes the payload's stdin FIFO has taken */
        uint64_t output_end[3]; /* [CAPSULE_STDOUT], [CAPSULE_STDERR] */
        uint64_t output_begin[3]; /* what the spool still holds begins here */
        pid_t payload_pid; /* inside the capsule; 0: none */
        int wait_status; /* when EXITED */
        uint64_t end_real_usec; /* when it ended; 0: not known */
        struct capsule_rank_ends rank_ends; /* then */
        int op_error; /* outcome of the last dump or restore: 0 or -errno */
        char op_text[512]; /* and its text */
        /* Restored without all of its memory, which PID 1 gives to it while it runs: it cannot be
         * dumped before it has all. */
        bool filling;
        uint64_t fill_bytes; /* that are still missing */
        uint64_t later_faults; /* waited for memory that was still at the source of the move */
        uint64_t later_p99_usec; /* for so long at most in 99 of 100 cases */
        bool broken; /* killed, and cut off before, as the source of its move is lost */
        char killed[320]; /* why PID 1 has killed the payload itself; "": it has not */
        struct capsule_progress progress;
        struct capsule_resize_said resize_said;
        struct capsule_ranks_said ranks_said;
};
/* Last known status; kept up to date by PID 1. Fresh when `ready` is called. */
void capsule_get_status(const struct capsule *capsule, struct capsule_status *ret);

/* Completion of one operation; called exactly once for each operation that was started (returned
 * 0), with -ECANCELED when the capsule is destroyed first and -ENOTCONN when PID 1 dies. `text` is
 * never NULL and says what went wrong. Requests are carried out in the order they were made; the
 * next need not wait for the completion of the last. */
typedef void (*capsule_done_fn)(struct capsule *capsule, int error, const char *text, void *arg);

struct capsule_command {
        const char *const *argv; /* argv[0] is looked up in the payload's PATH */
        const char *const *env; /* complete environment; NULL: empty */
        const char *cwd;
        mode_t umask;
        int nice; /* from 0 to 19 */
        uint32_t io_priority; /* as in JobSpec, as the next one */
        uint32_t scheduling;
        const struct rlimit *rlimits; /* by RLIMIT_*; RLIM_NLIMITS entries, or NULL: PID 1's own */
        bool stdin_null; /* true: /dev/null, capsule_input is refused */
};
/* Done when the program runs; "program not found" and the like are errors here. */
int capsule_run(struct capsule *capsule, const struct capsule_command *command, capsule_done_fn done, void *arg);

/* Sends a signal to the payload's root, or with `all` to every process of the payload. */
int capsule_signal(struct capsule *capsule, int signo, bool all, capsule_done_fn done, void *arg);

/* The ranks in it get the signal. Done when all of them have ended, or `wait_usec` after the first
 * such request; what has ended mpirun hears of only when it ends the job itself. The capsule cannot
 * be frozen any more: -EBUSY if it is already. In the head, which has no ranks, that is all. */
int capsule_end_ranks(struct capsule *capsule, int signo, uint64_t wait_usec, capsule_done_fn done, void *arg);

/* Gets how the ranks have ended until now. `ends` is valid during the call, and NULL if there is an
 * error. */
typedef void (*capsule_rank_ends_fn)(struct capsule *capsule, int error, const struct capsule_rank_ends *ends, void *arg);
int capsule_get_rank_ends(struct capsule *capsule, capsule_rank_ends_fn done, void *arg);

/* Stops all processes (cgroup freezer). Done when they stand still; -ETIMEDOUT (and thawed again)
 * after 5 s. */
int capsule_freeze(struct capsule *capsule, capsule_done_fn done, void *arg);
int capsule_thaw(struct capsule *capsule, capsule_done_fn done, void *arg);
/* Cuts the capsule off: from now on nothing gets in or out, not even ARP. A frozen payload is
 * looked at before: -EOPNOTSUPP when it holds what no move can carry, -EAGAIN when it is about to
 * let go of it (a lock), each with a text for people; then it is not cut. */
int capsule_cut(struct capsule *capsule, capsule_done_fn done, void *arg);
/* The way out of every state of a move: the capsule is no longer cut off, its payload is thawed,
 * stdio is pumped, and its address is announced. */
int capsule_open(struct capsule *capsule, capsule_done_fn done, void *arg);

/* Tells those ranks that want to know, if any do (status.progress.listening), what is near. Done
 * when they have done what they want to do before, or after `wait_usec`; other errors than
 * -ECANCELED mean the same. */
enum capsule_capture {
        CAPSULE_MOVE = 1,
        CAPSULE_CHECKPOINT,
        /* Ranks give up what need not be carried, if any can (status.progress.excluding), before
         * memory is read for a move or a checkpoint. */
        CAPSULE_DROP,
        /* A checkpoint waits for those ranks that have places to be saved at
         * (status.progress.placing), and these wait there until it is over; again: they go on to
         * their next places. */
        CAPSULE_PLACE,
};
int capsule_announce(struct capsule *capsule, enum capsule_capture capture, uint64_t wait_usec, capsule_done_fn done, void *arg);
/* Tells them that what was announced last is over: given up, or done, and the payload runs on here.
 * Does nothing if something else was announced last. */
int capsule_announce_over(struct capsule *capsule, enum capsule_capture capture);

/* Starts CRIU so that it only waits for its order: takes its start-up out of the freeze. Optional,
 * any time before. Where it runs: -EOPNOTSUPP with a text for people when it holds what no move can
 * carry, -EBUSY with one while a process waits where nothing stops it. */
int capsule_criu_preload(struct capsule *capsule, capsule_done_fn done, void *arg);

/* Dumps the frozen payload into `images_dir` (path on the node, which only root may enter). With
 * `stream` CRIU writes to the socket streamer-capture.sock in it, which must exist and be listened
 * on. With `pages` private memory is left out: it travels apart. The payload stays frozen, whatever
 * the outcome. */
int capsule_dump(struct capsule *capsule, const char *images_dir, bool stream, bool pages, uint64_t timeout_usec,
                 capsule_done_fn done, void *arg);

/* The carry must go from source to destination beside images and tmpfs contents: counters of stdio,
 * open agent requests. Opaque bytes; taken at the source when frozen, handed to restore_prepare at
 * the destination. */
enum { CAPSULE_SAVED_STATE_MAX = 7 * 512 * 1024 };
typedef void (*capsule_saved_state_fn)(struct capsule *capsule, int error, const char *text, const void *saved_state, size_t size,
                                       void *arg);
int capsule_get_saved_state(struct capsule *capsule, capsule_saved_state_fn done, void *arg);
/* Gets the carry for a checkpoint. Files that are written in place, of `max_bytes` together at
 * most, are copied to `files_dir` (as `images_dir` above; "": they are not), which then travels
 * too, as CAPSULE_FILES_DIR beside the images. -EFBIG: they are larger. */
#define CAPSULE_FILES_DIR "files"
int capsule_get_saved_state_and_files(struct capsule *capsule, const char *files_dir, uint64_t max_bytes,
                                      capsule_saved_state_fn done, void *arg);

/* Gets what the payload has sent over its TCP connections, by the address at the other end: sums
 * over those there are now, so they may fall, and begin at 0 after a restore. Only while it runs
 * (-EBUSY). `flows` is valid during the call. */
typedef void (*capsule_flows_fn)(struct capsule *capsule, int error, const char *text, const struct capsule_flow *flows, size_t n,
                                 void *arg);
int capsule_get_flows(struct capsule *capsule, capsule_flows_fn done, void *arg);

/* All threads of the payload may run on these CPUs only, and so may what they start. Works without
 * PID 1. Those who have bound themselves are not asked; but with `keep_narrower` they keep what of
 * theirs is among these, unless it is just `was` (NULL ok: nothing is), what they were given
 * before. -ENOENT, or why some could not. */
int capsule_bind(struct capsule *capsule, const cpu_set_t *cpus, bool keep_narrower, const cpu_set_t *was);

/* ---- limits ---- */

/* Returns the limits of the specification that the capsule was made by. */
void capsule_get_limits(const struct capsule *capsule, struct capsule_limits *ret);
/* Holds the payload to its limits from now on: used for one that has come by a move, since the
 * restore itself needs more for a while. Returns 0 also where the host cannot; negative errno. */
int capsule_apply_limits(struct capsule *capsule);
/* Confines all threads of the payload, and those to come, to these CPUs, whatever they ask for.
 * -ENOTSUP without a cpuset. */
int capsule_confine(struct capsule *capsule, const cpu_set_t *cpus);
/* A control group of the payload's, malloc'ed, whose limit of processor time may be set until
 * capsule_slow_end(), which takes it off; NULL: the host has none. Ends with the capsule, too, and
 * when it is adopted. */
char *capsule_slow_begin(struct capsule *capsule);
void capsule_slow_end(struct capsule *capsule);
/* Can the host limit memory, processes, cores? */
enum capsule_resource { CAPSULE_MEMORY, CAPSULE_PIDS, CAPSULE_CORES };
bool capsule_can_limit(const struct capsule_ctx *ctx, enum capsule_resource which);
/* All capsules together leave so much of the node's memory to the rest of it. */
void capsule_reserve_memory(struct capsule_ctx *ctx, uint64_t total_bytes, uint64_t reserve_bytes);

/* Destination: counters set, CRIU preloaded. `carry` NULL: from zero. */
int capsule_restore_prepare(struct capsule *capsule, const void *saved_state, size_t size, capsule_done_fn done, void *arg);
/* The tmpfs contents must be in place. Leaves the payload frozen and filtered. With `pages` its
 * private memory lies in the directory "pages" of images_dir; PID 1 takes the files from there, and
 * gives their contents to the payload from now on (status.filling), without rmd. */
int capsule_restore(struct capsule *capsule, const char *images_dir, bool pages, uint64_t timeout_usec, capsule_done_fn done,
                    void *arg);
/* How files go back with a job, as of message Restore in capsule.proto. */
struct capsule_rollback {
        bool other_files;
        uint64_t left_ago_usec;
};
/* Restores a checkpoint, after which the processes had gone on (in a drill: are going on, and
 * their files stay as they are): files that they had open for writing are cut back first to what
 * they were. Done with error 0: `text` names files, a space between them, that are written in place
 * and may differ from what they were. Errors: as of rollback_files(). */
int capsule_restore_back(struct capsule *capsule, const char *images_dir, bool pages, const struct capsule_rollback *rollback,
                         uint64_t timeout_usec, capsule_done_fn done, void *arg);

/* Stdin: `data` is what comes at `offset`; what was taken already is skipped, so repeating is safe.
 * -ERANGE for a gap. Done (the ack) when the FIFO took all of it; until then do not send more than
 * a few hundred kB. size 0: end of file at `offset`. */
int capsule_input(struct capsule *capsule, uint64_t offset, const void *data, size_t size, capsule_done_fn done, void *arg);

/* Everything before `offset` is safe elsewhere: the spool may drop it. PID 1 stops reading from the
 * payload (which then blocks) while more than 256 MiB are waiting for this. */
int capsule_output_ack(struct capsule *capsule, int stream, uint64_t offset);

/* This is how a job that grows and shrinks is from now on; kept by PID 1, also over moves. */
int capsule_resize_order(struct capsule *capsule, const Capsule__ResizeOrder *order);
/* Tells PID 1 of a group of a job that goes on without lost ranks about them: the group has the
 * ranks from `first` on, and these of the job were lost. `speaks`: some of the job's have said that
 * they go on without others, so one of the group that has not is waited for. */
int capsule_rank_order(struct capsule *capsule, uint32_t first, uint32_t ranks, const uint32_t *lost, size_t n_lost, bool speaks);

/* A capsule that was made with `fenced` may run until then (now_boot_usec()); UINT64_MAX: until it
 * is told otherwise. When that is over PID 1 stops it and cuts it off by itself, and undoes that
 * when it gets a later time. Meanwhile run, thaw and open fail with -ETIME. A time does not become
 * an earlier one. */
int capsule_renew_lease(struct capsule *capsule, uint64_t end_boot_usec);

/* Ends the rm-agent `id` with exit status `status` (0..255). */
int capsule_agent_reply(struct capsule *capsule, const char *id, int status, capsule_done_fn done, void *arg);

/* Kills everything in the capsule, removes cgroup, runtime directory and (with `spool`) the spool.
 * Works in any state. The handle is gone when this returns: open operations complete with
 * -ECANCELED from inside this call. `done` (NULL ok, capsule argument NULL) comes when nothing is
 * left. */
void capsule_destroy(struct capsule *capsule, bool spool, capsule_done_fn done, void *arg);

/* Is what is left of a capsule of this id still being removed? */
bool capsule_is_going(const struct capsule_ctx *ctx, const char *id);
/* Is what is left of any capsule whose id begins with `prefix` still being removed? */
bool capsule_any_is_going(const struct capsule_ctx *ctx, const char *prefix);

#endif
