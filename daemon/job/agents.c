#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/job/bodies.h"
#include "daemon/job/launch.h"
#include "daemon/job/runner_internal.h"
#include "daemon/peers/peer_message.h"

/* The part of each copy that this file keeps. */
struct resident_agents {
        char *agent;        /* of a group: the rm-agent in the head that asked for its daemon; NULL: not known (yet) */
        char *waiting_line; /* of a group: what its rm-agent wants run, once there is a lease; NULL: nothing */
        struct log_rate refusals; /* lines about requests of rm-agents that came to nothing */
};

static struct resident_agents *agents_of(const struct resident *resident) {
        return resident_part(resident, RESIDENT_AGENTS, sizeof(struct resident_agents));
}

void agents_forget(struct resident *resident) {
        struct resident_agents *agents = agents_of(resident);

        free(take_ptr(agents->agent));
        free(take_ptr(agents->waiting_line));
}

static void forget_request(struct agent_request *request) {
        LIST_REMOVE(request, entry);
        free(request->id);
        free(request->command);
        free(request);
}

void agents_finish(struct runner *runner) {
        while (!LIST_EMPTY(&runner->requests))
                forget_request(LIST_FIRST(&runner->requests));
}

static struct agent_request *find_request(struct runner *runner, uint64_t job, const char *id) {
        struct agent_request *r;

        LIST_FOREACH (r, &runner->requests, entry)
                if (r->job == job && strcmp(r->id, id) == 0)
                        return r;
        return NULL;
}

static void send_request(struct runner *runner, struct agent_request *request) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), request->job);
        const Rm__Capsule *target = job ? job_capsule(job, request->to) : NULL;
        Rm__AgentRun run = RM__AGENT_RUN__INIT;

        if (!target || !runner_current(runner, request->job, STATE_HEAD))
                return;
        run.job = request->job;
        run.attempt = job->attempt;
        run.from_capsule = STATE_HEAD;
        run.to_capsule = request->to;
        run.agent = request->id;
        run.command = request->command;
        request->asked = target->incarnation;
        /* A request that is not delivered, or not answered, is sent again by the retry timer; the
         * target takes it once. */
        (void) cluster_send(runner->rmd->cluster, target->node, &PEER_MESSAGE(&run));
        runner_retry(runner);
}

/* Any program of the job's can ask, as often as it likes. */
static void refuse(struct resident *head, const char *id, const char *host) {
        log_limited(&agents_of(head)->refusals, LOG_WARNING,
                    "job %" PRIu64 ": mpirun asks for host '%s', which is none of the job's capsules", resident_job(head), host);
        (void) capsule_agent_reply(resident_capsule(head), id, 255, NULL, NULL);
}

/* False when it is certain that there is no such capsule. A daemon that has only just come back may
 * not know the job yet. */
static bool may_exist(const struct runner *runner, uint64_t job, int32_t index) {
        const Rm__Job *known = state_job(cluster_state(runner->rmd->cluster), job);

        return !cluster_synced(runner->rmd->cluster) || (known && job_capsule(known, index));
}

void agents_on_request(struct runner *runner, struct resident *resident, const char *id, const char *host, const char *command) {
        struct agent_request *request = find_request(runner, resident_job(resident), id);
        int32_t to = 0;

        if (!launch_parse_hostname(host, resident_job(resident), &to) || !may_exist(runner, resident_job(resident), to)) {
                refuse(resident, id, host);
                return;
        }
        if (!request) {
                request = xcalloc(1, sizeof(*request));
                request->job = resident_job(resident);
                request->to = to;
                request->id = xstrdup(id);
                request->command = xstrdup(command);
                LIST_INSERT_HEAD(&runner->requests, request, entry);
        }
        request->confirmed = false;
        send_request(runner, request);
}

void agents_on_gone(struct runner *runner, struct resident *resident, const char *id) {
        struct agent_request *request = find_request(runner, resident_job(resident), id);
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), resident_job(resident));
        const Rm__Capsule *target = job && request ? job_capsule(job, request->to) : NULL;
        Rm__AgentKill kill = RM__AGENT_KILL__INIT;

        if (target && runner_current(runner, resident_job(resident), STATE_HEAD) == resident) {
                kill.job = resident_job(resident);
                kill.attempt = job->attempt;
                kill.to_capsule = request->to;
                (void) cluster_send(runner->rmd->cluster, target->node, &PEER_MESSAGE(&kill));
        }
        if (request)
                forget_request(request);
}

