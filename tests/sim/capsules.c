#include "tests/sim/capsules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/lease.h"
#include "daemon/job/launch.h"
#include "daemon/state/state.h"
#include "tests/sim/capsules_internal.h"
#include "tests/sim/park.h"

/* How long things take, at most; what is rare may take longer. */
#define MESSAGE_MAX_USEC 2000U
#define MAKE_MAX_USEC 60000U
#define FREEZE_MAX_USEC 20000U
#define END_MAX_USEC 3000000U
#define DUMP_MAX_USEC 200000U
#define FILL_MAX_USEC 3000000U
#define REMOVE_MAX_USEC 30000U
#define SCAN_USEC 5000U
#define LIFE_MAX_USEC 20000000U /* of a PID 1 that dies by itself */
/* The share of late messages, of a thousand: where all are busy. */
#define LATE 10U
#define LATE_MAX_USEC 500000U
/* The shares of failures, of a thousand. */
#define FAIL_MAKE 10U
#define FAIL_RUN 4U
#define FAIL_FREEZE 10U
#define LOCK 30U
#define FAIL_CUT 5U
#define FAIL_DUMP 20U
#define FAIL_RESTORE 20U
#define FAIL_FILL 10U
#define FAIL_LIFE 5U

struct capsules *capsules_create(struct timeline *t, struct checks *checks, struct kept *kept) {
        struct capsules *c = xcalloc(1, sizeof(*c));

        c->timeline = t;
        c->checks = checks;
        c->kept = kept;
        c->salt = timeline_random(t, UINT64_MAX);
        LIST_INIT(&c->copies);
        LIST_INIT(&c->payloads);
        LIST_INIT(&c->named);
        return c;
}

static void copy_free(struct copy *copy) {
        LIST_REMOVE(copy, entry);
        payload_drop(copy);
        park_finish(copy);
        while (!STAILQ_EMPTY(&copy->waiting)) {
                struct waiting *waiting = STAILQ_FIRST(&copy->waiting);

                STAILQ_REMOVE_HEAD(&copy->waiting, entry);
                free(waiting);
        }
        free(copy->saved);
        free(copy->id);
        free(copy);
}

void capsules_destroy(struct capsules *c) {
        if (!c)
                return;
        while (!LIST_EMPTY(&c->copies))
                copy_free(LIST_FIRST(&c->copies));
        named_finish(c);
        free(c);
}

static struct copy *find_number(const struct capsules *c, uint64_t number) {
        struct copy *copy;

        LIST_FOREACH (copy, &c->copies, entry)
                if (copy->number == number)
                        return copy;
        return NULL;
}

struct copy *capsules_find(struct capsules *c, const struct host *host, const char *id) {
        struct copy *copy;

        LIST_FOREACH (copy, &c->copies, entry)
                if (copy->host == host && strcmp(copy->id, id) == 0)
                        return copy;
        return NULL;
}

struct copy *capsules_next(struct capsules *c, const struct host *host, struct copy *copy) {
        for (copy = copy ? LIST_NEXT(copy, entry) : LIST_FIRST(&c->copies); copy && copy->host != host;)
                copy = LIST_NEXT(copy, entry);
        return copy;
}

const char *copy_id(const struct copy *copy) {
        return copy->id;
}

static uint64_t draw(const struct copy *copy, uint64_t max_usec) {
        return timeline_random(copy->world->timeline, max_usec + 1);
}

static bool chance(const struct copy *copy, unsigned per_mille) {
        return timeline_chance(copy->world->timeline, per_mille);
}

static void trace(const struct copy *copy, const char *what) {
        timeline_trace(copy->world->timeline, host_name(copy->host), "capsule %s %s", copy->id, what);
}

/* ---- later ---- */

struct call {
        struct capsules *world;
        uint64_t number;
        copy_fn fn;
};

static void on_call(void *userdata) {
        struct call *call = userdata;
        struct copy *copy = find_number(call->world, call->number);

        if (copy)
                call->fn(copy);
        free(call);
}

void copy_later(struct copy *copy, uint64_t delay_usec, copy_fn fn) {
        struct timeline *t = copy->world->timeline;
        struct call *call = xcalloc(1, sizeof(*call));

        *call = (struct call) { copy->world, copy->number, fn };
        timeline_at(t, timeline_now_usec(t) + delay_usec, on_call, free, call);
}

