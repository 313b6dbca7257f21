/* Storage of plans, and their JSON form. */
#include "daemon/sched/plan.h"
#include "common/text.h"

#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "daemon/sched/fields.h"
#include "daemon/sched/snapshot.h"
#include "placement/topology/measure.h"

#define PLAN_MAX_BYTES (512u * 1024 * 1024)

/* The arrays of all jobs are one piece each: there may be thousands, and they are read one after
 * the other. */
struct owned_plan {
        struct rm_plan plan; /* first */
        int32_t *group_nodes, *rank_cores;
};

static int32_t *make_all_none(size_t n) {
        int32_t *all = xrealloc(NULL, sizeof(*all) * (n + 1));

        return memset(all, 0xff, sizeof(*all) * (n + 1)); /* -1, which RM_NO_NODE and RM_NO_CORE are */
}

static void share_out(struct owned_plan *owned, const struct rm_snapshot *snapshot) {
        size_t groups = 0, ranks = 0;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                groups += snapshot->jobs[j].n_groups;
                ranks += snapshot->jobs[j].ranks;
        }
        owned->group_nodes = make_all_none(groups);
        owned->rank_cores = make_all_none(ranks);
        groups = ranks = 0;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                owned->plan.jobs[j].group_node = owned->group_nodes + groups;
                owned->plan.jobs[j].rank_core = owned->rank_cores + ranks;
                groups += snapshot->jobs[j].n_groups;
                ranks += snapshot->jobs[j].ranks;
        }
}

struct rm_plan *plan_create(const struct rm_snapshot *snapshot) {
        struct owned_plan *owned = xcalloc(1, sizeof(*owned));

        owned->plan = (struct rm_plan) { .size = sizeof(owned->plan), .n_jobs = snapshot->n_jobs, .bound = RM_NO_BOUND };
        owned->plan.jobs = xcalloc(snapshot->n_jobs + 1u, sizeof(*owned->plan.jobs));
        share_out(owned, snapshot);
        return &owned->plan;
}

void plan_destroy(struct rm_plan *plan) {
        struct owned_plan *owned = (struct owned_plan *) plan;

        if (!plan)
                return;
        free(owned->group_nodes);
        free(owned->rank_cores);
        free(plan->jobs);
        free(owned);
}

void plan_answer_finish(struct plan_answer *answer) {
        if (!answer)
                return;
        plan_destroy(answer->plan);
        *answer = (struct plan_answer) { 0 };
}

/* ---- reading ---- */

struct reader {
        const struct rm_snapshot *snapshot;
        struct rm_plan *plan;
        struct name_index *nodes, *jobs;
        uint32_t *next_group; /* each job */
        bool *waits;          /* each job: is in "waiting" */
};

static int read_head(const json_t *root, struct plan_answer *answer, struct rm_plan *plan, struct rm_error *err) {
        const char *policy = NULL, *method = NULL;
        const json_t *bound = json_object_get(root, "bound");
        int64_t time_usec = 0, value = 0;
        bool proven = false;
        int r;

        if ((r = field_name(root, "plan", "policy", true, &policy, err)) < 0 ||
            (r = field_string(root, "plan", "method", true, &method, err)) < 0 ||
            (r = field_int(root, "plan", "cost", true, 0, FIELD_MAX, &answer->cost, err)) < 0 ||
            (r = field_int(root, "plan", "time_usec", true, 0, FIELD_MAX, &time_usec, err)) < 0 ||
            (r = field_bool(root, "plan", "proven", &proven, err)) < 0)
                return r;
        if (bound && !json_is_null(bound)) {
                if ((r = value_int(bound, "plan: field \"bound\"", -FIELD_MAX, FIELD_MAX, &value, err)) < 0)
                        return r;
                plan->bound = value;
        }
        (void) snprintf(answer->policy, sizeof(answer->policy), "%s", policy);
        (void) snprintf(plan->method, sizeof(plan->method), "%s", method);
        plan->proven = proven;
        answer->time_usec = (uint64_t) time_usec;
        return 0;
}

static int read_run(struct reader *reader, const json_t *run, const char *where, struct rm_error *err) {
        static const char *const known[] = { "job", "node", "ranks", NULL };
        const char *job_name = NULL, *node_name = NULL;
        const struct rm_job *job;
        int32_t j, node;
        uint32_t ranks = 0;
        int r;

        if ((r = fields_known(run, where, known, err)) < 0 || (r = field_string(run, where, "job", true, &job_name, err)) < 0 ||
            (r = field_string(run, where, "node", true, &node_name, err)) < 0 ||
            (r = field_u32(run, where, "ranks", true, 1, SNAPSHOT_MAX_RANKS, &ranks, err)) < 0)
                return r;
        j = name_index_find(reader->jobs, job_name);
        node = name_index_find(reader->nodes, node_name);
        if (j < 0)
                return error_set(err, -EINVAL, "%s: there is no job '%.64s'", where, job_name);
        if (node < 0)
                return error_set(err, -EINVAL, "%s: there is no node '%.64s'", where, node_name);
        job = &reader->snapshot->jobs[j];
        while (ranks > 0) {
                uint32_t g = reader->next_group[j];

                if (g >= job->n_groups || job->groups[g].ranks > ranks)
                        return error_set(err, -EINVAL, "%s: the ranks of job '%s' do not make whole groups of its own", where,
                                         job->name);
                ranks -= job->groups[g].ranks;
                reader->plan->jobs[j].group_node[g] = node;
                reader->next_group[j]++;
        }
        return 0;
}