/* A group that has moved does not know who waits for the end of its daemon. */
static bool knows(const struct runner *runner, const struct agent_request *request) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), request->job);
        const Rm__Capsule *target = job ? job_capsule(job, request->to) : NULL;

        return request->confirmed && target && target->incarnation == request->asked;
}

void agents_reconcile(struct runner *runner) {
        struct agent_request *next;

        for (struct agent_request *r = LIST_FIRST(&runner->requests); r; r = next) {
                struct resident *head = runner_current(runner, r->job, STATE_HEAD);

                next = LIST_NEXT(r, entry);
                if (!head || resident_phase(head) == RESIDENT_EXITED) {
                        forget_request(r);
                } else if (!may_exist(runner, r->job, r->to)) {
                        char host[64];

                        launch_hostname(host, r->job, r->to);
                        refuse(head, r->id, host);
                        forget_request(r);
                } else if (!knows(runner, r)) {
                        r->confirmed = false;
                        send_request(runner, r);
                }
        }
}

/* ---- the target's side ---- */

static void report_head(struct runner *runner, const struct resident *group, bool running, int status) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), resident_job(group));
        const Rm__Capsule *head = job ? job_capsule(job, STATE_HEAD) : NULL;
        char *agent = agents_of(group)->agent;
        Rm__AgentDone done = RM__AGENT_DONE__INIT;

        if (!head || !agent)
                return;
        done.job = resident_job(group);
        done.from_capsule = STATE_HEAD;
        done.agent = agent;
        done.running = running;
        done.status = status;
        if (cluster_send(runner->rmd->cluster, head->node, &PEER_MESSAGE(&done)) < 0)
                runner_retry(runner);
}

void agents_report_exit(struct runner *runner, struct resident *group) {
        report_head(runner, group, false, launch_exit_code(resident_wait_status(group)));
}

struct launched {
        struct call *call;
        char *line;
};

static void launched_free(struct launched *launched) {
        free(launched->line);
        free(launched);
}

static void on_launched(struct capsule *capsule, int error, const char *text, void *arg) {
        struct launched *launched = arg;
        struct resident *group = call_done(launched->call, error);

        if (error == -ETIME && group) {
                struct resident_agents *agents = agents_of(group);

                (void) resident_event(group, RESIDENT_EV_UNLAUNCHED);
                free(agents->waiting_line);
                agents->waiting_line = take_ptr(launched->line);
        } else if (error < 0 && group) {
                log_limited(&agents_of(group)->refusals, LOG_WARNING,
                            "job %" PRIu64 ": group %" PRId32 " cannot start its daemon: %s", resident_job(group),
                            resident_index(group), text);
                (void) resident_event(group, RESIDENT_EV_UNLAUNCHED); /* if the head does not hear of it, it asks again */
                report_head(resident_runner(group), group, false, 127);
        } else if (group) {
                runner_wake(resident_runner(group)); /* it may have cores to go to */
        }
        launched_free(launched);
}

/* Is rm-yield in the group? If it cannot be, its ranks yield without. */
static bool give_yield(const struct resident *group, const Rm__JobSpec *spec) {
        int r;

        if (!launch_may_yield(spec))
                return false;
        r = runner_copy_program(group, "rm-yield.so", LAUNCH_YIELD);
        if (r < 0)
                log_warn("job %" PRIu64 ": cannot copy rm-yield into group %" PRId32 ": %s", resident_job(group),
                         resident_index(group), strerror(-r));
        return r == 0;
}

/* Gives a group librmrt-ft, where its job goes on without lost ranks: without the library its ranks
 * would go on alone, and wait for ever. */
static int give_ft(const struct resident *group, const Rm__JobSpec *spec, struct rm_error *err) {
        int r = launch_goes_on(spec) ? runner_copy_program(group, LAUNCH_FT_NAME, LAUNCH_FT) : 0;

        return r < 0 ? error_sys(err, r, "cannot copy %s/%s into it, which --on-rank-loss continue needs", RM_LIBEXEC_DIR,
                                 LAUNCH_FT_NAME)
                     : 0;
}

/* Returns which of rmd's own libraries are in the group, as bits of LAUNCH_WITH_*. */
static unsigned preloads(const struct resident *group, const Rm__JobSpec *spec) {
        return (give_yield(group, spec) ? LAUNCH_WITH_YIELD : 0) | (launch_goes_on(spec) ? LAUNCH_WITH_FT : 0) |
               runner_give_prrte(group);
}

/* Launches the daemon of a group that is READY. False: not yet, since its body is on its way; the
 * request is sent again. */