/* ---- reports ---- */

struct delivered {
        struct host *host;
        uint64_t life, handle;
        capsules_report_fn fn;
        struct report report;
};

static void on_delivered(void *userdata) {
        struct delivered *delivered = userdata;

        delivered->fn(delivered->host, delivered->handle, &delivered->report);
        free(delivered);
}

static void on_arrival(void *userdata) {
        struct delivered *delivered = userdata;

        host_deliver(delivered->host, delivered->life, on_delivered, free, delivered);
}

/* Reports, and requests, of one capsule come in their order. */
static uint64_t arrival_usec(struct copy *copy) {
        uint64_t delay_usec = draw(copy, chance(copy, LATE) ? LATE_MAX_USEC : MESSAGE_MAX_USEC);
        uint64_t usec = timeline_now_usec(copy->world->timeline) + delay_usec;

        if (usec > copy->last_usec)
                copy->last_usec = usec;
        return copy->last_usec;
}

void copy_report(struct copy *copy, const struct report *report) {
        struct delivered *delivered;

        if (copy->life == 0 || copy->life != host_life(copy->host) || host_state(copy->host) == HOST_DEAD)
                return;
        delivered = xcalloc(1, sizeof(*delivered));
        *delivered = (struct delivered) { copy->host, copy->life, copy->handle, copy->report, *report };
        delivered->report.status = copy->status;
        timeline_at(copy->world->timeline, arrival_usec(copy), on_arrival, free, delivered);
}

static void send_report(struct copy *copy, enum report_kind kind, int error, const char *text) {
        struct report report = { .kind = kind, .error = error };

        (void) snprintf(report.text, sizeof(report.text), "%s", text);
        copy_report(copy, &report);
}

static void set_phase(struct copy *copy, enum capsule_phase phase) {
        if (phase != CAPSULE_FROZEN && phase != CAPSULE_DUMPING)
                copy->frozen_usec = 0;
        else if (copy->frozen_usec == 0)
                copy->frozen_usec = timeline_now_usec(copy->world->timeline);
        copy->status.phase = phase;
        send_report(copy, REPORT_STATUS, 0, "");
}

static void answer(struct copy *copy, const struct request *request, int error, const char *text) {
        struct report report = { .kind = REPORT_ANSWER, .number = request->number, .error = error };

        if (request->number == 0)
                return;
        (void) snprintf(report.text, sizeof(report.text), "%s", text);
        copy_report(copy, &report);
}

/* ---- the lease ---- */

static bool has_lease(const struct copy *copy) {
        return copy->lease_usec == UINT64_MAX || host_monotonic_usec(copy->host) < copy->lease_usec;
}

static bool is_fenced(struct copy *copy) {
        if (!copy->fenced)
                return false;
        if (!copy->fence_done && !has_lease(copy)) {
                trace(copy, "is fenced");
                copy->world->counts.fenced++;
                copy->fence_done = copy->status.fenced = true;
        }
        return copy->fence_done;
}

bool copy_runs(const struct copy *copy) {
        if (copy->dead || copy->status.phase != CAPSULE_RUNNING)
                return false;
        return !copy->fenced || has_lease(copy) || host_monotonic_usec(copy->host) < copy->lease_usec + LEASE_FENCE_USEC;
}

/* ---- it runs ---- */

/* The copy runs from now on, and did not before. */
static void run(struct copy *copy) {
        if (!copy_runs(copy))
                return; /* its lease has ended meanwhile */
        trace(copy, "runs");
        named_check(copy);
        copy->payload->runs++;
        copy->world->counts.ran += !copy->ran;
        copy->ran = true;
}

/* ---- operations ---- */

static void handle_waiting(struct copy *copy);

static void begin(struct copy *copy, const struct request *request, uint64_t usec, copy_fn end) {
        copy->busy = true;
        copy->current = *request;
        copy_later(copy, usec, end);
}

static void end(struct copy *copy, int error, const char *text) {
        copy->busy = false;
        copy->status.op_error = error;
        answer(copy, &copy->current, error, text);
        handle_waiting(copy);
}

static void op_run(struct copy *copy, const struct request *request) {
        if (chance(copy, FAIL_RUN)) {
                answer(copy, request, -ENOENT, "no such program");
                return;
        }
        payload_start(copy, request);
        copy->status.payload_pid = 2;
        set_phase(copy, CAPSULE_RUNNING);
        run(copy);
        answer(copy, request, 0, "");
}

