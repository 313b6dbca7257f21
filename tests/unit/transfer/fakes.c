#include "tests/unit/transfer/fakes.h"

#include <errno.h>
#include <string.h>

#include <event2/event.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/job/launch.h"
#include "daemon/job/memory_report.h"
#include "daemon/job/pages_test.h"
#include "daemon/state/leave_by.h"
#include "daemon/transfer/images.h"
#include "daemon/transfer/inflight.h"
#include "daemon/transfer/mover_setup.h"

static struct fakes world;
struct fakes *const fakes = &world;

#define CAPSULE ((struct capsule *) (void *) &world)
#define MOVER ((struct mover *) (void *) &world)

int fakes_set_up(void **state) {
        (void) state;
        world = (struct fakes) { .base = event_base_new(), .test_passed = true, .memory_bytes = 1 << 20, .wait_usec = 1000 };
        world.phase = CAPSULE_RUNNING;
        world.config.move_timeout_usec = 60 * UINT64_C(1000000);
        world.config.move_tracking = true;
        world.rmd = (struct rmd) { .base = world.base, .config = &world.config };
        world.resident = resident_create(NULL, &world.calls, 7, 1, 9);
        (void) resident_made(world.resident, CAPSULE, RESIDENT_CREATED);
        (void) resident_event(world.resident, RESIDENT_EV_FOUND);
        return world.base ? 0 : -1;
}

int fakes_tear_down(void **state) {
        (void) state;
        resident_destroy(world.resident);
        event_base_free(world.base);
        return 0;
}

void fake_ends(enum fake_op op, int error, const char *text) {
        capsule_done_fn done = world.done[op];

        assert_non_null(done);
        world.done[op] = NULL;
        done(CAPSULE, error, text, world.arg[op]);
}

void fake_saved_state_ends(int error, const char *text) {
        capsule_saved_state_fn done = world.saved_state;

        assert_non_null(done);
        world.saved_state = NULL;
        done(CAPSULE, error, text, "counters", strlen("counters"), world.saved_state_arg);
}

void fake_mover_says(const Rm__MoverEvent *event) {
        assert_non_null(world.mover_ops);
        world.mover_ops->on_event(world.mover_userdata, event);
}

Rm__MoverCommand__BodyCase fake_last_order(void) {
        return world.n_ordered > 0 ? world.ordered[world.n_ordered - 1] : RM__MOVER_COMMAND__BODY__NOT_SET;
}

static void on_time(evutil_socket_t fd, short what, void *arg) {
        (void) event_base_loopbreak(world.base);
}

void fake_time_passes(uint64_t usec) {
        struct event *event = evtimer_new(world.base, on_time, NULL);

        timer_arm(event, usec);
        (void) event_base_dispatch(world.base);
        event_free(event);
}

/* ---- the capsule ---- */

static int begin(enum fake_op op, capsule_done_fn done, void *arg) {
        if (world.refused[op] < 0)
                return world.refused[op];
        world.asked[op]++;
        world.done[op] = done;
        world.arg[op] = arg;
        return 0;
}

enum capsule_phase capsule_phase(const struct capsule *capsule) {
        return world.phase;
}

void capsule_get_status(const struct capsule *capsule, struct capsule_status *ret) {
        *ret = world.status;
}

int capsule_criu_preload(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return begin(FAKE_PRELOAD, done, arg);
}

int capsule_announce(struct capsule *capsule, enum capsule_capture capture, uint64_t wait_usec, capsule_done_fn done, void *arg) {
        assert_int_equal(wait_usec, world.wait_usec);
        world.announced = capture;
        return begin(FAKE_ANNOUNCE, done, arg);
}

int capsule_announce_over(struct capsule *capsule, enum capsule_capture capture) {
        return begin(FAKE_OVER, NULL, NULL);
}

int capsule_freeze(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return begin(FAKE_FREEZE, done, arg);
}

int capsule_cut(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return begin(FAKE_CUT, done, arg);
}

int capsule_open(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return begin(FAKE_OPEN, done, arg);
}

int capsule_dump(struct capsule *capsule, const char *images_dir, bool stream, bool pages, uint64_t timeout_usec,
                 capsule_done_fn done, void *arg) {
        world.pages = pages;
        return begin(FAKE_DUMP, done, arg);
}

int capsule_get_saved_state(struct capsule *capsule, capsule_saved_state_fn done, void *arg) {
        int r = begin(FAKE_SAVED_STATE, NULL, NULL);

        if (r < 0)
                return r;
        world.saved_state = done;
        world.saved_state_arg = arg;
        return 0;
}

