#include "tests/sim/workload.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/commands.h"
#include "tests/sim/capsules.h"

#define N_NODES_MAX 16U
#define MAX_RANKS 4U
/* Jobs that have ended and are known. */
#define ENDED_KEPT 12U
/* A job is forgotten with its token: not before the one who submitted it has long been answered, and packets of that time are gone. */
#define FORGET_USEC UINT64_C(15000000)
#define JOBS_OPEN 6U
/* A submission that has not been answered is sent again after that, perhaps to another node. */
#define AGAIN_USEC UINT64_C(1500000)
#define RESTARTS 20U

/* A command being made, and what it points to. */
struct draft {
        struct timeline *timeline;
        struct checks *checks;
        const Rm__State *state;
        struct command c;
        uint32_t operation;
        char text[32];
        Rm__JobSpec spec;
        Rm__Node node;
        Rm__Move figures;
        char *argv[1];
        Rm__NodeCores cores[N_NODES_MAX], *core_list[N_NODES_MAX];
        Rm__AvailabilityStatus status;
};

static uint64_t draw(const struct draft *d, uint64_t n) {
        return timeline_random(d->timeline, n);
}

/* Or one that is not there. */
static char *some_node(const struct draft *d) {
        uint64_t i = draw(d, d->state->n_nodes + 1);

        return i < d->state->n_nodes ? d->state->nodes[i]->name : (char *) "nowhere";
}

static const Rm__Job *some_job(const struct draft *d) {
        return d->state->n_jobs ? d->state->jobs[draw(d, d->state->n_jobs)] : NULL;
}

/* "op7": a text that tells which operation it is of. */
static void begin(struct draft *d, const char *kind) {
        d->operation = checks_operation(d->checks, kind);
        (void) snprintf(d->text, sizeof(d->text), "op%" PRIu32, d->operation);
}

/* ---- users and administrators ---- */

/* All of it is of the token: who sends it again sends the same. */
static const Rm__Command *submit(struct draft *d, uint32_t again) {
        uint32_t token;
        Rm__CmdJobSubmit *body;

        begin(d, "submit");
        token = again ? again : d->operation;
        checks_submission(d->checks, d->operation, token);
        (void) snprintf(d->text, sizeof(d->text), "op%" PRIu32, token);
        rm__job_spec__init(&d->spec);
        d->argv[0] = (char *) "mpirun";
        d->spec.name = (char *) "a.out";
        d->spec.user = (char *) "alice";
        d->spec.uid = 1000 + token % 2;
        d->spec.argv = d->argv;
        d->spec.n_argv = 1;
        d->spec.ranks = 1 + token / 2 % MAX_RANKS;
        d->spec.token = d->text;
        if (token / 8 % 2) {
                d->spec.on_node_loss = STATE_LOSS_RESTART;
                d->spec.restarts = RESTARTS;
        }
        body = command_job_submit(&d->c, &d->spec);
        body->max_jobs = JOBS_OPEN;
        return &d->c.command;
}

static const Rm__Command *drain(struct draft *d) {
        begin(d, "drain");
        return command_node_drain(&d->c, some_node(d), d->text, "root", draw(d, 2));
}

static const Rm__Command *resume(struct draft *d) {
        begin(d, "resume");
        return command_node_resume(&d->c, some_node(d), d->text);
}

static const Rm__Command *cancel(struct draft *d) {
        const Rm__Job *job = some_job(d);

        begin(d, "cancel");
        return command_job_cancel(&d->c, job ? job->id : 1, 15, d->text);
}

/* NULL: none is to be forgotten. */
static const Rm__Command *forget(struct draft *d) {
        const Rm__Job *oldest = NULL;
        uint64_t answered_usec;
        size_t ended = 0;

        for (size_t i = d->state->n_jobs; i > 0; i--)
                if (job_ended(d->state->jobs[i - 1])) {
                        oldest = d->state->jobs[i - 1];
                        ended++;
                }
        if (ended < ENDED_KEPT)
                return NULL;
        answered_usec = checks_acknowledged_usec(d->checks, (uint32_t) strtoul(oldest->spec->token + 2, NULL, 10));
        if (answered_usec == 0 || timeline_now_usec(d->timeline) - answered_usec < FORGET_USEC)
                return NULL;
        begin(d, "forget");
        return command_job_forget(&d->c, oldest->id);
}

/* ---- nodes ---- */

static const Rm__Command *join(struct draft *d, const char *node) {
        begin(d, "join");
        rm__node__init(&d->node);
        d->node.name = (char *) node;
        d->node.address = (char *) "10.0.0.1";
        d->node.cores = 1 + (uint32_t) draw(d, 8);
        d->node.level = STATE_LEVEL; /* and always the same boot: with another one its capsules count as lost */
        return command_node_join(&d->c, &d->node);
}

static const Rm__Command *health(struct draft *d) {
        begin(d, "health");
        return command_node_health(&d->c, some_node(d),
                                   draw(d, 4) ? RM__NODE_HEALTH__NODE_HEALTH_UP : RM__NODE_HEALTH__NODE_HEALTH_DOWN, d->text);
}

static const Rm__Command *availability(struct draft *d) {
        Rm__CmdAvailability *body;

        begin(d, "availability");
        body = command_availability(&d->c);
        rm__availability_status__init(&d->status);
        d->status.path = d->text;
        body->status = &d->status;
        body->nodes = d->core_list;
        for (size_t i = 0; i < d->state->n_nodes && i < N_NODES_MAX; i++) {
                if (draw(d, 2))
                        continue;
                rm__node_cores__init(&d->cores[i]);
                d->cores[i].node = d->state->nodes[i]->name;
                d->cores[i].cores = (uint32_t) draw(d, 5);
                d->core_list[body->n_nodes++] = &d->cores[i];
        }
        body->content = true;
        return &d->c.command;
}