static int read_reasons(struct reader *reader, const json_t *reasons, struct rm_error *err) {
        const char *name;
        json_t *text;

        if (reasons && !json_is_object(reasons))
                return error_set(err, -EINVAL, "plan: field \"reasons\" must be an object of jobs and texts");
        json_object_foreach((json_t *) reasons, name, text) {
                int32_t j = name_index_find(reader->jobs, name);

                if (j < 0 || !json_is_string(text))
                        return error_set(err, -EINVAL, "plan: reasons: '%.64s' is no job, or has no text", name);
                (void) text_format(reader->plan->jobs[j].reason, RM_REASON_BYTES, "%s", json_string_value(text));
        }
        return 0;
}

static int read_mapping(struct reader *reader, const json_t *mapping, struct rm_error *err) {
        const char *name;
        json_t *triples, *triple;
        size_t i;
        int r;

        if (mapping && !json_is_object(mapping))
                return error_set(err, -EINVAL, "plan: field \"mapping\" must be an object of jobs");
        json_object_foreach((json_t *) mapping, name, triples) {
                int32_t j = name_index_find(reader->jobs, name);

                if (j < 0 || !json_is_array(triples))
                        return error_set(err, -EINVAL, "plan: mapping: '%.64s' is no job, or has no array", name);
                json_array_foreach(triples, i, triple) {
                        const char *where = "plan: mapping: rank or core", *node = json_string_value(json_array_get(triple, 1));
                        const struct rm_job *job = &reader->snapshot->jobs[j];
                        int64_t rank, core;

                        if (json_array_size(triple) != 3 || !node)
                                return error_set(err, -EINVAL, "plan: mapping: an entry of job '%s' is not [rank, node, core]",
                                                 job->name);
                        if ((r = value_int(json_array_get(triple, 0), where, 0, (int64_t) job->ranks - 1, &rank, err)) < 0 ||
                            (r = value_int(json_array_get(triple, 2), where, 0, SNAPSHOT_MAX_RANKS, &core, err)) < 0)
                                return r;
                        if (name_index_find(reader->nodes, node) != reader->plan->jobs[j].group_node[rank / job->group_size])
                                return error_set(err, -EINVAL,
                                                 "plan: mapping: rank %" PRId64 " of job '%s' is on another node than its group",
                                                 rank, job->name);
                        reader->plan->jobs[j].rank_core[rank] = (int32_t) core;
                }
        }
        return 0;
}

static int read_decisions(struct reader *reader, const json_t *waiting, struct rm_error *err) {
        json_t *value;
        size_t i;

        json_array_foreach(waiting, i, value) {
                const char *name = json_string_value(value);
                int32_t j = name ? name_index_find(reader->jobs, name) : -1;

                if (j < 0)
                        return error_set(err, -EINVAL, "plan: waiting[%zu] is not the name of a job", i);
                if (reader->waits[j] || reader->next_group[j] > 0)
                        return error_set(err, -EINVAL, "plan: job '%s' waits twice, or waits and is placed", name);
                reader->waits[j] = true;
        }
        for (uint32_t j = 0; j < reader->snapshot->n_jobs; j++) {
                const struct rm_job *job = &reader->snapshot->jobs[j];

                if (reader->waits[j])
                        continue;
                if (reader->next_group[j] != job->n_groups)
                        return error_set(err, -EINVAL, "plan: job '%s' is neither placed as a whole nor waiting (%u of %u groups)",
                                         job->name, reader->next_group[j], job->n_groups);
                reader->plan->jobs[j].decision = RM_PLACE;
        }
        return 0;
}

static int read_plan(struct reader *reader, const json_t *root, struct rm_error *err) {
        const json_t *placement, *waiting;
        char where[48];
        json_t *run;
        size_t i;
        int r;

        if ((r = field_array(root, "plan", "placement", true, &placement, err)) < 0 ||
            (r = field_array(root, "plan", "waiting", true, &waiting, err)) < 0)
                return r;
        json_array_foreach(placement, i, run) {
                (void) snprintf(where, sizeof(where), "plan: placement[%zu]", i);
                if ((r = read_run(reader, run, where, err)) < 0)
                        return r;
        }
        if ((r = read_decisions(reader, waiting, err)) < 0 || (r = read_reasons(reader, json_object_get(root, "reasons"), err)) < 0)
                return r;
        return read_mapping(reader, json_object_get(root, "mapping"), err);
}

