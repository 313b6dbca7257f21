/* The programs in capsules: mpirun, which has a daemon started in each group and ends when all of
 * these have, and the daemons, which work for a while. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/job/launch.h"
#include "daemon/state/state.h"
#include "tests/sim/capsules_internal.h"
#include "tests/sim/ranks.h"

#define WORK_MAX_USEC 8000000U
#define LONG_WORK_MAX_USEC 25000000U
#define STEP_MAX_USEC 20000U
/* The interval of looks at a frozen payload: has it come to its end? */
#define SCAN_USEC 100000U
#define NOTICE_MAX_USEC 300000U /* that mpirun is gone */
#define SIGNAL_MAX_USEC 200000U

/* The output of mpirun, which writes something now and then. */
#define WRITE_MAX_USEC 400000U
#define WRITE_MAX_BYTES 1000U

#define EXIT_STATUS(code) ((code) << 8)

struct step {
        struct capsules *world;
        uint64_t payload;
};

struct payload *payload_find(const struct capsules *c, uint64_t number) {
        struct payload *payload;

        LIST_FOREACH (payload, &c->payloads, entry)
                if (payload->number == number)
                        return payload;
        return NULL;
}

struct copy *payload_home(const struct payload *payload) {
        struct copy *copy;

        LIST_FOREACH (copy, &payload->world->copies, entry)
                if (copy->payload == payload && copy_runs(copy))
                        return copy;
        return NULL;
}

static void on_step(void *userdata);

static void step_after(struct payload *payload, uint64_t delay_usec) {
        struct timeline *t = payload->world->timeline;
        struct step *step = xcalloc(1, sizeof(*step));

        *step = (struct step) { payload->world, payload->number };
        timeline_at(t, timeline_now_usec(t) + delay_usec, on_step, free, step);
}

static void end_after(struct payload *payload, uint64_t delay_usec, int status) {
        uint64_t end_usec = timeline_now_usec(payload->world->timeline) + delay_usec;

        if (payload->end_usec <= end_usec)
                return;
        payload->end_usec = end_usec;
        payload->end_status = status;
        step_after(payload, delay_usec);
}

/* mpirun of a job is gone: its daemons notice. */
static void end_groups(const struct payload *head, int status) {
        struct timeline *t = head->world->timeline;
        struct payload *payload;

        LIST_FOREACH (payload, &head->world->payloads, entry)
                if (payload->job == head->job && payload->attempt == head->attempt && payload != head &&
                    payload->index != STATE_HEAD && !payload->ended) {
                        payload->forced = true;
                        end_after(payload, timeline_random(t, NOTICE_MAX_USEC), status);
                }
}

/* mpirun has connections to its daemons: it need not hear of their end from rm-agent. */
static void report_head(const struct payload *group, bool failed) {
        struct payload *head;

        LIST_FOREACH (head, &group->world->payloads, entry) {
                if (head->job != group->job || head->attempt != group->attempt || head->index != STATE_HEAD)
                        continue;
                head->over[group->index] = true;
                head->failed |= failed;
                if (failed && head->active > 0) /* else they come to their end by themselves */
                        end_groups(head, EXIT_STATUS(1));
                step_after(head, timeline_random(head->world->timeline, NOTICE_MAX_USEC));
        }
}

/* mpirun that has lost a daemon ends those it has: one that begins after that finds nobody. */
static bool head_has_failed(const struct payload *group) {
        const struct payload *head;

        LIST_FOREACH (head, &group->world->payloads, entry)
                if (head->job == group->job && head->attempt == group->attempt && head->index == STATE_HEAD)
                        return head->failed && head->active > 0;
        return false;
}

static bool all_over(const struct payload *head) {
        for (unsigned i = 0; i < head->n_groups; i++)
                if (!head->over[i])
                        return false;
        return true;
}

static void report_agents_gone(struct copy *copy) {
        struct report report = { .kind = REPORT_AGENT_GONE };

        for (unsigned i = 0; copy->index == STATE_HEAD && i < copy->payload->n_groups; i++) {
                (void) snprintf(report.text, sizeof(report.text), "a%u", i);
                if (copy->payload->asked && !copy->payload->answered[i])
                        copy_report(copy, &report);
        }
}

