#include "daemon/capsule/init/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/init/criu/criu.h"
#include "daemon/capsule/init/ctl.h"
#include "daemon/capsule/init/fencing.h"
#include "daemon/capsule/init/freezer.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/memory/fill.h"
#include "daemon/capsule/init/net/flows.h"
#include "daemon/capsule/init/ops_internal.h"
#include "daemon/capsule/init/payload.h"
#include "daemon/capsule/init/program_socket.h"
#include "daemon/capsule/init/ranks/agents.h"
#include "daemon/capsule/init/ranks/announce.h"
#include "daemon/capsule/init/ranks/ending.h"
#include "daemon/capsule/init/ranks/park.h"
#include "daemon/capsule/init/ranks/rank_ends.h"
#include "daemon/capsule/init/ranks/rank_watch.h"
#include "daemon/capsule/init/stdio.h"
#include "daemon/capsule/init/verify/watch.h"

enum { FREEZE_TIMEOUT_USEC = 5000000 };

#define EXIT_FILE "exit"

/* A request that waits until the one before is done. */
struct queued {
        struct queued *next;
        Capsule__Request *request;
        struct ticket ticket;
};

int ops_create(struct init *init, struct ops **ret) {
        struct ops *ops = xcalloc(1, sizeof(*ops));

        ops->init = init;
        ops->last = &ops->first;
        ops->freeze_deadline = UINT64_MAX;
        ops->link_deadline = UINT64_MAX;
        ops->images_fd = -1;
        *ret = ops; /* lives as long as the process */
        return 0;
}

void ops_report(struct ops *ops) {
        struct init *init = ops->init;
        Capsule__Status status = CAPSULE__STATUS__INIT;
        Capsule__RankEnds ends;
        uint64_t begin[2];
        uint64_t end[2];
        bool closed;

        stdio_get(init->stdio, begin, end, &status.stdin_offset, &closed);
        status.stdin_closed = closed;
        status.phase = init->core.phase;
        status.cut = init->link.filtered;
        status.fenced = fencing_is_done(init->fencing);
        status.n_output_begin = status.n_output_end = 2;
        status.output_begin = begin;
        status.output_end = end;
        status.payload_pid = (uint32_t) init->core.payload_pid;
        status.wait_status = init->wait_status;
        status.end_real_usec = init->end_real_usec;
        status.op_error = init->op_error;
        status.op_text = init->op_text;
        status.filling = fill_is_on(init->fill);
        status.fill_bytes = fill_bytes(init->fill);
        status.killed = (char *) fill_why_killed(init->fill);
        fill_waits(init->fill, &status.later_faults, &status.later_p99_usec);
        status.broken = fill_is_broken(init->fill);
        status.ending = (uint32_t) ending_signal(init->ending);
        if (init->core.phase == CAPSULE__PHASE__PHASE_EXITED) {
                rank_ends_read(RANK_END_PATH, &ends);
                status.rank_ends = &ends;
        }
        ctl_send(init->ctl, &status.base);
}

/* Sets the phase, and tells rmd. */
void ops_set_phase(struct init *init, Capsule__Phase phase) {
        init->core.phase = phase;
        ops_report(init->ops);
}

static void send_exited(struct ops *ops) {
        Capsule__Exited exited = CAPSULE__EXITED__INIT;

        exited.wait_status = ops->init->wait_status;
        ctl_send(ops->init->ctl, &exited.base);
}

void ops_resync(struct ops *ops) {
        ops_report(ops);
        watch_resync(ops->init->watch);
        program_socket_resync(ops->init->program_socket);
        announce_orphan(ops->init->announce);
        park_resync(ops->init->park);
        rank_watch_resync(ops->init->rank_watch);
        if (ops->init->core.phase == CAPSULE__PHASE__PHASE_EMPTY)
                return;
        stdio_report(ops->init->stdio, true);
        if (ops->init->core.phase == CAPSULE__PHASE__PHASE_RUNNING)
                agents_scan(ops->init->agents, true);
        if (ops->init->core.phase == CAPSULE__PHASE__PHASE_EXITED)
                send_exited(ops);
}