static void op_signal(struct copy *copy, const struct request *request) {
        payload_signal(copy->payload, request->status);
        park_stir(copy);
        answer(copy, request, 0, "");
}

/* The ranks of the copy have ended some time later. */
static void on_ranks_ended(struct copy *copy) {
        if (!copy->dead && copy->busy && copy->current.op == OP_END_RANKS)
                end(copy, 0, "");
}

static void op_end_ranks(struct copy *copy, const struct request *request) {
        if (copy->status.phase != CAPSULE_RUNNING) {
                answer(copy, request, 0, "");
                return;
        }
        park_stir(copy);
        copy->status.ending = (uint32_t) request->status;
        send_report(copy, REPORT_STATUS, 0, "");
        begin(copy, request, draw(copy, END_MAX_USEC), on_ranks_ended);
}

static void on_frozen(struct copy *copy) {
        if (copy->dead || !copy->busy || copy->current.op != OP_FREEZE)
                return;
        if (copy->status.phase != CAPSULE_RUNNING) {
                end(copy, -ESRCH, "the program has ended");
        } else if (chance(copy, FAIL_FREEZE)) {
                end(copy, -ETIMEDOUT, "the processes do not stop; they run on");
        } else {
                trace(copy, "is frozen");
                set_phase(copy, CAPSULE_FROZEN);
                end(copy, 0, "");
        }
}

static void op_freeze(struct copy *copy, const struct request *request) {
        if (copy->status.phase == CAPSULE_FROZEN)
                answer(copy, request, 0, "");
        else if (copy->status.ending)
                answer(copy, request, -EBUSY, "the job is being ended");
        else
                begin(copy, request, draw(copy, FREEZE_MAX_USEC), on_frozen);
}

static void op_cut(struct copy *copy, const struct request *request) {
        if (copy->status.phase == CAPSULE_FROZEN && chance(copy, LOCK)) {
                answer(copy, request, -EAGAIN, "it holds a lock");
        } else if (copy->status.phase == CAPSULE_FROZEN && chance(copy, FAIL_CUT)) {
                answer(copy, request, -EOPNOTSUPP, "it holds what no move can carry");
        } else {
                copy->status.cut = true;
                if (copy->status.phase == CAPSULE_FROZEN && copy->cut == 0)
                        copy->cut = kept_cut(copy->world->kept);
                answer(copy, request, 0, "");
        }
}

static void check_image(struct copy *copy) {
        copy->world->counts.opened++;
        if (copy->payload->runs != copy->image_runs)
                checks_fail(copy->world->checks,
                            "%s opens capsule %" PRId32 " of job %" PRIu64
                            " as it was when it was dumped at its source, and it has run there since",
                            host_name(copy->host), copy->index, copy->job);
}

/* The copy goes on from a checkpoint. */
static void go_on(struct copy *copy) {
        kept_runs(copy->world->kept, copy->saved, host_name(copy->host));
        copy->world->counts.went_on++;
        free(copy->saved);
        copy->saved = NULL;
}

static void op_open(struct copy *copy, const struct request *request) {
        enum capsule_phase phase = copy->status.phase;

        copy->status.cut = false;
        kept_open(copy->world->kept, copy->cut);
        copy->cut = 0;
        if (phase == CAPSULE_RESTORED && copy->saved)
                go_on(copy);
        else if (phase == CAPSULE_RESTORED)
                check_image(copy);
        if (phase == CAPSULE_FROZEN || phase == CAPSULE_RESTORED) {
                set_phase(copy, CAPSULE_RUNNING);
                run(copy);
                payload_ask(copy);
                park_scan(copy);
        }
        answer(copy, request, 0, "");
}

static void op_preload(struct copy *copy, const struct request *request) {
        if (copy->status.phase != CAPSULE_EMPTY && chance(copy, FAIL_CUT))
                answer(copy, request, -EOPNOTSUPP, "it holds what no move can carry");
        else
                answer(copy, request, 0, "");
}

static void on_dumped(struct copy *copy) {
        bool failed = chance(copy, FAIL_DUMP);
        struct saved saved;
        struct image image;

        if (copy->dead)
                return;
        payload_save(copy->payload, &saved);
        saved.cut = copy->cut;
        image = (struct image) { copy->payload->number, copy->payload->runs, copy->current.pages };
        set_phase(copy, CAPSULE_FROZEN);
        if (failed)
                end(copy, -EIO, "CRIU has failed");
        else if (!mover_captured(copy->host, copy->current.text, &image, &saved))
                end(copy, -EPIPE, "the socket is closed");
        else
                end(copy, 0, "");
}