int plan_parse(const void *data, size_t size_bytes, const struct rm_snapshot *snapshot, struct plan_answer *ret_answer,
               struct rm_error *err) {
        static const char *const known[] = { "policy",    "method",  "cost",    "bound",   "proven",  "time_usec",
                                             "placement", "waiting", "reasons", "mapping", "traffic", NULL };
        struct plan_answer answer = { 0 };
        struct reader reader = { .snapshot = snapshot };
        json_t *root;
        int r = fields_parse(data, size_bytes, PLAN_MAX_BYTES, &root, err);

        if (r < 0)
                return r;
        answer.plan = reader.plan = plan_create(snapshot);
        reader.nodes = snapshot_index_nodes(snapshot);
        reader.jobs = snapshot_index_jobs(snapshot);
        reader.next_group = xcalloc(snapshot->n_jobs + 1u, sizeof(*reader.next_group));
        reader.waits = xcalloc(snapshot->n_jobs + 1u, sizeof(*reader.waits));
        r = fields_known(root, "plan", known, err);
        if (r == 0)
                r = read_head(root, &answer, answer.plan, err);
        if (r == 0)
                r = read_plan(&reader, root, err);
        name_index_destroy(reader.nodes);
        name_index_destroy(reader.jobs);
        free(reader.next_group);
        free(reader.waits);
        json_decref(root);
        if (r < 0)
                plan_answer_finish(&answer);
        else
                *ret_answer = answer;
        return r;
}

/* ---- writing ---- */

static void write_runs(json_t *placement, const struct rm_snapshot *snapshot, const struct rm_job *job, const int32_t *node) {
        for (uint32_t g = 0; g < job->n_groups;) {
                uint32_t first = g;
                json_int_t ranks = 0;

                for (; g < job->n_groups && node[g] == node[first]; g++)
                        ranks += job->groups[g].ranks;
                json_array_append_new(placement, json_pack("{s:s, s:s, s:I}", "job", job->name, "node",
                                                           snapshot->nodes[node[first]].name, "ranks", ranks));
        }
}

static void write_mapping(json_t *mapping, const struct rm_snapshot *snapshot, const struct rm_job *job,
                          const struct rm_plan_job *planned) {
        json_t *triples = json_array();

        for (uint32_t rank = 0; rank < job->ranks; rank++)
                if (planned->rank_core[rank] != RM_NO_CORE)
                        json_array_append_new(triples, json_pack("[I, s, I]", (json_int_t) rank,
                                                                 snapshot->nodes[planned->group_node[rank / job->group_size]].name,
                                                                 (json_int_t) planned->rank_core[rank]));
        if (json_array_size(triples) > 0)
                json_object_set(mapping, job->name, triples);
        json_decref(triples);
}

static json_t *write_measured(const struct measured *measured) {
        return json_pack("{s:I, s:I}", "hop_bytes", (json_int_t) measured->hop_bytes, "inter_node_bytes",
                         (json_int_t) measured->inter_node_bytes);
}

/* NULL: nothing is known. */
static json_t *write_traffic(const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        struct measured measured;
        json_t *traffic;

        if (!measure_plan(snapshot, plan, &measured))
                return NULL;
        traffic = write_measured(&measured);
        if (measure_by_slot(snapshot, plan, &measured))
                json_object_set_new(traffic, "by_slot", write_measured(&measured));
        return traffic;
}

json_t *plan_to_json(const struct plan_answer *answer, const struct rm_snapshot *snapshot) {
        const struct rm_plan *plan = answer->plan;
        json_t *placement = json_array(), *waiting = json_array(), *reasons = json_object(), *mapping = json_object();
        json_t *traffic = write_traffic(snapshot, plan);
        json_t *root =
                json_pack("{s:s, s:s, s:I, s:o, s:b, s:I}", "policy", answer->policy, "method", plan->method, "cost",
                          (json_int_t) answer->cost, "bound", plan->bound == RM_NO_BOUND ? json_null() : json_integer(plan->bound),
                          "proven", (int) plan->proven, "time_usec", (json_int_t) answer->time_usec);

        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (plan->jobs[j].decision == RM_PLACE) {
                        write_runs(placement, snapshot, job, plan->jobs[j].group_node);
                        write_mapping(mapping, snapshot, job, &plan->jobs[j]);
                        continue;
                }
                json_array_append_new(waiting, json_string(job->name));
                if (plan->jobs[j].reason[0])
                        json_object_set_new(reasons, job->name, json_string(plan->jobs[j].reason));
        }
        json_object_set_new(root, "placement", placement);
        json_object_set_new(root, "waiting", waiting);
        if (json_object_size(reasons) > 0)
                json_object_set(root, "reasons", reasons);
        if (json_object_size(mapping) > 0)
                json_object_set(root, "mapping", mapping);
        if (traffic)
                json_object_set_new(root, "traffic", traffic);
        json_decref(reasons);
        json_decref(mapping);
        return root;
}