static void end(struct copy *copy, int status) {
        struct payload *payload = copy->payload;

        payload->ended = true;
        report_agents_gone(copy);
        if (payload->index == STATE_HEAD)
                end_groups(payload, status == 0 ? 0 : EXIT_STATUS(1));
        else
                report_head(payload, status != 0);
        if (payload->index == 0 && status == 0 && payload->n_ranks > 0)
                end_groups(payload, 0); /* all come out of MPI_Finalize */
        copy_exited(copy, status);
}

static void on_step(void *userdata) {
        struct step *step = userdata;
        struct payload *payload = payload_find(step->world, step->payload);
        struct timeline *t = step->world->timeline;
        struct copy *home = payload ? payload_home(payload) : NULL;

        free(step);
        if (!payload || payload->ended)
                return;
        if (!home || home->held || (timeline_now_usec(t) >= payload->end_usec && !payload->forced && !ranks_may_end(payload))) {
                step_after(payload, SCAN_USEC);
        } else if (timeline_now_usec(t) >= payload->end_usec) {
                end(home, payload->end_status);
        } else if (payload->index == STATE_HEAD && !payload->asked) {
                payload->asked = true;
                payload_ask(home);
        } else if (payload->index == STATE_HEAD && all_over(payload)) {
                end(home, EXIT_STATUS(payload->failed));
        }
}

/* The payload writes while it runs. */
static void on_write(void *userdata) {
        struct step *step = userdata;
        struct payload *payload = payload_find(step->world, step->payload);
        struct timeline *t = step->world->timeline;
        struct copy *home = payload ? payload_home(payload) : NULL;
        struct report report = { .kind = REPORT_OUTPUT };

        if (!payload || payload->ended) {
                free(step);
                return;
        }
        if (home) {
                payload->written_bytes += 1 + timeline_random(t, WRITE_MAX_BYTES);
                home->status.output_end[CAPSULE_STDOUT] = payload->written_bytes;
                copy_report(home, &report);
        }
        timeline_at(t, timeline_now_usec(t) + 1 + timeline_random(t, WRITE_MAX_USEC), on_write, free, step);
}

static void begin_to_write(const struct payload *payload) {
        struct timeline *t = payload->world->timeline;
        struct step *step = xcalloc(1, sizeof(*step));

        *step = (struct step) { payload->world, payload->number };
        timeline_at(t, timeline_now_usec(t) + timeline_random(t, WRITE_MAX_USEC), on_write, free, step);
}

void payload_hold(struct copy *copy, struct payload *payload) {
        copy->payload = payload;
        payload->refs++;
}

void payload_start(struct copy *copy, const struct request *request) {
        struct capsules *c = copy->world;
        struct payload *payload = xcalloc(1, sizeof(*payload));
        struct timeline *t = c->timeline;

        *payload = (struct payload) { .world = c, .job = copy->job, .index = copy->index, .attempt = request->attempt };
        payload->born = request->attempt;
        payload->number = ++c->last_number;
        payload->n_groups = copy->n_groups;
        payload->end_usec = UINT64_MAX;
        LIST_INSERT_HEAD(&c->payloads, payload, entry);
        payload_hold(copy, payload);
        payload->active = request->active;
        ranks_start(copy);
        if (copy->index != STATE_HEAD) {
                uint64_t work_usec = timeline_random(t, timeline_random(t, 3) ? WORK_MAX_USEC : LONG_WORK_MAX_USEC);
                bool fails = timeline_chance(t, 40);

                if (fails || !ranks_follow(payload))
                        end_after(payload, work_usec, fails ? EXIT_STATUS(1) : 0);
                if (head_has_failed(payload)) {
                        payload->forced = true;
                        end_after(payload, timeline_random(t, NOTICE_MAX_USEC), EXIT_STATUS(1));
                }
        } else if (timeline_chance(t, 20)) {
                end_after(payload, timeline_random(t, WORK_MAX_USEC), timeline_random(t, 2) ? EXIT_STATUS(1) : SIGSEGV);
        }
        if (copy->index == STATE_HEAD) {
                step_after(payload, timeline_random(t, STEP_MAX_USEC));
                begin_to_write(payload);
        }
}

/* ---- checkpoints ---- */

static void save_parking(const struct payload *payload, struct saved *ret) {
        size_t n = payload->parking ? capsule__parking__get_packed_size(payload->parking) : 0;

        if (n > sizeof(ret->parking))
                abort();
        ret->parking_bytes = (uint32_t) n;
        if (n > 0)
                (void) capsule__parking__pack(payload->parking, ret->parking);
}

