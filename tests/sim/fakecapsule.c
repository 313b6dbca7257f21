#include "tests/sim/fakecapsule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/error.h"
#include "common/util.h"

/* Nearly always PID 1 can be asked to end; else rmd kills it a moment later. */
#define CANNOT_ASK_PER_MILLE 50U

struct pending {
        uint64_t number;
        capsule_done_fn done;
        capsule_saved_state_fn saved_state;
        void *arg;
        STAILQ_ENTRY(pending) entry;
};

struct capsule {
        struct capsule_ctx *ctx;
        char *id;
        uint64_t handle;
        struct capsule_callbacks callbacks;
        void *userdata;
        struct capsule_status status;
        struct capsule_limits limits;
        bool connected;
        bool gone; /* and to be freed when its pendings are answered */
        bool answering;
        uint64_t last_number;
        STAILQ_HEAD(, pending) pendings;
        LIST_ENTRY(capsule) entry;
};

/* A capsule that is being removed. */
struct reaper {
        char *id;
        uint64_t handle;
        capsule_done_fn done;
        void *arg;
        LIST_ENTRY(reaper) entry;
};

struct capsule_ctx {
        struct capsules *world;
        struct host *host;
        uint64_t last_handle;
        LIST_HEAD(, capsule) capsules;
        LIST_HEAD(, reaper) reapers;
};

const char *const capsule_tmpfs_mounts[] = { "/tmp", "/dev/shm", "/run", NULL };

struct capsule_ctx *fakecapsule_begin(struct capsules *world, struct host *host) {
        struct capsule_ctx *ctx = xcalloc(1, sizeof(*ctx));

        ctx->world = world;
        ctx->host = host;
        LIST_INIT(&ctx->capsules);
        LIST_INIT(&ctx->reapers);
        host_set_part(host, HOST_CAPSULES, ctx);
        return ctx;
}

/* ---- handles ---- */

static void answer(struct capsule *capsule, const struct pending *pending, int error, const char *text) {
        static const uint8_t counters[] = { 1 };

        if (pending->saved_state)
                pending->saved_state(capsule, error, text, error < 0 ? NULL : counters, error < 0 ? 0 : sizeof(counters),
                                     pending->arg);
        else if (pending->done)
                pending->done(capsule, error, text, pending->arg);
}

/* The callback may destroy the capsule: false. */
static bool fail_pendings(struct capsule *capsule, int error, const char *text) {
        struct pending *pending;

        capsule->answering = true;
        while ((pending = STAILQ_FIRST(&capsule->pendings))) {
                STAILQ_REMOVE_HEAD(&capsule->pendings, entry);
                answer(capsule, pending, capsule->gone ? -ECANCELED : error, text);
                free(pending);
        }
        capsule->answering = false;
        if (!capsule->gone)
                return true;
        free(capsule->id);
        free(capsule);
        return false;
}

static void capsule_free(struct capsule *capsule, const char *why) {
        LIST_REMOVE(capsule, entry);
        capsule->connected = false;
        capsule->gone = true;
        if (!capsule->answering)
                (void) fail_pendings(capsule, -ECANCELED, why);
}

static void reaper_free(struct reaper *reaper) {
        LIST_REMOVE(reaper, entry);
        free(reaper->id);
        free(reaper);
}

void capsule_ctx_destroy(struct capsule_ctx *ctx) {
        if (!ctx)
                return;
        while (!LIST_EMPTY(&ctx->capsules))
                capsule_free(LIST_FIRST(&ctx->capsules), "rmd ends");
        while (!LIST_EMPTY(&ctx->reapers))
                reaper_free(LIST_FIRST(&ctx->reapers));
        host_set_part(ctx->host, HOST_CAPSULES, NULL);
        free(ctx);
}

static struct capsule *find_handle(const struct capsule_ctx *ctx, uint64_t handle) {
        struct capsule *capsule;

        LIST_FOREACH (capsule, &ctx->capsules, entry)
                if (capsule->handle == handle)
                        return capsule;
        return NULL;
}

static void on_removed(struct capsule_ctx *ctx, uint64_t handle) {
        struct reaper *reaper;
        capsule_done_fn done;
        void *arg;

        LIST_FOREACH (reaper, &ctx->reapers, entry)
                if (reaper->handle == handle)
                        break;
        if (!reaper)
                return;
        done = reaper->done;
        arg = reaper->arg;
        reaper_free(reaper);
        if (done)
                done(NULL, 0, "", arg);
}

static void on_answer(struct capsule *capsule, const struct report *report) {
        struct pending *pending;

        STAILQ_FOREACH (pending, &capsule->pendings, entry)
                if (pending->number == report->number)
                        break;
        if (!pending)
                return;
        STAILQ_REMOVE(&capsule->pendings, pending, pending, entry);
        answer(capsule, pending, report->error, report->text);
        free(pending);
}

