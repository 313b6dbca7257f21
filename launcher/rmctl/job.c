/* rmctl list-jobs, show-job */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"
#include "launcher/client/buffer.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/move.h"
#include "launcher/rmctl/pages.h"
#include "launcher/rmctl/use.h"
#include "launcher/rmctl/verb.h"

static int fetch(struct call *call, bool all, Rm__LocalReply **ret_reply) {
        cleanup_free uint64_t *jobs = NULL;
        int r = call_jobs(call, &jobs);

        return r < 0 ? r : call_fetch_jobs(call, jobs, call->n_args, all, ret_reply);
}

/* How long it has run; "-" before it starts. */
static char *run_time(const Rm__Job *job) {
        uint64_t end = job->end_usec ? job->end_usec : now_real_usec();

        if (job->start_usec == 0 || end < job->start_usec)
                return NULL;
        return human_elapsed(end - job->start_usec);
}

/* rmd names the nodes one by one. */
static char *short_nodes(const char *nodes) {
        cleanup_free char *copy = xstrdup(nodes);
        struct hostlist hosts = { 0 };
        char *text;

        for (char *save = NULL, *name = strtok_r(copy, " ", &save); name; name = strtok_r(NULL, " ", &save))
                hostlist_add(&hosts, name);
        text = hostlist_compress(hosts.names, hosts.n_names);
        hostlist_finish(&hosts);
        return text;
}

/* "42 %", never 100 before the end; NULL: not known. */
static char *percent(const Rm__Progress *p) {
        if (!p || p->total == 0)
                return NULL;
        return xasprintf("%u %%", (unsigned) ((double) p->done * 100 / (double) p->total));
}

/* "4200 of 10000 steps (42 %), 12.5 a second, 7m40s left"; NULL: its program says nothing. */
static char *progress_text(const Rm__Progress *p) {
        struct buffer b = { 0 };

        if (!p)
                return NULL;
        buffer_printf(&b, "%" PRIu64, p->done);
        if (p->total > 0) {
                cleanup_free char *part = percent(p);

                buffer_printf(&b, " of %" PRIu64 " steps (%s)", p->total, part);
        } else
                buffer_printf(&b, " steps");
        if (p->rate > 0)
                buffer_printf(&b, ", %.3g a second", p->rate);
        if (p->left_usec > 0) {
                cleanup_free char *left = human_elapsed(p->left_usec);

                buffer_printf(&b, ", %s left", left);
        }
        return buffer_take_text(&b);
}

/* "at least 10 a second, at most 20"; NULL: none. */
static char *goal_text(const Rm__Progress *p) {
        if (!p || (p->goal_min <= 0 && p->goal_max <= 0))
                return NULL;
        if (p->goal_max <= 0)
                return xasprintf("at least %.3g steps a second", p->goal_min);
        if (p->goal_min <= 0)
                return xasprintf("at most %.3g steps a second", p->goal_max);
        return xasprintf("%.3g to %.3g steps a second", p->goal_min, p->goal_max);
}

/* "4/16": active of all. */
static char *ranks_text(const Rm__JobView *v) {
        const Rm__JobSpec *spec = v->job->spec;

        return spec->active_ranks ? xasprintf("%u/%u", v->active_ranks, spec->ranks) : xasprintf("%u", spec->ranks);
}

/* "in 7m40s", or "due" when that has passed; NULL: not known. */
static char *in_text(uint64_t usec) {
        uint64_t now = now_real_usec();
        cleanup_free char *in = usec > now ? human_elapsed(usec - now) : NULL;

        if (usec == 0)
                return NULL;
        return in ? xasprintf("in %s", in) : xstrdup("due");
}

/* "in 7m40s at the latest (2026-11-29T12:00:00Z)"; NULL: not known. */
static char *start_text(uint64_t usec) {
        cleanup_free char *in = in_text(usec), *iso = text_iso_time(usec);

        return in ? xasprintf("%s at the latest (%.19sZ)", in, iso) : NULL;
}

static bool any_starts(const Rm__JobList *jobs) {
        for (size_t i = 0; i < jobs->n_jobs; i++)
                if (jobs->jobs[i]->expected_start_usec > 0)
                        return true;
        return false;
}