static void op_dump(struct copy *copy, const struct request *request) {
        set_phase(copy, CAPSULE_DUMPING);
        begin(copy, request, draw(copy, DUMP_MAX_USEC), on_dumped);
}

static void op_get_saved_state(struct copy *copy, const struct request *request) {
        park_get_saved_state(copy);
        answer(copy, request, 0, "");
}

static void op_restore_prepare(struct copy *copy, const struct request *request) {
        copy->has_saved_state = copy->status.cut = true;
        answer(copy, request, 0, "");
}

static void on_filled(struct copy *copy) {
        if (copy->dead || !copy->status.filling)
                return;
        if (chance(copy, FAIL_FILL)) {
                (void) snprintf(copy->status.killed, sizeof(copy->status.killed), "its memory has not come");
                payload_signal(copy->payload, 9);
        } else {
                copy->status.filling = false;
                copy->status.fill_bytes = 0;
        }
        send_report(copy, REPORT_FILLING, 0, "");
}

static void on_restored(struct copy *copy) {
        struct payload *payload = NULL;
        struct image image;

        if (copy->dead)
                return;
        if (mover_image(copy->host, copy->current.text, &image))
                payload = payload_find(copy->world, image.payload);
        if (!payload || chance(copy, FAIL_RESTORE)) {
                set_phase(copy, CAPSULE_EMPTY);
                end(copy, -EIO, "CRIU has failed");
                return;
        }
        payload_hold(copy, payload);
        park_set_saved_state(copy);
        copy->image_runs = image.runs;
        copy->status.output_end[CAPSULE_STDOUT] = payload->written_bytes;
        copy->status.filling = copy->current.pages;
        copy->status.fill_bytes = copy->current.pages ? 1000000 : 0;
        if (copy->status.filling)
                copy_later(copy, draw(copy, FILL_MAX_USEC), on_filled);
        trace(copy, "is restored");
        set_phase(copy, CAPSULE_RESTORED);
        end(copy, 0, "");
}

static void on_restored_back(struct copy *copy) {
        struct saved saved;

        if (copy->dead)
                return;
        if (!mover_saved(copy->host, copy->current.text, &saved) || chance(copy, FAIL_RESTORE)) {
                set_phase(copy, CAPSULE_EMPTY);
                end(copy, -EIO, "CRIU has failed");
                return;
        }
        payload_restore(copy, &saved);
        park_set_saved_state(copy);
        copy->saved = xcalloc(1, sizeof(*copy->saved));
        *copy->saved = saved;
        copy->status.output_end[CAPSULE_STDOUT] = saved.written_bytes;
        trace(copy, "is restored from a checkpoint");
        set_phase(copy, CAPSULE_RESTORED);
        end(copy, 0, "");
}

static void op_restore(struct copy *copy, const struct request *request) {
        if (!copy->has_saved_state) {
                answer(copy, request, -EPROTO, "no inventory came with the image");
                return;
        }
        set_phase(copy, CAPSULE_RESTORING);
        begin(copy, request, draw(copy, DUMP_MAX_USEC), request->op == OP_RESTORE ? on_restored : on_restored_back);
}

static void op_agent_reply(struct copy *copy, const struct request *request) {
        bool waits = payload_answer(copy->payload, request->text, request->status);

        answer(copy, request, waits ? 0 : -ENOENT, waits ? "" : "no rm-agent waits for it");
}

static void op_lease(struct copy *copy, const struct request *request) {
        bool runs;

        if (!copy->fenced || (request->end_usec <= copy->lease_usec && copy->lease_usec != UINT64_MAX))
                return;
        runs = copy_runs(copy);
        (void) is_fenced(copy);
        copy->lease_usec = request->end_usec;
        if (!copy->fence_done || !has_lease(copy))
                return;
        copy->fence_done = copy->status.fenced = false;
        if (copy->status.phase == CAPSULE_RUNNING && !runs) {
                run(copy);
                park_scan(copy);
        }
        send_report(copy, REPORT_UNFENCED, 0, "");
}