static void on_lost(struct capsule *capsule, const struct report *report) {
        capsule->connected = false;
        capsule->status.phase = CAPSULE_LOST;
        if (fail_pendings(capsule, -ENOTCONN, report->text))
                capsule->callbacks.lost(capsule, report->text, capsule->userdata);
}

static void take_report(struct capsule *capsule, const struct report *report) {
        const struct capsule_callbacks *callbacks = &capsule->callbacks;

        switch (report->kind) {
        case REPORT_READY:
                capsule->connected = report->error == 0;
                if (report->error < 0)
                        capsule->status.phase = CAPSULE_LOST;
                callbacks->ready(capsule, report->error, report->text, capsule->userdata);
                break;
        case REPORT_ANSWER:
                on_answer(capsule, report);
                break;
        case REPORT_AGENT_REQUEST:
                callbacks->agent_request(capsule, report->text, report->host, "prted", capsule->userdata);
                break;
        case REPORT_AGENT_GONE:
                callbacks->agent_gone(capsule, report->text, capsule->userdata);
                break;
        case REPORT_EXITED:
                callbacks->exited(capsule, capsule->status.wait_status, capsule->userdata);
                break;
        case REPORT_FILLING:
                callbacks->filling(capsule, capsule->userdata);
                break;
        case REPORT_UNFENCED:
                callbacks->unfenced(capsule, capsule->userdata);
                break;
        case REPORT_SAID:
                callbacks->rank_said(capsule, capsule->userdata);
                break;
        case REPORT_OUTPUT:
                callbacks->output(capsule, CAPSULE_STDOUT, capsule->status.output_end[CAPSULE_STDOUT], capsule->userdata);
                break;
        case REPORT_LOST:
                on_lost(capsule, report);
                break;
        default:
                break;
        }
}

static void on_report(struct host *host, uint64_t handle, const struct report *report) {
        struct capsule_ctx *ctx = host_part(host, HOST_CAPSULES);
        struct capsule *capsule = ctx ? find_handle(ctx, handle) : NULL;

        if (ctx && report->kind == REPORT_REMOVED)
                on_removed(ctx, handle);
        if (!capsule || capsule->status.phase == CAPSULE_LOST)
                return;
        capsule->status = report->status;
        take_report(capsule, report);
}

static struct capsule *capsule_new(struct capsule_ctx *ctx, const char *id, const struct capsule_callbacks *callbacks,
                                   void *userdata) {
        struct capsule *capsule = xcalloc(1, sizeof(*capsule));

        capsule->ctx = ctx;
        capsule->id = xstrdup(id);
        capsule->handle = ++ctx->last_handle;
        capsule->callbacks = *callbacks;
        capsule->userdata = userdata;
        capsule->limits = (struct capsule_limits) { UINT64_MAX, UINT64_MAX };
        STAILQ_INIT(&capsule->pendings);
        LIST_INSERT_HEAD(&ctx->capsules, capsule, entry);
        return capsule;
}

int capsule_create(struct capsule_ctx *ctx, const struct capsule_spec *spec, const struct capsule_callbacks *callbacks,
                   void *userdata, struct capsule **ret, struct rm_error *error) {
        if (capsules_find(ctx->world, ctx->host, spec->id))
                return error_set(error, -EEXIST, "there is one");
        *ret = capsule_new(ctx, spec->id, callbacks, userdata);
        (*ret)->limits = spec->limits;
        (void) capsules_make(ctx->world, ctx->host, spec, (*ret)->handle, on_report);
        return 0;
}

int capsule_adopt_all(struct capsule_ctx *ctx, const struct capsule_callbacks *callbacks, capsule_adopt_fn choose, void *arg,
                      struct rm_error *error) {
        int n = 0;

        for (struct copy *copy = NULL; (copy = capsules_next(ctx->world, ctx->host, copy)); n++) {
                struct capsule *capsule = capsule_new(ctx, copy_id(copy), callbacks, NULL);

                capsule->userdata = choose(capsule, capsule->id, arg);
                copy_connect(copy, capsule->handle, on_report);
        }
        return n;
}

void capsule_destroy(struct capsule *capsule, bool spool, capsule_done_fn done, void *arg) {
        struct capsule_ctx *ctx = capsule->ctx;
        struct copy *copy = capsules_find(ctx->world, ctx->host, capsule->id);
        struct reaper *reaper = xcalloc(1, sizeof(*reaper));

        *reaper = (struct reaper) { .id = xstrdup(capsule->id), .handle = capsule->handle, .done = done, .arg = arg };
        LIST_INSERT_HEAD(&ctx->reapers, reaper, entry);
        if (copy && host_state(ctx->host) != HOST_DEAD)
                copy_remove(copy, capsule->connected && !timeline_chance(host_timeline(ctx->host), CANNOT_ASK_PER_MILLE));
        capsule_free(capsule, "the capsule is being destroyed");
}