static void run_again(struct ops *ops) {
        struct init *init = ops->init;

        ops_set_phase(init, CAPSULE__PHASE__PHASE_RUNNING);
        park_scan(init->park);
        rank_watch_scan(init->rank_watch);
        stdio_resume(init->stdio);
        agents_scan(init->agents, true);
        watch_restart(init->watch);
}

/* ---- operations that take their time ---- */

static void handle_waiting(struct ops *ops);

void ops_done(struct ops *ops, int error, const char *text) {
        ops->busy = false;
        ctl_reply(ops->init->ctl, ops->current, error, text);
        handle_waiting(ops);
}

int ops_start(struct ops *ops, struct ticket ticket) {
        ops->busy = true;
        ops->current = ticket;
        return STARTED;
}

static void set_freeze_deadline(struct ops *ops, uint64_t deadline) {
        ops->freeze_deadline = deadline;
        ops->init->freezing = deadline != UINT64_MAX;
}

/* Gives up a freeze. Without a lease the processes stay as they are, and fencing.h decides about
 * them. */
static void give_up_freeze(struct ops *ops, int code, const char *text) {
        set_freeze_deadline(ops, UINT64_MAX);
        if (!fencing_is_on(ops->init->fencing))
                (void) freezer_set(ops->init, false, NULL);
        stdio_resume(ops->init->stdio);
        ops_done(ops, code, text);
}

void ops_check_frozen(struct ops *ops) {
        struct init *init = ops->init;
        int r;

        if (ops->freeze_deadline == UINT64_MAX || !freezer_is_frozen(init))
                return;
        set_freeze_deadline(ops, UINT64_MAX);
        r = stdio_empty(init->stdio);
        if (r < 0) {
                give_up_freeze(ops, r, "the output that waits cannot be kept on disk");
                return;
        }
        fencing_leave_freeze(init->fencing);
        ops_set_phase(init, CAPSULE__PHASE__PHASE_FROZEN);
        ops_done(ops, 0, NULL);
}

uint64_t ops_deadline(const struct ops *ops) {
        uint64_t freeze = ops->freeze_deadline;

        /* The freezer is looked at again and again where the kernel has no notification. */
        if (freeze != UINT64_MAX && ops->init->cgroup_events.fd < 0)
                freeze = now_usec() + 1000;
        if (ops->link_deadline < freeze)
                freeze = ops->link_deadline;
        return criu_deadline(ops->init->criu) < freeze ? criu_deadline(ops->init->criu) : freeze;
}

void ops_timeout(struct ops *ops) {
        if (ops->link_deadline <= now_usec())
                ops_take_link_down(ops);
        criu_timeout(ops->init->criu);
        ops_check_frozen(ops);
        if (ops->freeze_deadline <= now_usec())
                give_up_freeze(ops, -ETIMEDOUT, "the processes do not stop; they run on");
}

int ops_refuse_while_ending(const struct ops *ops, struct rm_error *error) {
        return ending_signal(ops->init->ending) ? error_set(error, -EBUSY, "the job is being ended") : 0;
}

static int op_freeze(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        int r;

        if (ops->init->core.phase == CAPSULE__PHASE__PHASE_FROZEN)
                return 0;
        r = ops_refuse_while_ending(ops, error);
        if (r < 0)
                return r;
        r = freezer_set(ops->init, true, error);
        if (r < 0)
                return r;
        ops->scanned = false;
        stdio_pause(ops->init->stdio);
        set_freeze_deadline(ops, now_usec() + FREEZE_TIMEOUT_USEC);
        (void) ops_start(ops, ticket);
        ops_check_frozen(ops);
        return STARTED;
}

/* A path on the node. */
int ops_open_directory(const struct ops *ops, const char *path, int *ret_fd, struct rm_error *error) {
        struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
        int fd = (int) syscall(SYS_openat2, ops->init->core.node.root, path, &how, sizeof(how));

        if (fd < 0)
                return error_sys(error, -errno, "cannot open %s", path);
        *ret_fd = fd;
        return 0;
}

int ops_open_images(struct ops *ops, const char *path, struct rm_error *error) {
        return ops_open_directory(ops, path, &ops->images_fd, error);
}