static void table_jobs(struct call *call, const Rm__JobList *jobs) {
        static const struct column columns[] = {
                { "JOB", true, false, 0 },        { "NAME", false, true, 0 },
                { "USER", false, true, 2 },       { "STATE", false, false, 0 },
                { "RANKS", true, false, 0 },      { "MOVES", true, false, 4 },
                { "SUBMITTED", false, false, 3 }, { "RUN", true, false, 0 },
                { "PROGRESS", true, false, 3 },   { "NODES", false, true, 0 },
                { "REASON", false, true, 0 },     { "STARTS", false, false, 1 }, /* the last: left out where it is known of none */
        };
        bool starts = any_starts(jobs);
        struct table *t = table_create(columns, ARRAY_SIZE(columns) - !starts);
        uint64_t now = now_real_usec();

        for (size_t i = 0; i < jobs->n_jobs; i++) {
                const Rm__JobView *v = jobs->jobs[i];
                const Rm__Job *j = v->job;

                if (!j || !j->spec)
                        continue;
                table_printf(t, "%" PRIu64, j->id);
                table_cell(t, j->spec->name);
                table_cell(t, j->spec->user);
                table_colour(t, v->state, colour_of_state(v->state));
                table_take(t, ranks_text(v));
                table_printf(t, "%u", j->moves);
                table_take(t, human_ago(j->submit_usec, now));
                table_take(t, run_time(j));
                table_take(t, percent(v->progress));
                table_take(t, short_nodes(v->nodes));
                table_cell(t, j->reason);
                if (starts)
                        table_take(t, in_text(v->expected_start_usec));
        }
        call_print_table(call, t);
}

