#include "tests/sim/workload.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/leader/partners.h"
#include "daemon/state/commands.h"
#include "tests/sim/sockets.h"

#define N_NODES_MAX 16U
#define MAX_RANKS 4U
#define MAX_RESERVE 5U /* ranks that wait until their job grows */
/* Jobs that have ended and are known. */
#define ENDED_KEPT 12U
/* A job is forgotten with its token: not before the one who submitted it has long been answered,
 * and packets of that time are gone. */
#define FORGET_USEC UINT64_C(15000000)
#define JOBS_OPEN 6U
/* A submission that has not been answered is sent again after that, perhaps to another node. */
#define AGAIN_USEC UINT64_C(1500000)
#define RESTARTS 20U
#define CHECKPOINT_MAX_SEC 4U /* from one to the next */
#define CHECKPOINTS_KEPT 2U
#define COPIES_MAX 2U

/* A command being made, and what it points to. */
struct draft {
        struct timeline *timeline;
        struct checks *checks;
        const Rm__State *state;
        const char *self; /* the node that asks for it */
        struct command c;
        uint32_t operation;
        char text[32], address[32];
        Rm__JobSpec spec;
        Rm__Node node;
        char *argv[1];
        Rm__NodeCores cores[N_NODES_MAX], *core_list[N_NODES_MAX];
        Rm__AvailabilityStatus status;
        char *capsule_nodes[N_NODES_MAX], *partners[N_NODES_MAX]; /* the latter are owned */
};

static uint64_t draw(const struct draft *d, uint64_t n) {
        return timeline_random(d->timeline, n);
}

#define NOWHERE "nowhere"

/* Or one that is not there. */
static char *some_node(const struct draft *d) {
        uint64_t i = draw(d, d->state->n_nodes + 1);

        return i < d->state->n_nodes ? d->state->nodes[i]->name : (char *) NOWHERE;
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

/* The command follows from the token: a client that sends it again sends the same. */
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
        if (token / 16 % 2) {
                d->spec.active_ranks = d->spec.ranks;
                d->spec.min_ranks = 1 + token / 32 % d->spec.active_ranks;
                d->spec.ranks += token / 64 % MAX_RESERVE;
        }
        if (token / 8 % 2) {
                d->spec.on_node_loss = token / 128 % 3 == 0 ? STATE_LOSS_FOLD : STATE_LOSS_RESTART;
                d->spec.restarts = RESTARTS;
        }
        if (token % 3 > 0) {
                d->spec.checkpoint_usec = (1 + token / 3 % CHECKPOINT_MAX_SEC) * UINT64_C(1000000);
                d->spec.checkpoint_files = token / 12 % 4 == 0;
        }
        body = command_job_submit(&d->c, &d->spec);
        body->max_jobs = JOBS_OPEN;
        return &d->c.command;
}

static const Rm__Command *drain(struct draft *d) {
        begin(d, "drain");
        return command_node_drain(&d->c, some_node(d), d->text, "root", 0, draw(d, 2));
}

static const Rm__Command *resume(struct draft *d) {
        begin(d, "resume");
        return command_node_resume(&d->c, some_node(d), d->text);
}