bool capsule_is_going(const struct capsule_ctx *ctx, const char *id) {
        const struct reaper *reaper;

        LIST_FOREACH (reaper, &ctx->reapers, entry)
                if (strcmp(reaper->id, id) == 0)
                        return true;
        return false;
}

bool capsule_any_is_going(const struct capsule_ctx *ctx, const char *prefix) {
        const struct reaper *reaper;

        LIST_FOREACH (reaper, &ctx->reapers, entry)
                if (strncmp(reaper->id, prefix, strlen(prefix)) == 0)
                        return true;
        return false;
}

/* ---- what is known of it ---- */

const char *capsule_id(const struct capsule *capsule) {
        return capsule->id;
}

pid_t capsule_init_pid(const struct capsule *capsule) {
        return 0;
}

const char *capsule_root(const struct capsule *capsule) {
        return "/nonexistent";
}

char *capsule_payload_cgroup(const struct capsule *capsule) {
        return xstrdup("/nonexistent");
}

char *capsule_init_cgroup(const struct capsule *capsule) {
        return xstrdup("/nonexistent");
}

const char *capsule_memory_cgroup(const struct capsule *capsule) {
        return NULL;
}

enum capsule_phase capsule_phase(const struct capsule *capsule) {
        return capsule->status.phase;
}

void capsule_get_status(const struct capsule *capsule, struct capsule_status *ret) {
        *ret = capsule->status;
}

void capsule_get_limits(const struct capsule *capsule, struct capsule_limits *ret) {
        *ret = capsule->limits;
}

int capsule_apply_limits(struct capsule *capsule) {
        return 0;
}

int capsule_bind(struct capsule *capsule, const cpu_set_t *cpus, bool keep_narrower, const cpu_set_t *was) {
        return 0;
}

int capsule_confine(struct capsule *capsule, const cpu_set_t *cpus) {
        return 0;
}

char *capsule_slow_begin(struct capsule *capsule) {
        return xstrdup("/nonexistent");
}

void capsule_slow_end(struct capsule *capsule) {
}

bool capsule_can_limit(const struct capsule_ctx *ctx, enum capsule_resource which) {
        return true;
}

void capsule_reserve_memory(struct capsule_ctx *ctx, uint64_t total_bytes, uint64_t reserve_bytes) {
}

/* ---- requests ---- */

static int submit(struct capsule *capsule, struct request *request, const struct pending *answered) {
        struct copy *copy = capsules_find(capsule->ctx->world, capsule->ctx->host, capsule->id);
        struct pending *pending;

        if (!capsule->connected || !copy || host_state(capsule->ctx->host) == HOST_DEAD)
                return -ENOTCONN;
        if (answered) {
                pending = xcalloc(1, sizeof(*pending));
                *pending = *answered;
                pending->number = request->number = ++capsule->last_number;
                STAILQ_INSERT_TAIL(&capsule->pendings, pending, entry);
        }
        copy_request(copy, request);
        return 0;
}

static int submit_op(struct capsule *capsule, enum request_op op, capsule_done_fn done, void *arg) {
        const struct pending pending = { .done = done, .arg = arg };
        struct request request = { .op = op };

        return submit(capsule, &request, &pending);
}

/* The number in a variable of the environment; 0: there is none. */
static uint32_t number_in(const struct capsule_command *command, const char *name) {
        size_t n = strlen(name);

        for (const char *const *word = command->env; word && *word; word++)
                if (strncmp(*word, name, n) == 0 && (*word)[n] == '=')
                        return (uint32_t) strtoul(*word + n + 1, NULL, 10);
        return 0;
}

int capsule_run(struct capsule *capsule, const struct capsule_command *command, capsule_done_fn done, void *arg) {
        const struct pending pending = { .done = done, .arg = arg };
        struct request request = { .op = OP_RUN,
                                   .attempt = number_in(command, "RM_ATTEMPT"),
                                   .active = number_in(command, "RM_ACTIVE_RANKS") };

        return submit(capsule, &request, &pending);
}

int capsule_signal(struct capsule *capsule, int signo, bool all, capsule_done_fn done, void *arg) {
        const struct pending pending = { .done = done, .arg = arg };
        struct request request = { .op = OP_SIGNAL, .status = signo };

        return submit(capsule, &request, &pending);
}