/* ---- the life of a job ---- */

static const Rm__Capsule *some_capsule(const struct draft *d, const Rm__Job *job) {
        return job->capsules[draw(d, job->n_capsules)];
}

static const Rm__Command *start(struct draft *d, const Rm__Job *job) {
        for (size_t k = 0; k < job->n_capsules; k++)
                if (job->capsules[k]->state == RM__CAPSULE_STATE__CAPSULE_PLACED) {
                        begin(d, "ready");
                        return command_capsule_ready(&d->c, job->id, job->capsules[k]->index, job->capsules[k]->node);
                }
        begin(d, "running");
        return command_job_running(&d->c, job->id);
}

static const Rm__Command *advance_move(struct draft *d, const Rm__Move *move) {
        if (move->state == RM__MOVE_STATE__MOVE_COMMITTED) {
                if (move->fill_usec == 0 && draw(d, 4) == 0) {
                        begin(d, "move-filled");
                        return command_move_filled(&d->c, move->id, 1000);
                }
                begin(d, "move-done");
                rm__move__init(&d->figures);
                d->figures.id = move->id;
                d->figures.freeze_usec = 1000 + draw(d, 1000);
                return command_move_done(&d->c, &d->figures);
        }
        /* Moves of jobs that start again are not simulated: it takes a source that is frozen before the commit. */
        if (capsules_of(state_job(d->state, move->job))) {
                begin(d, "move-end");
                return command_move_abort(&d->c, move->id, d->text);
        }
        if (draw(d, 8) == 0) {
                begin(d, "move-waiting");
                return command_move_waiting(&d->c, move->id, d->text);
        }
        begin(d, "move-end");
        return draw(d, 3) ? command_move_commit(&d->c, move->id) : command_move_abort(&d->c, move->id, d->text);
}

static const Rm__Move *open_move(const Rm__State *state, uint64_t job) {
        for (size_t i = state->n_moves; i > 0; i--) {
                const Rm__Move *move = state->moves[i - 1];

                if (move->job == job &&
                    (move->state == RM__MOVE_STATE__MOVE_RUNNING || move->state == RM__MOVE_STATE__MOVE_COMMITTED))
                        return move;
        }
        return NULL;
}

static const Rm__Command *run(struct draft *d, const Rm__Job *job) {
        const Rm__Move *move = open_move(d->state, job->id);
        Rm__CmdMoveStart *body;

        if (move && draw(d, 4))
                return advance_move(d, move);
        if (draw(d, 2) && (!capsules_of(job) || draw(d, 8) == 0)) {
                begin(d, "exit");
                return command_job_exit(&d->c, job->id, draw(d, 3) ? 0 : 1, d->text, (Rm__JobState) 0);
        }
        if (capsules_of(job))
                return NULL;
        begin(d, "move-start");
        body = command_move_start(&d->c, job->id, some_capsule(d, job)->index, some_node(d));
        body->cause = RM__MOVE_CAUSE__MOVE_CAUSE_ASKED;
        body->reason = d->text;
        return &d->c.command;
}

static const Rm__Command *complete(struct draft *d, const Rm__Job *job) {
        const Rm__Capsule *capsule = some_capsule(d, job);

        if (capsules_of(job))
                return NULL; /* it may start again: its members say what is gone */
        begin(d, "gone");
        return command_capsule_gone(&d->c, job->id, capsule->index, capsule->incarnation, capsule->node);
}

/* The next step in the life of a job that has not ended; NULL: there is none. */
static const Rm__Command *advance(struct draft *d) {
        const Rm__Job *job = some_job(d);

        for (unsigned i = 0; i < 8 && job && job_ended(job); i++)
                job = some_job(d);
        if (!job)
                return NULL;
        switch (job->state) {
        case RM__JOB_STATE__JOB_STARTING:
                return start(d, job);
        case RM__JOB_STATE__JOB_RUNNING:
                return run(d, job);
        case RM__JOB_STATE__JOB_COMPLETING:
                return complete(d, job);
        default:
                return forget(d);
        }
}

static const Rm__Command *wait(struct draft *d) {
        const Rm__Job *job = some_job(d);

        begin(d, "wait");
        return command_job_wait(&d->c, job ? job->id : 1, d->text, true);
}

static const Rm__Command *note(struct draft *d) {
        begin(d, "note");
        return command_note(&d->c, d->text);
}

static const Rm__Command *draw_command(struct draft *d) {
        const Rm__Command *command = NULL;
        uint64_t which = draw(d, 100);

        uint32_t again = checks_unanswered(d->checks, AGAIN_USEC);

        if (again && draw(d, 2))
                return submit(d, again);
        if (draw(d, 4) == 0)
                command = forget(d);
        if (command)
                return command;
        if (which < 50)
                command = advance(d);
        else if (which < 65)
                command = submit(d, 0);
        else if (which < 69)
                command = drain(d);
        else if (which < 75)
                command = resume(d);
        else if (which < 78)
                command = cancel(d);
        else if (which < 82)
                command = health(d);
        else if (which < 84)
                command = availability(d);
        else if (which < 87)
                command = wait(d);
        else if (which < 89)
                command = join(d, some_node(d));
        return command ? command : note(d);
}

Rm__Command *workload_command(struct timeline *t, struct checks *checks, const Rm__State *state, uint32_t *ret_operation) {
        struct draft d = { .timeline = t, .checks = checks, .state = state };
        const Rm__Command *command = draw_command(&d);

        *ret_operation = d.operation;
        return (Rm__Command *) message_copy(&command->base);
}