int capsule_restore_prepare(struct capsule *capsule, const void *saved_state, size_t size, capsule_done_fn done, void *arg) {
        return begin(FAKE_PREPARE, done, arg);
}

int capsule_restore(struct capsule *capsule, const char *images_dir, bool pages, uint64_t timeout_usec, capsule_done_fn done,
                    void *arg) {
        world.back = world.other_files = false;
        world.pages = pages;
        return begin(FAKE_RESTORE, done, arg);
}

int capsule_restore_back(struct capsule *capsule, const char *images_dir, bool pages, const struct capsule_rollback *rollback,
                         uint64_t timeout_usec, capsule_done_fn done, void *arg) {
        world.back = true;
        world.other_files = rollback->other_files;
        world.left_ago_usec = rollback->left_ago_usec;
        world.pages = pages;
        return begin(FAKE_RESTORE, done, arg);
}

const char *capsule_id(const struct capsule *capsule) {
        return "j7.g1.i9";
}

const char *capsule_root(const struct capsule *capsule) {
        return "/root";
}

pid_t capsule_init_pid(const struct capsule *capsule) {
        return 1;
}

char *capsule_payload_cgroup(const struct capsule *capsule) {
        return xstrdup("/payload");
}

char *capsule_init_cgroup(const struct capsule *capsule) {
        return xstrdup("/init");
}

/* ---- the runner and the cluster ---- */

struct resident *runner_copy(struct runner *runner, uint64_t job, int32_t index, uint64_t incarnation) {
        return resident_is(world.resident, job, index, incarnation) && !world.gone ? world.resident : NULL;
}

void runner_retry(struct runner *runner) {
        world.retries++;
}

char *launch_spool_dir(const struct config *config, const char *id) {
        return xstrdup("/spool");
}

const char *cluster_self(const struct cluster *cluster) {
        return "n1";
}

uint64_t cluster_log_usec(const struct cluster *cluster) {
        return 0;
}

uint64_t leave_by_wait_usec(uint64_t leave_by_usec, uint64_t now_usec_, uint64_t most_usec) {
        return world.wait_usec;
}

bool pages_test_runs(const struct pages_test *test) {
        return world.test_runs;
}

bool pages_test_passed(const struct pages_test *test, const char **ret_why) {
        *ret_why = "the kernel cannot";
        return world.test_passed;
}

void memory_report_read(const struct resident *resident, size_t most, struct memory_report_use *ret) {
        world.measured_processes = most;
        *ret = (struct memory_report_use) { .memory_bytes = world.memory_bytes };
}

bool inflight_connections(pid_t pid) {
        if (world.inflight == 0)
                return false;
        world.inflight--;
        return true;
}

/* ---- rm-mover ---- */

int mover_start(struct rmd *rmd, const char *role, const Rm__MoverCommand *first, const struct mover_ops *ops, void *userdata,
                struct mover **ret, struct rm_error *err) {
        if (world.mover_refuses < 0)
                return error_set(err, world.mover_refuses, "no mover");
        world.mover_ops = ops;
        world.mover_userdata = userdata;
        *ret = MOVER;
        return mover_command(MOVER, first);
}

int mover_command(struct mover *mover, const Rm__MoverCommand *command) {
        if (world.mover_refuses < 0)
                return world.mover_refuses;
        assert_true(world.n_ordered < ARRAY_SIZE(world.ordered));
        world.ordered[world.n_ordered++] = command->body_case;
        if (command->body_case == RM__MOVER_COMMAND__BODY_PRECOPY)
                world.announce_ordered = command->precopy->announce;
        if (command->body_case == RM__MOVER_COMMAND__BODY_DUMP_DONE)
                world.trees_ordered = command->dump_done->n_trees;
        if (command->body_case == RM__MOVER_COMMAND__BODY_RECEIVE)
                world.trees_ordered = command->receive->n_trees;
        return 0;
}

void mover_stop(struct mover *mover, struct remover *remover, const char *dir) {
        world.mover_ops = NULL;
}

void mover_leave(struct mover *mover) {
        world.mover_ops = NULL;
}

void mover_receive_init(Rm__MoverReceive *ret, const struct config *config, const void *token, size_t token_bytes) {
        rm__mover_receive__init(ret);
}

int images_directory(struct remover *remover, const char *dir, struct rm_error *err) {
        return 0;
}