void ops_close_images(struct ops *ops, int error, const char *text) {
        cleanup_close_fd(&ops->images_fd);
        ops->init->op_error = error;
        (void) text_format(ops->init->op_text, sizeof(ops->init->op_text), "%s", text);
}

/* ---- operations that are done at once ---- */

static int op_run(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        struct init *init = ops->init;
        int r;

        /* A capture that began while the capsule was still empty has started a CRIU for a restore.
         * It is among the payload's processes, and while it waits there no group can be moved. */
        criu_unload_restore(init->criu);
        r = payload_start(init, request->run, error);
        if (r < 0)
                return r;
        if (request->run->stdin_null)
                stdio_set_null(init->stdio);
        stdio_connected(init->stdio);
        run_again(ops);
        return 0;
}

static int op_signal(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        const struct init *init = ops->init;
        int signo = request->signal->signo;
        int r;

        if (signo < 1 || signo > SIGRTMAX)
                return error_set(error, -EINVAL, "invalid signal %d", signo);
        park_stir(ops->init->park);
        if (request->signal->all)
                r = signo == SIGKILL ? cgroup_kill(init->core.node.cgroup_payload, init->core.spec->cgroup_v1)
                                     : cgroup_signal(init->core.node.cgroup_payload, signo);
        else
                r = kill(init->core.payload_pid, signo) < 0 ? -errno : 0;
        return r < 0 ? error_sys(error, r, "cannot signal") : 0;
}

static int op_end_ranks(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        const Capsule__EndRanks *order = request->end_ranks;

        if (order->signo < 1 || order->signo > SIGRTMAX)
                return error_set(error, -EINVAL, "invalid signal %d", order->signo);
        if (ops->init->core.phase != CAPSULE__PHASE__PHASE_RUNNING)
                return 0; /* it has none */
        ending_order(ops->init->ending, order, ticket);
        return STARTED;
}

static int op_thaw(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        int r = freezer_set(ops->init, false, error);

        if (r == 0 && ops->init->core.phase == CAPSULE__PHASE__PHASE_FROZEN)
                run_again(ops);
        return r;
}

static int op_open(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        struct init *init = ops->init;
        Capsule__Phase phase = init->core.phase;
        int r;

        /* A broken payload is not opened: its connections would tell the others that it has
         * died. */
        if (fill_is_broken(init->fill))
                return error_set(error, -EOWNERDEAD, "%s", fill_why_killed(init->fill));
        ops->link_deadline = UINT64_MAX;
        criu_forget_dump(init->criu);
        r = link_set_up(&init->link, true, error);
        if (r == 0)
                r = link_set_filter(&init->link, false, error);
        if (r < 0)
                return r;
        /* A payload that goes on at its source does so as if it had not been frozen. */
        if (phase == CAPSULE__PHASE__PHASE_FROZEN) {
                r = freezer_resume(init, error);
                freezer_let_go(init);
        } else
                r = freezer_set(init, false, error);
        if (r < 0)
                return r;
        link_announce(&init->link);
        if (phase == CAPSULE__PHASE__PHASE_RESTORED)
                stdio_connected(init->stdio);
        if (phase == CAPSULE__PHASE__PHASE_FROZEN || phase == CAPSULE__PHASE__PHASE_RESTORED)
                run_again(ops);
        else
                ops_report(ops);
        if (phase == CAPSULE__PHASE__PHASE_RESTORED)
                announce_arrived(init->announce, ops->back);
        else
                announce_runs(init->announce);
        return 0;
}

static int op_announce(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        const Capsule__Announce *body = request->announce;

        if (body->capture < CAPSULE__CAPTURE__CAPTURE_MOVE || body->capture > CAPSULE__CAPTURE__CAPTURE_PLACE)
                return error_set(error, -EINVAL, "nothing that this rm-capsule can announce");
        if (body->over) {
                announce_over(ops->init->announce, body->capture);
                return 0;
        }
        announce_near(ops->init->announce, body->capture, body->wait_usec, ticket);
        return STARTED;
}

static int op_input(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        const Capsule__Input *input = request->input;

        stdio_input(ops->init->stdio, ticket, input->offset, input->data.data, input->data.len);
        return STARTED;
}