/* Mostly all is well, or what runs would soon have no place left. */
static const Rm__Command *report_condition(struct draft *d) {
        Rm__Condition value = draw(d, 4) ? RM__CONDITION__CONDITION_OK : (Rm__Condition) (1 + draw(d, 3));

        begin(d, "condition");
        return command_node_condition(&d->c, some_node(d), draw(d, 2) ? "report" : "edac", value, d->text, "root");
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

/* As a node does when it has started. */
static const Rm__Command *join(struct draft *d) {
        const Rm__Node *node = state_node(d->state, d->self);
        unsigned number = 0;

        if (!node)
                return NULL;
        begin(d, "join");
        rm__node__init(&d->node);
        (void) sscanf(node->name, "n%u", &number);
        (void) snprintf(d->address, sizeof(d->address), SOCKETS_ADDRESS, number + 1);
        d->node.name = node->name;
        d->node.boot_id = node->boot_id; /* with another one its capsules count as lost */
        d->node.address = d->address;
        d->node.port = SOCKETS_PORT;
        d->node.cores = 1 + (uint32_t) draw(d, 8);
        d->node.level = STATE_LEVEL;
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

/* ---- jobs ---- */

static const Rm__Capsule *some_capsule(const struct draft *d, const Rm__Job *job) {
        return job->capsules[draw(d, job->n_capsules)];
}

static bool has_open_move(const Rm__State *state, uint64_t job, int32_t capsule) {
        for (size_t i = state->n_moves; i > 0; i--) {
                const Rm__Move *move = state->moves[i - 1];

                if (move->job == job && move->capsule == capsule &&
                    (move->state == RM__MOVE_STATE__MOVE_RUNNING || move->state == RM__MOVE_STATE__MOVE_COMMITTED))
                        return true;
        }
        return false;
}

/* Migrates as 'rmctl migrate-job' does. NULL: most often it would be refused. */
static const Rm__Command *migrate(struct draft *d, const Rm__Job *job) {
        const Rm__Capsule *capsule = some_capsule(d, job);
        Rm__CmdMoveStart *body;

        if (has_open_move(d->state, job->id, capsule->index) && draw(d, 16))
                return NULL;
        begin(d, "move-start");
        body = command_move_start(&d->c, job->id, capsule->index, some_node(d));
        body->cause = RM__MOVE_CAUSE__MOVE_CAUSE_ASKED;
        body->reason = d->text;
        body->stop = draw(d, 4) == 0;
        return &d->c.command;
}

/* Resizes as 'rmctl resize-job' does. */
static const Rm__Command *resize(struct draft *d, const Rm__Job *job) {
        uint32_t ranks = draw(d, 3) ? (uint32_t) draw(d, job->spec->ranks + 1) : 0; /* 0: rmd decides again */

        begin(d, "resize");
        return command_job_resize(&d->c, job->id, ranks, "alice");
}

/* ---- checkpoints ---- */

/* As leader_checkpoint() of daemon/leader has it. */
static const Rm__Command *checkpoint(struct draft *d, const Rm__Job *job, bool drill) {
        uint32_t copies = drill ? 0 : (uint32_t) draw(d, COPIES_MAX + 1);
        Rm__CmdCheckpointStart *body;

        begin(d, drill ? "drill" : "checkpoint");
        body = command_checkpoint_start(&d->c, job->id,
                                        drill ? RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_DRILL
                                              : RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED);
        body->by = (char *) "alice";
        body->stop = !drill && draw(d, 2) == 0;
        body->keep = CHECKPOINTS_KEPT;
        body->capsule_nodes = d->capsule_nodes;
        body->partners = d->partners;
        for (size_t i = 0; i < job->n_capsules; i++) {
                char *node = job->capsules[i]->node;

                if (names_have(d->capsule_nodes, body->n_capsule_nodes, node))
                        continue;
                d->capsule_nodes[body->n_capsule_nodes++] = node;
                d->partners[body->n_partners++] = partners_choose(d->state, job, node, copies);
        }
        return &d->c.command;
}

/* A checkpoint of the job, or the newest. */
static uint64_t some_checkpoint(const struct draft *d, const Rm__Job *job) {
        return job->n_checkpoints > 0 ? job->checkpoints[draw(d, job->n_checkpoints)]->id : 0;
}

static const Rm__Command *release(struct draft *d, const Rm__Job *job) {
        begin(d, "restart-job");
        return command_job_release(&d->c, job->id, draw(d, 2) ? some_checkpoint(d, job) : 0, "alice", NULL);
}

static const Rm__Command *remove_checkpoint(struct draft *d, const Rm__Job *job) {
        begin(d, "remove-checkpoint");
        return command_checkpoint_remove(&d->c, job->id, some_checkpoint(d, job), "alice");
}

/* NULL: there is nothing to be asked for. */
static const Rm__Command *save(struct draft *d) {
        const Rm__Job *job = some_job(d);

        for (unsigned i = 0; i < 8 && job && job->state != RM__JOB_STATE__JOB_RUNNING && !job->held; i++)
                job = some_job(d);
        if (!job)
                return NULL;
        if ((job->held && draw(d, 3) == 0) || (job_ended(job) && job->n_checkpoints > 0 && draw(d, 8) == 0))
                return release(d, job);
        if (job->n_checkpoints > 0 && draw(d, 6) == 0)
                return remove_checkpoint(d, job);
        return job->state == RM__JOB_STATE__JOB_RUNNING ? checkpoint(d, job, draw(d, 3) == 0) : NULL;
}

/* NULL: there is nothing to be asked for. */
static const Rm__Command *advance(struct draft *d) {
        const Rm__Job *job = some_job(d);

        for (unsigned i = 0; i < 8 && job && job_ended(job); i++)
                job = some_job(d);
        if (!job)
                return NULL;
        switch (job->state) {
        case RM__JOB_STATE__JOB_RUNNING:
                return job->resize && draw(d, 8) == 0 ? resize(d, job) : migrate(d, job);
        default:
                return forget(d);
        }
}

static const Rm__Command *wait(struct draft *d) {
        const Rm__Job *job = some_job(d);

        begin(d, "wait");
        command_job_wait(&d->c, job ? job->id : 1, d->text)->lost_round = true;
        return &d->c.command;
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
        if (which < 12)
                command = save(d);
        else if (which < 50)
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
                command = join(d);
        else if (which < 93)
                command = report_condition(d);
        return command ? command : note(d);
}

Rm__Command *workload_command(struct timeline *t, struct checks *checks, const Rm__State *state, const char *self,
                              uint32_t *ret_operation) {
        struct draft d = { .timeline = t, .checks = checks, .state = state, .self = self };
        Rm__Command *command = (Rm__Command *) message_copy(&draw_command(&d)->base);

        for (size_t i = 0; i < ARRAY_SIZE(d.partners); i++)
                free(d.partners[i]);
        *ret_operation = d.operation;
        return command;
}