int capsule_end_ranks(struct capsule *capsule, int signo, uint64_t wait_usec, capsule_done_fn done, void *arg) {
        const struct pending pending = { .done = done, .arg = arg };
        struct request request = { .op = OP_END_RANKS, .status = signo };

        (void) wait_usec;
        return submit(capsule, &request, &pending);
}

int capsule_freeze(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return submit_op(capsule, OP_FREEZE, done, arg);
}

int capsule_thaw(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return submit_op(capsule, OP_THAW, done, arg);
}

int capsule_cut(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return submit_op(capsule, OP_CUT, done, arg);
}

int capsule_open(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return submit_op(capsule, OP_OPEN, done, arg);
}

int capsule_criu_preload(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return submit_op(capsule, OP_PRELOAD, done, arg);
}

static int submit_images(struct capsule *capsule, enum request_op op, const char *dir, bool pages, capsule_done_fn done,
                         void *arg) {
        const struct pending pending = { .done = done, .arg = arg };
        struct request request = { .op = op, .pages = pages };

        (void) snprintf(request.text, sizeof(request.text), "%s", dir);
        return submit(capsule, &request, &pending);
}

int capsule_dump(struct capsule *capsule, const char *images_dir, bool stream, bool pages, uint64_t timeout_usec,
                 capsule_done_fn done, void *arg) {
        return submit_images(capsule, OP_DUMP, images_dir, pages, done, arg);
}

int capsule_get_saved_state(struct capsule *capsule, capsule_saved_state_fn done, void *arg) {
        const struct pending pending = { .saved_state = done, .arg = arg };
        struct request request = { .op = OP_GET_SAVED_STATE };

        return submit(capsule, &request, &pending);
}

/* No file is written in place. */
int capsule_get_saved_state_and_files(struct capsule *capsule, const char *files_dir, uint64_t max_bytes,
                                      capsule_saved_state_fn done, void *arg) {
        return capsule_get_saved_state(capsule, done, arg);
}

int capsule_restore_prepare(struct capsule *capsule, const void *saved_state, size_t size, capsule_done_fn done, void *arg) {
        return submit_op(capsule, OP_RESTORE_PREPARE, done, arg);
}

int capsule_restore(struct capsule *capsule, const char *images_dir, bool pages, uint64_t timeout_usec, capsule_done_fn done,
                    void *arg) {
        return submit_images(capsule, OP_RESTORE, images_dir, pages, done, arg);
}

int capsule_restore_back(struct capsule *capsule, const char *images_dir, bool pages, const struct capsule_rollback *rollback,
                         uint64_t timeout_usec, capsule_done_fn done, void *arg) {
        return submit_images(capsule, OP_RESTORE_BACK, images_dir, pages, done, arg);
}

int capsule_renew_lease(struct capsule *capsule, uint64_t end_boot_usec) {
        struct request request = { .op = OP_LEASE, .end_usec = end_boot_usec };

        return submit(capsule, &request, NULL);
}

int capsule_resize_order(struct capsule *capsule, const Capsule__ResizeOrder *order) {
        struct request request = { .op = OP_RESIZE_ORDER, .resize = *order };

        return submit(capsule, &request, NULL);
}

/* No job goes on without ranks. */
int capsule_rank_order(struct capsule *capsule, uint32_t first, uint32_t ranks, const uint32_t *lost, size_t n_lost, bool speaks) {
        return 0;
}

int capsule_agent_reply(struct capsule *capsule, const char *id, int status, capsule_done_fn done, void *arg) {
        const struct pending pending = { .done = done, .arg = arg };
        struct request request = { .op = OP_AGENT_REPLY, .status = status };

        (void) snprintf(request.text, sizeof(request.text), "%s", id);
        return submit(capsule, &request, &pending);
}

/* None is simulated: no front end is attached, nobody asks for traffic, and no rank listens. */

int capsule_input(struct capsule *capsule, uint64_t offset, const void *data, size_t size, capsule_done_fn done, void *arg) {
        return -ENOTCONN;
}

int capsule_announce(struct capsule *capsule, enum capsule_capture capture, uint64_t wait_usec, capsule_done_fn done, void *arg) {
        return -ENOTCONN;
}

int capsule_announce_over(struct capsule *capsule, enum capsule_capture capture) {
        return -ENOTCONN;
}

int capsule_output_ack(struct capsule *capsule, int stream, uint64_t offset) {
        return -ENOTCONN;
}

int capsule_get_flows(struct capsule *capsule, capsule_flows_fn done, void *arg) {
        return -ENOTCONN;
}

int capsule_get_rank_ends(struct capsule *capsule, capsule_rank_ends_fn done, void *arg) {
        return -ENOTCONN;
}