static int op_output_ack(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        stdio_ack(ops->init->stdio, request->output_ack->stream, request->output_ack->offset);
        return STARTED;
}

static int op_agent_reply(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        int r = agents_reply(ops->init->agents, request->agent_reply->id, request->agent_reply->status);

        return r < 0 ? error_set(error, r, "no rm-agent waits for '%s'", request->agent_reply->id) : 0;
}

static int op_get_flows(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        cleanup_free struct capsule_flow *flows = NULL;
        size_t n = 0;
        int r = flows_read(&flows, &n, error);

        if (r < 0)
                return r;
        ctl_reply_flows(ops->init->ctl, ticket, flows, n);
        return STARTED;
}

static int op_get_rank_ends(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        Capsule__RankEnds ends;

        rank_ends_read(RANK_END_PATH, &ends);
        ctl_reply_rank_ends(ops->init->ctl, ticket, &ends);
        return STARTED;
}

static int op_resize_order(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        park_order(ops->init->park, request->resize_order);
        return STARTED;
}

static int op_rank_order(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        rank_watch_order(ops->init->rank_watch, request->rank_order);
        return STARTED;
}

static int op_lease(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        fencing_renew(ops->init->fencing, request->lease->end_boot_usec);
        return STARTED;
}

static int op_quit(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        criu_forget_dump(ops->init->criu);
        ops->init->quit = true;
        return STARTED;
}

#define IN(phase) (1U << CAPSULE__PHASE__PHASE_##phase)
#define ALWAYS (~0U)

/* `now`: also while a freeze, dump or restore goes on; others wait for its end. `leased`: the
 * payload runs after it. */
static const struct {
        op_fn *fn;
        unsigned phases;
        bool now;
        bool leased;
} operations[] = {
        [CAPSULE__REQUEST__OP_RUN] = { op_run, IN(EMPTY), false, true },
        [CAPSULE__REQUEST__OP_SIGNAL] = { op_signal, IN(RUNNING), false },
        [CAPSULE__REQUEST__OP_END_RANKS] = { op_end_ranks, IN(EMPTY) | IN(RUNNING) | IN(EXITED), false },
        [CAPSULE__REQUEST__OP_FREEZE] = { op_freeze, IN(RUNNING) | IN(FROZEN), false },
        [CAPSULE__REQUEST__OP_THAW] = { op_thaw, IN(RUNNING) | IN(FROZEN), false, true },
        [CAPSULE__REQUEST__OP_CUT] = { ops_cut, ALWAYS, false },
        [CAPSULE__REQUEST__OP_OPEN] = { op_open, IN(EMPTY) | IN(RUNNING) | IN(FROZEN) | IN(RESTORED) | IN(EXITED), false, true },
        [CAPSULE__REQUEST__OP_PRELOAD] = { ops_preload, IN(EMPTY) | IN(RUNNING) | IN(FROZEN), false },
        [CAPSULE__REQUEST__OP_DUMP] = { ops_dump, IN(FROZEN), false },
        [CAPSULE__REQUEST__OP_GET_SAVED_STATE] = { ops_get_saved_state, IN(FROZEN), false },
        [CAPSULE__REQUEST__OP_RESTORE_PREPARE] = { ops_restore_prepare, IN(EMPTY), false },
        [CAPSULE__REQUEST__OP_RESTORE] = { ops_restore, IN(EMPTY), false },
        [CAPSULE__REQUEST__OP_INPUT] = { op_input, IN(RUNNING) | IN(FROZEN) | IN(DUMPING) | IN(RESTORED), true },
        [CAPSULE__REQUEST__OP_OUTPUT_ACK] = { op_output_ack, ALWAYS, true },
        [CAPSULE__REQUEST__OP_AGENT_REPLY] = { op_agent_reply, IN(RUNNING), true },
        [CAPSULE__REQUEST__OP_GET_FLOWS] = { op_get_flows, IN(RUNNING), true },
        [CAPSULE__REQUEST__OP_GET_RANK_ENDS] = { op_get_rank_ends, ALWAYS, true },
        [CAPSULE__REQUEST__OP_ANNOUNCE] = { op_announce, IN(RUNNING) | IN(FROZEN), false },
        [CAPSULE__REQUEST__OP_LEASE] = { op_lease, ALWAYS, true },
        [CAPSULE__REQUEST__OP_RESIZE_ORDER] = { op_resize_order, ALWAYS, true },
        [CAPSULE__REQUEST__OP_RANK_ORDER] = { op_rank_order, ALWAYS, true },
        [CAPSULE__REQUEST__OP_QUIT] = { op_quit, ALWAYS, true },
};