void payload_save(const struct payload *payload, struct saved *ret) {
        uint64_t now_usec = timeline_now_usec(payload->world->timeline);

        memset(ret, 0, sizeof(*ret));
        ret->job = payload->job;
        ret->index = payload->index;
        ret->born = payload->born;
        ret->left_usec = payload->end_usec == UINT64_MAX ? UINT64_MAX
                         : payload->end_usec > now_usec  ? payload->end_usec - now_usec
                                                         : 0;
        ret->end_status = payload->end_status;
        ret->n_groups = payload->n_groups;
        ret->asked = payload->asked;
        ret->failed = payload->failed;
        ret->forced = payload->forced;
        memcpy(ret->answered, payload->answered, sizeof(ret->answered));
        memcpy(ret->over, payload->over, sizeof(ret->over));
        ret->active = payload->active;
        ret->written_bytes = payload->written_bytes;
        ret->n_ranks = payload->n_ranks;
        if (payload->n_ranks > SAVED_RANKS)
                abort();
        for (uint32_t i = 0; i < payload->n_ranks; i++)
                ret->ranks[i] = payload->ranks[i];
        save_parking(payload, ret);
}

/* All of its job go on in the attempt that is placed now. Who is only tried is of none. */
void payload_restore(struct copy *copy, const struct saved *saved) {
        struct capsules *c = copy->world;
        struct payload *payload = xcalloc(1, sizeof(*payload));

        *payload = (struct payload) { .world = c,
                                      .job = saved->job,
                                      .index = saved->index,
                                      .attempt = named_attempt(copy),
                                      .born = saved->born,
                                      .end_usec = UINT64_MAX,
                                      .n_groups = saved->n_groups,
                                      .asked = saved->asked,
                                      .failed = saved->failed,
                                      .forced = saved->forced,
                                      .active = saved->active,
                                      .written_bytes = saved->written_bytes };
        payload->number = ++c->last_number;
        memcpy(payload->answered, saved->answered, sizeof(payload->answered));
        memcpy(payload->over, saved->over, sizeof(payload->over));
        if (saved->parking_bytes > 0)
                payload->parking = capsule__parking__unpack(NULL, saved->parking_bytes, saved->parking);
        LIST_INSERT_HEAD(&c->payloads, payload, entry);
        payload_hold(copy, payload);
        ranks_restore(payload, saved);
        if (saved->left_usec != UINT64_MAX)
                end_after(payload, saved->left_usec, saved->end_status);
        if (payload->index == STATE_HEAD) {
                step_after(payload, timeline_random(c->timeline, STEP_MAX_USEC));
                begin_to_write(payload);
        }
}

void payload_drop(struct copy *copy) {
        struct payload *payload = copy->payload;

        copy->payload = NULL;
        if (!payload || --payload->refs > 0)
                return;
        LIST_REMOVE(payload, entry);
        ranks_finish(payload);
        if (payload->index == STATE_HEAD && !payload->ended)
                end_groups(payload, EXIT_STATUS(1));
        else if (!payload->ended)
                report_head(payload, true);
        free(payload);
}

void payload_signal(struct payload *payload, int signo) {
        struct timeline *t = payload->world->timeline;

        payload->forced = true;
        if (signo == SIGKILL || timeline_random(t, 8))
                end_after(payload, timeline_random(t, SIGNAL_MAX_USEC), signo);
}

static bool number_of(const char *agent, const struct payload *head, unsigned *ret) {
        return head->index == STATE_HEAD && sscanf(agent, "a%u", ret) == 1 && *ret < head->n_groups;
}

bool payload_answer(struct payload *payload, const char *agent, int status) {
        unsigned i;

        if (!number_of(agent, payload, &i) || payload->answered[i])
                return false;
        payload->answered[i] = payload->over[i] = true;
        payload->failed |= status != 0;
        if (status != 0 && payload->active > 0)
                end_groups(payload, EXIT_STATUS(1));
        step_after(payload, timeline_random(payload->world->timeline, STEP_MAX_USEC));
        return true;
}

void payload_ask(struct copy *copy) {
        const struct payload *payload = copy->payload;
        struct report report = { .kind = REPORT_AGENT_REQUEST };

        if (!payload || payload->index != STATE_HEAD || !payload->asked)
                return;
        for (unsigned i = 0; i < payload->n_groups; i++) {
                (void) snprintf(report.text, sizeof(report.text), "a%u", i);
                launch_hostname(report.host, payload->job, (int32_t) i);
                if (!payload->answered[i])
                        copy_report(copy, &report);
        }
}