static bool launch_group(struct runner *runner, struct resident *group, const Rm__Job *job, const char *line) {
        struct launch_command command;
        struct launched *launched;
        struct rm_error err = { 0 };
        Rm__JobSpec *spec = NULL;
        int r = bodies_get(runner->rmd->bodies, job, &spec, &err);

        if (r == -EAGAIN)
                return false;
        if (resident_event(group, RESIDENT_EV_LAUNCH) != RESIDENT_SEND)
                return false;
        launched = xcalloc(1, sizeof(*launched));
        *launched = (struct launched) { resident_call(group), xstrdup(line) };
        if (r == 0)
                r = give_ft(group, spec, &err);
        if (r < 0) {
                on_launched(resident_capsule(group), r, error_text(&err), launched);
                rm__job_spec__free_unpacked(spec, NULL);
                return true;
        }
        launch_group_command(&command, job, spec, line, preloads(group, spec));
        launch_set_loss_wait(&command, spec, runner->rmd->config->node_timeout_usec);
        if (!call_begun(launched->call, capsule_run(resident_capsule(group), &command.command, on_launched, launched)))
                launched_free(launched);
        launch_command_finish(&command);
        rm__job_spec__free_unpacked(spec, NULL);
        return true;
}

/* Is the message from the head of another attempt: from a node which was away, and still acts by
 * what it knew then? */
static bool is_of_another(const Rm__Job *job, uint32_t attempt) {
        return attempt && attempt != job->attempt;
}

void agents_unfenced(struct runner *runner, struct resident *group) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), resident_job(group));
        cleanup_free char *line = take_ptr(agents_of(group)->waiting_line);

        if (line && job && resident_phase(group) == RESIDENT_READY)
                (void) launch_group(runner, group, job, line);
}

void runner_agent_run(struct runner *runner, const Rm__AgentRun *run) {
        struct resident *group = runner_current(runner, run->job, run->to_capsule);
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), run->job);
        struct resident_agents *agents;

        if (!group || !resident_answers(group) || !job || run->to_capsule < 0 || is_of_another(job, run->attempt))
                return; /* not here, or not yet: it is sent again */
        agents = agents_of(group);
        free(agents->agent);
        agents->agent = xstrdup(run->agent);
        if (resident_phase(group) == RESIDENT_EXITED) {
                agents_report_exit(runner, group);
                return;
        }
        if (resident_phase(group) == RESIDENT_READY && capsule_phase(resident_capsule(group)) == CAPSULE_EMPTY &&
            !launch_group(runner, group, job, run->command))
                return;
        report_head(runner, group, true, 0);
}

void runner_agent_kill(struct runner *runner, const Rm__AgentKill *kill) {
        struct resident *group = runner_current(runner, kill->job, kill->to_capsule);
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), kill->job);

        if (group && resident_is_live(group) && !is_of_another(job, kill->attempt))
                ends_orphan(runner, group);
}

/* Where the group is that the request is for; NULL when that is not known. */
static const char *target_node(const struct runner *runner, const struct agent_request *request) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), request->job);
        const Rm__Capsule *target = job ? job_capsule(job, request->to) : NULL;

        return target ? target->node : NULL;
}

void runner_agent_done(struct runner *runner, const char *node, const Rm__AgentDone *done) {
        struct agent_request *request = find_request(runner, done->job, done->agent);
        struct resident *head = runner_current(runner, done->job, STATE_HEAD);

        if (!request)
                return;
        if (done->running) {
                const char *target = target_node(runner, request);

                /* An answer counts only from the node that the daemon was last asked of: an answer
                 * of a copy that has moved on since does not confirm the request. */
                if (target && strcmp(target, node) == 0)
                        request->confirmed = true;
                return;
        }
        if (head && resident_answers(head))
                (void) capsule_agent_reply(resident_capsule(head), done->agent, done->status & 0xff, NULL, NULL);
        forget_request(request);
}

void runner_keep_peers(struct runner *runner) {
        const struct agent_request *r;

        LIST_FOREACH (r, &runner->requests, entry)
                if (target_node(runner, r))
                        cluster_keep(runner->rmd->cluster, target_node(runner, r));
}

void runner_peer_connected(struct runner *runner, const char *node) {
        struct agent_request *r;

        LIST_FOREACH (r, &runner->requests, entry) {
                const char *target = target_node(runner, r);

                if (!target || strcmp(target, node) == 0)
                        r->confirmed = false;
        }
        runner_wake(runner);
}