static const char *const phase_names[] = {
        "being made", "empty", "running", "frozen", "dumping", "restoring", "restored", "ended"
};

static void carry_out(struct ops *ops, const Capsule__Request *request, struct ticket ticket) {
        struct init *init = ops->init;
        struct rm_error error = { 0 };
        int r;

        if (!(operations[request->op_case].phases & (1U << init->core.phase))) {
                error_set(&error, init->core.phase == CAPSULE__PHASE__PHASE_EXITED ? -ESRCH : -EBUSY,
                          "not possible while the capsule is %s", phase_names[init->core.phase]);
                ctl_reply(init->ctl, ticket, error.code, error.text);
                return;
        }
        if (operations[request->op_case].leased && init->core.spec->drill)
                r = error_set(&error, -EPERM, "what is restored in a drill never runs");
        else if (operations[request->op_case].leased && fencing_is_on(init->fencing))
                r = error_set(&error, -ETIME, "this node has no lease for it");
        else
                r = operations[request->op_case].fn(ops, request, ticket, &error);
        if (r <= 0)
                ctl_reply(init->ctl, ticket, r, r < 0 ? error_text(&error) : NULL);
}

static void handle_waiting(struct ops *ops) {
        while (!ops->busy && ops->first) {
                struct queued *w = ops->first;

                ops->first = w->next;
                if (!ops->first)
                        ops->last = &ops->first;
                carry_out(ops, w->request, w->ticket);
                capsule__request__free_unpacked(w->request, NULL);
                free(w);
        }
}

void ops_handle(struct ops *ops, Capsule__Request *request, struct ticket ticket) {
        struct queued *w;

        if (request->op_case >= ARRAY_SIZE(operations) || !operations[request->op_case].fn) {
                ctl_reply(ops->init->ctl, ticket, -ENOSYS, "rm-capsule is older than rmd and does not know this request");
        } else if (ops->busy && !operations[request->op_case].now) {
                w = xcalloc(1, sizeof(*w));
                w->request = request;
                w->ticket = ticket;
                *ops->last = w;
                ops->last = &w->next;
                return;
        } else
                carry_out(ops, request, ticket);
        capsule__request__free_unpacked(request, NULL);
}

/* The others may still write: they end first, then what is left in the FIFOs is all there will
 * be. */
static void end_others(const struct init *init) {
        uint64_t deadline = now_usec() + 500000;

        (void) cgroup_kill(init->core.node.cgroup_payload, init->core.spec->cgroup_v1);
        while (cgroup_is_populated(init->core.node.cgroup_payload, init->core.spec->cgroup_v1) == 1 && now_usec() < deadline) {
                ending_let_go(init->ending);
                usleep(500);
        }
}

void ops_payload_exited(struct ops *ops, int wait_status) {
        struct init *init = ops->init;
        char text[16];

        init->wait_status = wait_status;
        init->core.payload_pid = 0;
        init->end_real_usec = now_real_usec();
        park_forget(init->park);
        end_others(init);
        fill_end(init->fill);
        if (stdio_empty(init->stdio) < 0)
                log_error("the last output is lost: the disk is full");
        /* The status is kept in a file, in case we die before rmd has asked for it. */
        snprintf(text, sizeof(text), "%d\n", wait_status);
        (void) write_file_atomic(EXIT_FILE, text, strlen(text), 0600, false);
        ops_set_phase(init, CAPSULE__PHASE__PHASE_EXITED);
        send_exited(ops);
        if (ops->freeze_deadline != UINT64_MAX) {
                set_freeze_deadline(ops, UINT64_MAX);
                ops_done(ops, -ESRCH, "the program has ended");
        }
}