static int run_list(struct call *call) {
        Rm__LocalReply *reply = NULL;
        int r = fetch(call, call_flag(call, "all") != NULL, &reply);

        if (r < 0)
                return r;
        use_fill_jobs(call, reply->jobs);
        if (call->json)
                call_print_list("jobs", (ProtobufCMessage *const *) reply->jobs->jobs, reply->jobs->n_jobs);
        else
                table_jobs(call, reply->jobs);
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

/* The command line, words with spaces in quotes. */
static char *command_line(const Rm__JobSpec *spec, bool cut) {
        struct buffer b = { 0 };

        for (size_t i = 0; i < spec->n_argv; i++) {
                bool plain = *spec->argv[i] && !strpbrk(spec->argv[i], " \t\n'\"$\\;&|<>*?()");

                buffer_printf(&b, plain ? "%s%s" : "%s'%s'", i ? " " : "", spec->argv[i]);
        }
        if (cut)
                buffer_printf(&b, " ... (the rest is too long to be shown)");
        return buffer_take_text(&b);
}

#define ON_NODE_LOSS_ABORT 0U

static const char *loss_text(uint32_t on_node_loss) {
        static const char *const texts[] = { "abort", "restart", "fold" };

        return on_node_loss < ARRAY_SIZE(texts) ? texts[on_node_loss] : "?";
}

/* "2 of 4, 1 restart: node n3 is down"; of a job that never starts again only the number. */
static char *attempt_text(const Rm__Job *job) {
        uint32_t restarts = job->attempt > 1 ? job->attempt - 1 : 0;

        if (job->spec->on_node_loss == ON_NODE_LOSS_ABORT)
                return xasprintf("%u", job->attempt);
        if (restarts == 0)
                return xasprintf("%u of %" PRIu64, job->attempt, job->spec->restarts + UINT64_C(1));
        return xasprintf("%u of %" PRIu64 ", %u restart%s, the last one since %s", job->attempt, job->spec->restarts + UINT64_C(1),
                         restarts, restarts == 1 ? "" : "s", job->restart_reason);
}

static char *when(uint64_t usec) {
        cleanup_free char *ago = human_ago(usec, now_real_usec());
        cleanup_free char *iso = text_iso_time(usec);

        return usec ? xasprintf("%s (%.19sZ)", ago, iso) : NULL;
}

/* "0-3,8", in the order of ranks; NULL when it may use any. */
static char *core_text(const Rm__Capsule *c) {
        char *text = NULL;

        for (size_t i = 0; i < c->n_cores;) {
                size_t end = i + 1;
                char *longer;

                while (end < c->n_cores && c->cores[end] == c->cores[end - 1] + 1)
                        end++;
                longer = xasprintf("%s%s%u", text ? text : "", text ? "," : "", c->cores[i]);
                free(text);
                text = end == i + 1 ? longer : xasprintf("%s-%u", longer, c->cores[end - 1]);
                if (text != longer)
                        free(longer);
                i = end;
        }
        return text;
}

static bool any_cores(const Rm__Job *job) {
        for (size_t i = 0; i < job->n_capsules; i++)
                if (job->capsules[i]->n_cores > 0)
                        return true;
        return false;
}

/* The last move of each capsule that has arrived, as far as rmd remembers it; by the place of the
 * capsule in the job. */
static const Rm__Move **last_moves(const Rm__Job *job, const Rm__MoveList *list) {
        const Rm__Move **last = xcalloc(job->n_capsules + 1, sizeof(const Rm__Move *));

        for (size_t i = 0; list && i < list->n_moves; i++) {
                const Rm__Move *move = list->moves[i];
                size_t place = (size_t) move->capsule + 1; /* the head is -1, and the first */

                if (move->state == RM__MOVE_STATE__MOVE_DONE && move->job == job->id && place < job->n_capsules)
                        last[place] = move;
        }
        return last;
}

/* Why the memory of these went the slow way: each reason once. */
static void show_untracked(const Rm__Job *job, const Rm__Move *const *last) {
        for (size_t i = 0; i < job->n_capsules; i++) {
                struct buffer groups = { 0 };
                size_t n = 0;

                if (!last[i] || !*last[i]->untracked)
                        continue;
                for (size_t k = 0; k < job->n_capsules; k++) {
                        if (!last[k] || strcmp(last[k]->untracked, last[i]->untracked) != 0)
                                continue;
                        if (k < i)
                                break; /* it was shown with that one */
                        if (last[k]->capsule < 0)
                                buffer_printf(&groups, "head");
                        else
                                buffer_printf(&groups, "%s%d", n > 0 ? ", " : "group ", last[k]->capsule);
                        n++;
                }
                if (n > 0)
                        call_take_key("Not tracked", xasprintf("%.*s: %s", (int) groups.used, (const char *) buffer_data(&groups),
                                                               last[i]->untracked));
                buffer_finish(&groups);
        }
}

static bool is_parked(const Rm__Job *job, const Rm__Capsule *c) {
        return job->resize && c->index >= 0 && (uint64_t) c->index * job->group_size >= job->resize->active;
}

static void show_capsules(struct call *call, const Rm__Job *job, const Rm__Move *const *last) {
        static const struct column columns[] = {
                { "GROUP", true, false, 0 },  { "RANKS", true, false, 0 },
                { "NODE", false, true, 0 },   { "ADDRESS", false, false, 2 },
                { "MOVES", true, false, 4 },  { "IMAGE", true, false, 1 },
                { "FREEZE", true, false, 0 }, { "TRACKED", false, false, 5 },
                { "CORES", false, true, 3 }, /* the last: left out where no rank is bound */
        };
        bool cores = any_cores(job);
        struct table *t;

        if (job->n_capsules == 0)
                return;
        (void) putchar('\n');
        t = table_create(columns, ARRAY_SIZE(columns) - !cores);
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *c = job->capsules[i];
                uint32_t a = c->address;

                if (c->index < 0)
                        table_cell(t, "head");
                else
                        table_printf(t, "%d", c->index);
                table_printf(t, "%u%s", c->ranks, is_parked(job, c) ? " parked" : "");
                table_cell(t, c->node);
                /* The state itself holds the place in the capsules' network; a view may know the
                 * network. */
                if (a >> 24)
                        table_printf(t, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
                else
                        table_cell(t, "");
                table_printf(t, "%u", c->moves);
                table_take(t, c->moves ? human_bytes(c->image_bytes) : NULL);
                table_take(t, c->moves ? human_duration(c->freeze_usec) : NULL);
                table_cell(t, last[i] && last[i]->later_bytes  ? "post-copied"
                              : last[i] && last[i]->tracked    ? "yes"
                              : last[i] && *last[i]->untracked ? "no"
                                                               : NULL);
                if (cores)
                        table_take(t, core_text(c));
        }
        call_print_table(call, t);
}

/* The job's policy and priority, and how many rounds the job has waited. */
static char *policy_text(const Rm__Job *job) {
        const char *policy = *job->policy ? job->policy : *job->spec->policy ? job->spec->policy : "default";

        if (job->age == 0)
                return xasprintf("%s, priority %d", policy, job->spec->priority);
        return xasprintf("%s, priority %d, %u round%s lost", policy, job->spec->priority, job->age, job->age == 1 ? "" : "s");
}

/* NULL when it asked for none. */
static char *memory_text(const Rm__JobSpec *spec) {
        cleanup_free char *bytes = spec->rank_memory_bytes ? human_bytes(spec->rank_memory_bytes) : NULL;

        return bytes ? xasprintf("%s for each rank", bytes) : NULL;
}

/* "2 wanted: n[3-4]"; NULL when it asked for none. */
static char *spare_text(const Rm__Job *job) {
        struct hostlist hosts = { 0 };
        cleanup_free char *nodes = NULL;

        if (!job->spec->spares)
                return NULL;
        for (size_t i = 0; i < job->n_spare_nodes; i++)
                hostlist_add(&hosts, job->spare_nodes[i]);
        nodes = hostlist_compress(hosts.names, hosts.n_names);
        hostlist_finish(&hosts);
        return xasprintf("%u wanted: %s", job->spec->spares, nodes && *nodes ? nodes : "none yet");
}

/* "4 ranks on 2 cores of n1: 2.0 times as long"; NULL when it is not folded. What ranks that wait
 * for messages take of the cores is little (rm-yield). Ranks that are to leave a node have the
 * cores there that they had. */
static char *fold_text(const Rm__JobView *v) {
        if (!*v->folded_node)
                return NULL;
        if (v->folded_cores == 0)
                return xasprintf("%u ranks are to leave %s, no core of which may be used", v->folded_ranks, v->folded_node);
        return xasprintf("%u ranks on %u core%s of %s: %.1f times as long", v->folded_ranks, v->folded_cores,
                         v->folded_cores == 1 ? "" : "s", v->folded_node, (double) v->folded_ranks / v->folded_cores);
}

/* The blockers of now are seen without a move; the reason of the last refusal may be one that only
 * a move finds. */
static void show_blockers(const Rm__Job *job, uint64_t now) {
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *c = job->capsules[i];
                cleanup_free char *where =
                        c->index < 0 ? xasprintf("head on %s", c->node) : xasprintf("group %d on %s", c->index, c->node);
                cleanup_free char *ago = c->refusal ? human_ago(c->refusal->last_usec, now) : NULL;

                if (*c->blocker)
                        call_take_key("Cannot move", xasprintf("%s: %s", where, c->blocker));
                if (c->refusal && *c->refusal->text)
                        call_take_key("Was not moved", c->refusal->times > 1
                                                               ? xasprintf("%s, %u times in a row, the last %s: %s", where,
                                                                           c->refusal->times, ago, c->refusal->text)
                                                               : xasprintf("%s, %s: %s", where, ago, c->refusal->text));
        }
}