static void die(struct copy *copy) {
        if (copy->dead)
                return;
        copy->dead = true;
        copy->busy = false;
        payload_drop(copy);
        trace(copy, "is dead");
}

static void op_quit(struct copy *copy, const struct request *request) {
        die(copy);
}

static void op_resize_order(struct copy *copy, const struct request *request) {
        park_order(copy, &request->resize);
}

#define IN(phase) (1U << CAPSULE_##phase)
#define ALWAYS (~0U)

/* The operations are those of daemon/capsule/init/ops.c. */
static const struct {
        void (*fn)(struct copy *copy, const struct request *request);
        unsigned phases;
        bool now, leased;
} operations[OPS] = {
        [OP_RUN] = { op_run, IN(EMPTY), false, true },
        [OP_SIGNAL] = { op_signal, IN(RUNNING), false, false },
        [OP_END_RANKS] = { op_end_ranks, IN(EMPTY) | IN(RUNNING) | IN(EXITED), false, false },
        [OP_FREEZE] = { op_freeze, IN(RUNNING) | IN(FROZEN), false, false },
        [OP_THAW] = { op_open, IN(RUNNING) | IN(FROZEN), false, true },
        [OP_CUT] = { op_cut, ALWAYS, false, false },
        [OP_OPEN] = { op_open, IN(EMPTY) | IN(RUNNING) | IN(FROZEN) | IN(RESTORED) | IN(EXITED), false, true },
        [OP_PRELOAD] = { op_preload, IN(EMPTY) | IN(RUNNING) | IN(FROZEN), false, false },
        [OP_DUMP] = { op_dump, IN(FROZEN), false, false },
        [OP_GET_SAVED_STATE] = { op_get_saved_state, IN(FROZEN), false, false },
        [OP_RESTORE_PREPARE] = { op_restore_prepare, IN(EMPTY), false, false },
        [OP_RESTORE] = { op_restore, IN(EMPTY), false, false },
        [OP_RESTORE_BACK] = { op_restore, IN(EMPTY), false, false },
        [OP_AGENT_REPLY] = { op_agent_reply, IN(RUNNING), true, false },
        [OP_LEASE] = { op_lease, ALWAYS, true, false },
        [OP_RESIZE_ORDER] = { op_resize_order, ALWAYS, true, false },
        [OP_QUIT] = { op_quit, ALWAYS, true, false },
};

static void carry_out(struct copy *copy, const struct request *request) {
        if (!(operations[request->op].phases & (1U << copy->status.phase)))
                answer(copy, request, copy->status.phase == CAPSULE_EXITED ? -ESRCH : -EBUSY, "not possible in this phase");
        else if (operations[request->op].leased && is_fenced(copy))
                answer(copy, request, -ETIME, "this node has no lease for it");
        else
                operations[request->op].fn(copy, request);
}

static void handle_waiting(struct copy *copy) {
        while (!copy->busy && !copy->dead && !STAILQ_EMPTY(&copy->waiting)) {
                struct waiting *waiting = STAILQ_FIRST(&copy->waiting);

                STAILQ_REMOVE_HEAD(&copy->waiting, entry);
                carry_out(copy, &waiting->request);
                free(waiting);
        }
}

void copy_exited(struct copy *copy, int wait_status) {
        copy->world->counts.ended++;
        copy->status.wait_status = wait_status;
        copy->status.payload_pid = 0;
        copy->status.filling = false;
        copy->status.end_real_usec = host_real_usec(copy->host);
        trace(copy, "has ended");
        set_phase(copy, CAPSULE_EXITED);
        send_report(copy, REPORT_EXITED, 0, "");
}

struct sent {
        struct capsules *world;
        uint64_t number;
        struct request request;
};

static void on_request(void *userdata) {
        struct sent *sent = userdata;
        struct copy *copy = find_number(sent->world, sent->number);
        struct waiting *waiting;

        if (copy && !copy->dead && copy->busy && !operations[sent->request.op].now) {
                waiting = xcalloc(1, sizeof(*waiting));
                waiting->request = sent->request;
                STAILQ_INSERT_TAIL(&copy->waiting, waiting, entry);
        } else if (copy && !copy->dead) {
                carry_out(copy, &sent->request);
        }
        free(sent);
}

void copy_request(struct copy *copy, const struct request *request) {
        struct sent *sent = xcalloc(1, sizeof(*sent));

        *sent = (struct sent) { copy->world, copy->number, *request };
        timeline_at(copy->world->timeline, arrival_usec(copy), on_request, free, sent);
}

/* ---- life ---- */

static void on_killed(struct copy *copy) {
        if (copy->dead)
                return;
        copy->world->counts.lost++;
        die(copy);
        copy->status.phase = CAPSULE_LOST;
        send_report(copy, REPORT_LOST, -ECHILD, "its PID 1 died");
}

static void on_made(struct copy *copy) {
        bool left = copy->made_life != host_life(copy->host) && timeline_random(copy->world->timeline, 2);

        if (copy->dead)
                return;
        if (left || chance(copy, FAIL_MAKE)) {
                copy->dead = true;
                send_report(copy, REPORT_READY, -EIO, "it could not be made");
                return;
        }
        trace(copy, "is made");
        copy->status.phase = CAPSULE_EMPTY;
        send_report(copy, REPORT_READY, 0, "");
        if (chance(copy, FAIL_LIFE))
                copy_later(copy, draw(copy, LIFE_MAX_USEC), on_killed);
}

static unsigned count_groups(const char *hosts, uint64_t job) {
        char host[64];
        unsigned n = 0;

        do
                launch_hostname(host, job, (int32_t) n++);
        while (strstr(hosts, host) && n <= PAYLOAD_GROUPS);
        return n - 1;
}

struct copy *capsules_make(struct capsules *c, struct host *host, const struct capsule_spec *spec, uint64_t handle,
                           capsules_report_fn report) {
        struct copy *copy = xcalloc(1, sizeof(*copy));

        copy->world = c;
        copy->host = host;
        copy->id = xstrdup(spec->id);
        copy->number = ++c->last_number;
        (void) launch_parse_id(spec->id, &copy->job, &copy->index, &copy->incarnation);
        copy->n_groups = count_groups(spec->hosts, copy->job);
        copy->fenced = copy->fence_done = copy->status.fenced = spec->fenced;
        copy->status.cut = spec->cut;
        copy->status.phase = CAPSULE_CREATING;
        copy->made_life = copy->life = host_life(host);
        copy->handle = handle;
        copy->report = report;
        copy->parking = parking_state_create();
        STAILQ_INIT(&copy->waiting);
        LIST_INSERT_HEAD(&c->copies, copy, entry);
        copy_later(copy, draw(copy, MAKE_MAX_USEC), on_made);
        return copy;
}

void copy_connect(struct copy *copy, uint64_t handle, capsules_report_fn report) {
        copy->handle = handle;
        copy->life = host_life(copy->host);
        copy->report = report;
        copy->removing = false;
        if (!copy->dead && copy->status.phase == CAPSULE_CREATING)
                return; /* it will tell */
        send_report(copy, REPORT_READY, copy->dead ? -ECHILD : 0, copy->dead ? "its PID 1 is dead" : "");
        if (copy->dead)
                return;
        if (copy->status.phase == CAPSULE_RUNNING)
                payload_ask(copy);
        if (copy->status.phase == CAPSULE_EXITED)
                send_report(copy, REPORT_EXITED, 0, "");
}

/* By the process that removes it, which must be alive. */
static void on_removal(struct copy *copy) {
        if (!copy->removing || copy->life != host_life(copy->host) || host_state(copy->host) == HOST_DEAD)
                return;
        if (host_state(copy->host) == HOST_STOPPED || !copy->dead) {
                if (host_state(copy->host) == HOST_RUNS)
                        die(copy);
                copy_later(copy, SCAN_USEC, on_removal);
                return;
        }
        send_report(copy, REPORT_REMOVED, 0, "");
        copy_free(copy);
}

void copy_remove(struct copy *copy, bool ask) {
        const struct request quit = { .op = OP_QUIT };

        copy->removing = true;
        if (ask && !copy->dead)
                copy_request(copy, &quit);
        copy_later(copy, MESSAGE_MAX_USEC + draw(copy, REMOVE_MAX_USEC), on_removal);
}

void capsules_lose(struct capsules *c, const struct host *host) {
        struct copy *copy;

        while ((copy = capsules_next(c, host, NULL))) {
                c->counts.gone++;
                trace(copy, "is gone with its machine");
                copy_free(copy);
        }
}

void capsules_count(const struct capsules *c, struct capsules_counts *ret) {
        *ret = c->counts;
}