/* "auto, now 4m 10s"; NULL: none. */
static char *interval_text(const Rm__JobView *v) {
        uint64_t usec = v->job->spec->checkpoint_usec;
        cleanup_free char *now = v->checkpoint_interval_usec ? human_duration(v->checkpoint_interval_usec) : NULL;

        if (usec == 0)
                return NULL;
        if (usec == UINT64_MAX)
                return xasprintf("auto%s%s", now ? ", now " : "", now ? now : "");
        return human_duration(usec);
}

/* The newest that is done. */
static const Rm__Checkpoint *last_done(const Rm__Job *job) {
        for (size_t i = job->n_checkpoints; i > 0; i--)
                if (job->checkpoints[i - 1]->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                        return job->checkpoints[i - 1];
        return NULL;
}

/* When the next one is due; NULL: not known. */
static char *next_text(const Rm__JobView *v) {
        uint64_t from = v->job->checkpoint_try_usec ? v->job->checkpoint_try_usec : v->job->start_usec;
        uint64_t due = from + v->checkpoint_interval_usec;

        if (v->job->spec->checkpoint_usec == 0 || v->checkpoint_interval_usec == 0 || from == 0 || v->job->end_usec)
                return NULL;
        return in_text(due);
}

/* "7.3, 5m ago: it can be restored"; NULL: none has ended. */
static char *drill_text(const Rm__Job *j) {
        cleanup_free char *age = j->drill ? human_ago(j->drill->start_usec, now_real_usec()) : NULL;
        const char *result = "it can be restored";

        for (size_t i = 0; j->drill && i < j->drill->n_parts; i++)
                if (*j->drill->parts[i]->drill_error)
                        result = "not all of it was restored";
        if (j->drill && *j->drill->error)
                result = j->drill->error;
        return j->drill ? xasprintf("%" PRIu64 ".%" PRIu64 ", %s: %s", j->id, j->drill->id, age, result) : NULL;
}

/* Nothing of a job that has, and will have, none. */
static void show_checkpoints(const Rm__JobView *v) {
        const Rm__Job *j = v->job;
        const Rm__Checkpoint *last = last_done(j);
        cleanup_free char *age = last ? human_ago(last->start_usec, now_real_usec()) : NULL;

        if (v->foreign || (j->spec->checkpoint_usec == 0 && j->last_checkpoint == 0 && !j->held && !j->own_state))
                return;
        if (j->own_state)
                call_print_key("Own state", "kept by the program: no checkpoints are made, and after a loss it begins anew");
        call_take_key("Checkpoints", xasprintf("%zu", j->n_checkpoints));
        call_take_key("Interval", interval_text(v));
        call_take_key("Last", last ? xasprintf("%" PRIu64 ".%" PRIu64 ", %s", j->id, last->id, age) : NULL);
        call_take_key("Next", next_text(v));
        call_take_key("Expected loss", v->expected_loss_usec ? human_duration(v->expected_loss_usec) : NULL);
        if (j->restored_from)
                call_take_key("Restored from", xasprintf("%" PRIu64 ".%" PRIu64, j->id, j->restored_from));
        if (j->held)
                call_take_key("Held", xasprintf("yes: 'rmctl restart-job %" PRIu64 "' lets it go on", j->id));
        if (*j->checkpoint_error)
                call_print_key("Last error", j->checkpoint_error);
        if (j->drill)
                call_take_key("Drill", drill_text(j));
}

/* "4 of 16, at least 2; 3 parked groups; is to have 8: waits for its program". */
static char *active_text(const Rm__JobView *v) {
        const Rm__Resize *r = v->job->resize;
        struct buffer b = { 0 };

        buffer_printf(&b, "%u of %u, at least %u", v->active_ranks, v->job->spec->ranks, v->job->spec->min_ranks);
        if (v->parked_groups > 0 && !v->job->end_usec)
                buffer_printf(&b, "; %u parked group%s", v->parked_groups, v->parked_groups == 1 ? "" : "s");
        if (r && r->by_hand && !v->job->end_usec)
                buffer_printf(&b, "; by hand");
        if (r && r->requested > 0 && !v->job->end_usec)
                buffer_printf(&b, "; is to have %u: %s", r->requested, r->begun ? "its program changes" : "waits for its program");
        return buffer_take_text(&b);
}

/* "2 of 8: 5 3"; "none" of one that goes on without; NULL of others. */
static char *lost_text(const Rm__Job *j) {
        const Rm__RankLosses *losses = j->rank_losses;
        struct buffer b = { 0 };

        if (!losses || losses->n_lost == 0)
                return j->spec->on_rank_loss == RM__RANK_LOSS__RANK_LOSS_CONTINUE ? xstrdup("none") : NULL;
        buffer_printf(&b, "%zu of %u:", losses->n_lost, j->spec->ranks);
        for (size_t i = 0; i < losses->n_lost; i++)
                buffer_printf(&b, " %u", losses->lost[i]);
        return buffer_take_text(&b);
}

/* "0,5-7 (2 spare; 1 parked group)"; NULL of jobs without critical ranks. */
static char *critical_text(const Rm__JobView *v) {
        const Rm__JobSpec *s = v->job->spec;
        cleanup_free char *parked = NULL;

        if (!s->critical_ranks[0])
                return NULL;
        parked = v->parked_groups > 0 && !v->job->end_usec
                         ? xasprintf("; %u parked group%s", v->parked_groups, v->parked_groups == 1 ? "" : "s")
                         : xstrdup("");
        return xasprintf("%s (%u spare%s)", s->critical_ranks, s->spare_ranks, parked);
}

/* `moves` NULL: not known. */
static void show_job(struct call *call, const Rm__JobView *v, const Rm__MoveList *moves) {
        const Rm__Job *j = v->job;
        cleanup_free const Rm__Move **last = last_moves(j, moves);
        const Rm__JobSpec *s = j->spec;
        uint32_t group_size = j->group_size ? j->group_size : s->group_size;

        call_take_key("Job", xasprintf("%" PRIu64, j->id));
        call_print_key("Name", s->name);
        call_print_key("User", s->user);
        call_state_key(call, "State", v->state);
        call_take_key("Folded", fold_text(v));
        if (*v->folded_node && j->fold_since_usec)
                call_take_key("Folded since", when(j->fold_since_usec));
        if (v->slowdown > 0)
                call_take_key("Slowdown", xasprintf("%.2f times as long, as measured", v->slowdown));
        call_print_key("Reason", j->reason);
        call_take_key("Submitted", when(j->submit_usec));
        call_take_key("Starts", start_text(v->expected_start_usec));
        call_take_key("Started", when(j->start_usec));
        call_take_key("Ended", when(j->end_usec));
        call_take_key("Run time", run_time(j));
        call_take_key("Progress", progress_text(v->progress));
        call_take_key("Goal", goal_text(v->progress));
        if (j->end_usec)
                call_take_key("Exit code", xasprintf("%d", j->exit_code));
        if (group_size > 0)
                call_take_key("Ranks", xasprintf("%u in groups of %u", s->ranks, group_size));
        else
                call_take_key("Ranks", xasprintf("%u", s->ranks));
        if (s->active_ranks > 0)
                call_take_key("Active ranks", active_text(v));
        call_take_key("Critical ranks", critical_text(v));
        call_take_key("Lost ranks", lost_text(j));
        call_take_key("Nodes", short_nodes(v->nodes));
        call_take_key("Policy", policy_text(j));
        call_take_key("Memory", memory_text(s));
        call_take_key("Spare nodes", spare_text(j));
        call_print_key("On node loss", loss_text(s->on_node_loss));
        call_take_key("Time limit", s->time_limit_usec ? human_duration(s->time_limit_usec) : NULL);
        call_print_key("Availability", s->availability_path);
        call_take_key("Moves", xasprintf("%u", j->moves));
        call_take_key("Attempt", attempt_text(j));
        show_checkpoints(v);
        show_blockers(j, now_real_usec());
        show_untracked(j, last);
        if (!v->foreign) {
                call_print_key("Directory", s->cwd);
                call_take_key("Command", command_line(s, v->argv_cut));
        }
        show_capsules(call, j, last);
        if (v->capsules_left_out > 0)
                (void) printf("and %u more groups\n", v->capsules_left_out);
}

/* The job is shown even if its moves cannot be had. */
static void show_with_moves(struct call *call, const Rm__JobView *view) {
        Rm__LocalReply *moves = NULL;
        struct rm_error none = { 0 };

        if (view->job->moves > 0 && move_list(call, view->job->id, 0, &moves) < 0)
                call->err = none;
        show_job(call, view, moves ? moves->moves : NULL);
        if (moves)
                rm__local_reply__free_unpacked(moves, NULL);
}

static int run_show(struct call *call) {
        Rm__LocalReply *reply = NULL;
        int r = fetch(call, true, &reply);

        if (r < 0)
                return r;
        for (size_t i = 0; i < reply->jobs->n_jobs; i++)
                use_fill_job(call, reply->jobs->jobs[i]);
        if (call->json)
                call_print_list("jobs", (ProtobufCMessage *const *) reply->jobs->jobs, reply->jobs->n_jobs);
        for (size_t i = 0; !call->json && i < reply->jobs->n_jobs; i++) {
                if (i > 0)
                        (void) putchar('\n');
                if (reply->jobs->jobs[i]->job && reply->jobs->jobs[i]->job->spec)
                        show_with_moves(call, reply->jobs->jobs[i]);
        }
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

const struct verb verb_list_jobs = {
        .name = "list-jobs",
        .args = "[JOBS]",
        .max_args = SIZE_MAX,
        .help = "list pending and running jobs, with the reason why a job is pending",
        .flags = { { "all", NULL, "include jobs that have ended" } },
        .run = run_list,
};

const struct verb verb_show_job = {
        .name = "show-job",
        .args = "JOBS",
        .min_args = 1,
        .max_args = SIZE_MAX,
        .help = "show all details of jobs, where their groups are, and what prevents a move",
        .run = run_show,
};
