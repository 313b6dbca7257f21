/* Snapshots from and to JSON. */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"
#include "daemon/sched/fields.h"
#include "daemon/sched/snapshot.h"
#include "placement/memory.h"

/* ---- reading ---- */

static int read_params(const json_t *root, struct rm_params *params, struct rm_error *err) {
        static const char *const known[] = {
                "distribution_weight", "age_weight", "backfill", "move_budget", "bytes_per_cost", NULL
        };
        const json_t *object = json_object_get(root, "params");
        bool backfill = params->backfill != 0;
        int r;

        if (!object)
                return 0;
        if ((r = fields_known(object, "params", known, err)) < 0 ||
            (r = field_int(object, "params", "distribution_weight", false, 0, FIELD_MAX, &params->distribution_weight, err)) < 0 ||
            (r = field_int(object, "params", "age_weight", false, 0, 1 << 20, &params->age_weight, err)) < 0 ||
            (r = field_bool(object, "params", "backfill", &backfill, err)) < 0 ||
            (r = field_u32(object, "params", "move_budget", false, 0, SNAPSHOT_MAX_TOTAL_RANKS, &params->move_budget, err)) < 0 ||
            (r = field_int(object, "params", "bytes_per_cost", false, 1, INT64_C(1) << 32, &params->bytes_per_cost, err)) < 0)
                return r;
        params->backfill = backfill;
        return 0;
}

static int read_switches(const json_t *path, const char *where, struct snapshot *snapshot, struct rm_node *node,
                         struct rm_error *err) {
        int32_t below = RM_NO_NODE;
        json_t *value;
        size_t i;

        if (json_array_size(path) > SNAPSHOT_MAX_DEPTH)
                return error_set(err, -EINVAL, "%s: more than %u switches above each other", where, SNAPSHOT_MAX_DEPTH);
        json_array_foreach(path, i, value) {
                const char *name = json_string_value(value);
                int32_t at;

                if (!name || !name_valid(name))
                        return error_set(err, -EINVAL, "%s: \"switch\" must be an array of names, from the node upwards", where);
                at = snapshot_add_switch(snapshot, name);
                if (snapshot_view(snapshot)->n_switches > SNAPSHOT_MAX_SWITCHES)
                        return error_set(err, -EINVAL, "%s: more than %u switches in all", where, SNAPSHOT_MAX_SWITCHES);
                if (below < 0)
                        node->switch_index = at;
                else if (snapshot_view(snapshot)->switches[below].parent >= 0 &&
                         snapshot_view(snapshot)->switches[below].parent != at)
                        return error_set(err, -EINVAL, "%s: switch '%s': its parent is '%s' here and '%s' elsewhere", where,
                                         snapshot_view(snapshot)->switches[below].name, name,
                                         snapshot_view(snapshot)->switches[snapshot_view(snapshot)->switches[below].parent].name);
                else
                        snapshot_set_parent(snapshot, below, at);
                below = at;
        }
        return 0;
}

/* "memory" alone: all of it is free. */
static int read_memory(const json_t *object, const char *where, struct rm_node *node, struct rm_error *err) {
        int64_t most = FIELD_MAX;
        int r = field_int(object, where, "memory", false, 0, FIELD_MAX, &node->memory, err);

        if (r < 0)
                return r;
        if (node->memory != RM_NO_MEMORY_LIMIT)
                node->memory_free = most = node->memory;
        else if (json_object_get(object, "memory_free"))
                return error_set(err, -EINVAL, "%s: field \"memory_free\" without \"memory\"", where);
        return field_int(object, where, "memory_free", false, 0, most, &node->memory_free, err);
}

static int read_node(const json_t *object, const char *where, struct snapshot *snapshot, struct rm_error *err) {
        static const char *const known[] = { "name",   "cores",  "penalty",     "state", "topology",
                                             "switch", "memory", "memory_free", NULL };
        const char *name = NULL, *state = NULL, *topology = NULL;
        const json_t *path = NULL;
        struct rm_node *node;
        uint32_t cores = 0;
        int r;

        if ((r = fields_known(object, where, known, err)) < 0 || (r = field_name(object, where, "name", true, &name, err)) < 0 ||
            (r = field_u32(object, where, "cores", true, 0, SNAPSHOT_MAX_RANKS, &cores, err)) < 0)
                return r;
        node = snapshot_add_node(snapshot, name, cores);
        if ((r = field_int(object, where, "penalty", true, 0, FIELD_MAX, &node->penalty, err)) < 0 ||
            (r = field_string(object, where, "state", false, &state, err)) < 0 ||
            (r = field_string(object, where, "topology", false, &topology, err)) < 0 ||
            (r = field_array(object, where, "switch", false, &path, err)) < 0 || (r = read_memory(object, where, node, err)) < 0)
                return r;
        if (state && node_state_parse(state, &node->state) < 0)
                return error_set(err, -EINVAL, "%s: state must be IDLE, MIXED, ALLOCATED, DRAINING, DRAINED or DOWN, is \"%.32s\"",
                                 where, state);
        node->topology = snapshot_string(snapshot, topology);
        return path ? read_switches(path, where, snapshot, node, err) : 0;
}

struct job_reader {
        struct snapshot *snapshot;
        const struct name_index *nodes;
        const char *where;
        uint32_t job;
};

static int read_placed(const struct job_reader *reader, const json_t *runs, struct rm_error *err) {
        static const char *const known[] = { "node", "ranks", "pinned", NULL };
        const struct rm_job *job = snapshot_job(reader->snapshot, reader->job);
        uint32_t next = 0;
        json_t *run;
        size_t i;

        json_array_foreach(runs, i, run) {
                const json_t *node_value = json_object_get(run, "node");
                const char *name = json_string_value(node_value);
                bool pinned = false;
                uint32_t ranks = 0;
                int32_t node;
                char at[160];
                int r;

                (void) text_format(at, sizeof(at), "%s: placed[%zu]", reader->where, i);
                if ((r = fields_known(run, at, known, err)) < 0 ||
                    (r = field_u32(run, at, "ranks", true, 1, job->ranks, &ranks, err)) < 0 ||
                    (r = field_bool(run, at, "pinned", &pinned, err)) < 0)
                        return r;
                if (!name && !json_is_null(node_value))
                        return error_set(err, -EINVAL, "%s: field \"node\" must be the name of a node, or null", at);
                node = name ? name_index_find(reader->nodes, name) : RM_NO_NODE;
                if (name && node < 0)
                        return error_set(err, -EINVAL, "%s: there is no node '%.64s'", at, name);
                if (pinned && !name)
                        return error_set(err, -EINVAL, "%s: pinned to no node", at);
                for (; ranks > 0 && next < job->n_groups; next++) {
                        struct rm_group *group = snapshot_group(reader->snapshot, reader->job, next);

                        if (group->ranks > ranks)
                                return error_set(err, -EINVAL, "%s: splits group %u, which has %u ranks", at, next, group->ranks);
                        ranks -= group->ranks;
                        group->node = node;
                        group->flags = pinned ? RM_GROUP_PINNED : 0;
                }
                if (ranks > 0)
                        return error_set(err, -EINVAL, "%s: more ranks are placed than the job has (%u)", at, job->ranks);
        }
        return 0;
}

/* A field of groups: one number for all, or an array with one for each. */
struct group_field {
        const char *name;
        size_t offset; /* of an int64_t in struct rm_group */
};
static const struct group_field move_cost_field = { "move_cost", offsetof(struct rm_group, move_cost) };
static const struct group_field memory_field = { "group_memory", offsetof(struct rm_group, memory) };

static int read_group_field(const struct job_reader *reader, const json_t *object, const struct group_field *field,
                            struct rm_error *err) {
        const struct rm_job *job = snapshot_job(reader->snapshot, reader->job);
        const json_t *value = json_object_get(object, field->name);
        char at[160];
        int r;

        if (!value)
                return 0;
        (void) text_format(at, sizeof(at), "%s: field \"%s\"", reader->where, field->name);
        if (json_is_array(value) && json_array_size(value) != job->n_groups)
                return error_set(err, -EINVAL, "%s must be one number or %u, one for each group", at, job->n_groups);
        for (uint32_t g = 0; g < job->n_groups; g++) {
                const json_t *one = json_is_array(value) ? json_array_get(value, g) : value;
                char *group = (char *) snapshot_group(reader->snapshot, reader->job, g);

                if ((r = value_int(one, at, 0, FIELD_MAX, (int64_t *) (void *) (group + field->offset), err)) < 0)
                        return r;
        }
        return 0;
}

static int read_availability(const struct job_reader *reader, const json_t *object, struct rm_error *err) {
        json_t *map = json_object_get(object, "availability"), *value;
        const char *name;
        char at[160];
        int r;

        if (!map)
                return 0;
        if (!json_is_object(map))
                return error_set(err, -EINVAL, "%s: field \"availability\" must be an object of nodes and cores", reader->where);
        json_object_foreach(map, name, value) {
                int32_t node = name_index_find(reader->nodes, name);
                int64_t cores;

                (void) text_format(at, sizeof(at), "%s: availability of '%.64s'", reader->where, name);
                if (node < 0)
                        return error_set(err, -EINVAL, "%s: there is no such node", at);
                if ((r = value_int(value, at, 0, SNAPSHOT_MAX_RANKS, &cores, err)) < 0)
                        return r;
                snapshot_set_limit(reader->snapshot, reader->job, (uint32_t) node, (uint32_t) cores);
        }
        return 0;
}

static int read_job(struct job_reader *reader, const json_t *object, struct rm_error *err) {
        static const char *const known[] = { "name",    "ranks",           "priority",  "group_size",   "age",
                                             "policy",  "time_limit_usec", "move_cost", "availability", "placed",
                                             "traffic", "group_memory",    NULL };
        const char *where = reader->where, *name = NULL, *policy = NULL;
        const json_t *placed = NULL, *traffic = NULL;
        uint32_t ranks = 0, group_size = 1;
        int64_t time_limit = 0;
        struct rm_job *job;
        int r;

        if ((r = fields_known(object, where, known, err)) < 0 || (r = field_name(object, where, "name", true, &name, err)) < 0 ||
            (r = field_u32(object, where, "ranks", true, 1, SNAPSHOT_MAX_RANKS, &ranks, err)) < 0 ||
            (r = field_u32(object, where, "group_size", false, 1, ranks, &group_size, err)) < 0)
                return r;
        job = snapshot_add_job(reader->snapshot, name, ranks, group_size);
        if ((r = field_int(object, where, "priority", true, 0, FIELD_MAX, &job->priority, err)) < 0 ||
            (r = field_u32(object, where, "age", false, 0, UINT32_MAX, &job->age, err)) < 0 ||
            (r = field_name(object, where, "policy", false, &policy, err)) < 0 ||
            (r = field_int(object, where, "time_limit_usec", false, 0, FIELD_MAX, &time_limit, err)) < 0 ||
            (r = field_array(object, where, "placed", false, &placed, err)) < 0 ||
            (r = field_array(object, where, "traffic", false, &traffic, err)) < 0)
                return r;
        job->time_limit_usec = (uint64_t) time_limit;
        job->policy = snapshot_string(reader->snapshot, policy);
        if (placed && (r = read_placed(reader, placed, err)) < 0)
                return r;
        if ((r = read_group_field(reader, object, &move_cost_field, err)) < 0 ||
            (r = read_group_field(reader, object, &memory_field, err)) < 0 || (r = read_availability(reader, object, err)) < 0)
                return r;
        return traffic ? snapshot_read_traffic(reader->snapshot, reader->job, traffic, where, err) : 0;
}

static int read_snapshot(const json_t *root, struct snapshot *snapshot, struct rm_error *err) {
        static const char *const known[] = { "version", "params", "nodes", "jobs", NULL };
        static const char top[] = "top level"; /* of what, the caller says */
        cleanup_name_index struct name_index *index = NULL;
        const json_t *nodes, *jobs;
        int64_t version;
        char where[32];
        json_t *value;
        size_t i;
        int r;

        if ((r = fields_known(root, top, known, err)) < 0 || (r = field_int(root, top, "version", true, 1, 1, &version, err)) < 0 ||
            (r = field_array(root, top, "nodes", true, &nodes, err)) < 0 ||
            (r = field_array(root, top, "jobs", true, &jobs, err)) < 0 ||
            (r = read_params(root, snapshot_params(snapshot), err)) < 0)
                return r;
        if (json_array_size(nodes) > SNAPSHOT_MAX_NODES || json_array_size(jobs) > SNAPSHOT_MAX_JOBS)
                return error_set(err, -EINVAL, "more than %u nodes or %u jobs", SNAPSHOT_MAX_NODES, SNAPSHOT_MAX_JOBS);
        json_array_foreach(nodes, i, value) {
                (void) snprintf(where, sizeof(where), "nodes[%zu]", i);
                if ((r = read_node(value, where, snapshot, err)) < 0)
                        return r;
        }
        index = snapshot_index_nodes(snapshot_view(snapshot));
        json_array_foreach(jobs, i, value) {
                struct job_reader reader = { .snapshot = snapshot, .nodes = index, .where = where, .job = (uint32_t) i };

                (void) snprintf(where, sizeof(where), "jobs[%zu]", i);
                if ((r = read_job(&reader, value, err)) < 0)
                        return r;
        }
        return snapshot_check(snapshot_view(snapshot), err);
}

int snapshot_parse(const void *data, size_t size_bytes, struct snapshot **ret_snapshot, struct rm_error *err) {
        struct snapshot *snapshot;
        json_t *root;
        int r = fields_parse(data, size_bytes, SNAPSHOT_MAX_BYTES, &root, err);

        if (r < 0)
                return r;
        snapshot = snapshot_create();
        r = read_snapshot(root, snapshot, err);
        json_decref(root);
        if (r < 0) {
                error_clean(err);
                snapshot_destroy(snapshot);
        } else {
                *ret_snapshot = snapshot;
        }
        return r;
}

/* ---- writing ---- */

static json_t *write_node(const struct rm_snapshot *snapshot, const struct rm_node *node) {
        json_t *object = json_pack("{s:s, s:I, s:I, s:s}", "name", node->name, "cores", (json_int_t) node->cores, "penalty",
                                   (json_int_t) node->penalty, "state", node_state_name(node->state));

        if (node->topology)
                json_object_set_new(object, "topology", json_string(node->topology));
        if (node->switch_index >= 0) {
                json_t *path = json_array();

                for (int32_t at = node->switch_index; at >= 0; at = snapshot->switches[at].parent)
                        json_array_append_new(path, json_string(snapshot->switches[at].name));
                json_object_set_new(object, "switch", path);
        }
        if (node->memory != RM_NO_MEMORY_LIMIT) {
                json_object_set_new(object, "memory", json_integer(node->memory));
                json_object_set_new(object, "memory_free", json_integer(node->memory_free));
        }
        return object;
}

static json_t *write_placed(const struct rm_snapshot *snapshot, const struct rm_job *job) {
        json_t *runs = json_array();
        uint32_t last = job->n_groups;

        while (last > 0 && job->groups[last - 1].node < 0)
                last--;
        for (uint32_t g = 0; g < last;) {
                const struct rm_group *first = &job->groups[g];
                uint32_t pinned = first->flags & RM_GROUP_PINNED;
                json_int_t ranks = 0;
                json_t *run = json_object();

                for (; g < last && job->groups[g].node == first->node && (job->groups[g].flags & RM_GROUP_PINNED) == pinned; g++)
                        ranks += job->groups[g].ranks;
                json_object_set_new(run, "node", first->node < 0 ? json_null() : json_string(snapshot->nodes[first->node].name));
                json_object_set_new(run, "ranks", json_integer(ranks));
                if (pinned)
                        json_object_set_new(run, "pinned", json_true());
                json_array_append_new(runs, run);
        }
        return runs;
}

static int64_t group_value(const struct rm_job *job, uint32_t group, const struct group_field *field) {
        int64_t value;

        memcpy(&value, (const char *) &job->groups[group] + field->offset, sizeof(value));
        return value;
}

static json_t *write_group_field(const struct rm_job *job, const struct group_field *field) {
        int64_t first = group_value(job, 0, field);
        bool same = true;
        json_t *values;

        for (uint32_t g = 1; g < job->n_groups; g++)
                same &= group_value(job, g, field) == first;
        if (same)
                return json_integer(first);
        values = json_array();
        for (uint32_t g = 0; g < job->n_groups; g++)
                json_array_append_new(values, json_integer(group_value(job, g, field)));
        return values;
}

static void write_edge(json_t *edges, uint32_t from, uint32_t to, uint64_t bytes) {
        json_array_append_new(edges, json_pack("[I, I, I]", (json_int_t) from, (json_int_t) to, (json_int_t) bytes));
}

/* Both ways together, as one, but where that is more than a reader takes for one. */
static json_t *write_traffic(const struct rm_job *job) {
        json_t *edges = json_array();

        for (uint32_t rank = 0; rank < job->ranks; rank++)
                for (uint64_t e = job->traffic.offset[rank]; e < job->traffic.offset[rank + 1]; e++) {
                        uint64_t bytes = job->traffic.bytes[e];
                        uint64_t back = bytes > FIELD_MAX / 2 ? bytes - FIELD_MAX / 2 : 0;

                        if (job->traffic.peer[e] <= rank)
                                continue;
                        write_edge(edges, rank, job->traffic.peer[e], bytes - back);
                        if (back > 0)
                                write_edge(edges, job->traffic.peer[e], rank, back);
                }
        return edges;
}

static json_t *write_job(const struct rm_snapshot *snapshot, const struct rm_job *job) {
        json_t *object = json_pack("{s:s, s:I, s:I, s:I}", "name", job->name, "ranks", (json_int_t) job->ranks, "priority",
                                   (json_int_t) job->priority, "group_size", (json_int_t) job->group_size);
        json_t *placed = write_placed(snapshot, job);

        if (job->age)
                json_object_set_new(object, "age", json_integer(job->age));
        if (job->policy)
                json_object_set_new(object, "policy", json_string(job->policy));
        if (job->time_limit_usec)
                json_object_set_new(object, "time_limit_usec", json_integer((json_int_t) job->time_limit_usec));
        if (memory_largest(job) > 0)
                json_object_set_new(object, memory_field.name, write_group_field(job, &memory_field));
        json_object_set_new(object, move_cost_field.name, write_group_field(job, &move_cost_field));
        if (job->node_limit) {
                json_t *map = json_object();

                for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                        if (job->node_limit[s] != RM_NO_LIMIT)
                                json_object_set_new(map, snapshot->nodes[s].name, json_integer(job->node_limit[s]));
                json_object_set_new(object, "availability", map);
        }
        if (json_array_size(placed) > 0)
                json_object_set(object, "placed", placed);
        json_decref(placed);
        if (job->traffic.offset)
                json_object_set_new(object, "traffic", write_traffic(job));
        return object;
}

json_t *snapshot_to_json(const struct rm_snapshot *snapshot) {
        json_t *nodes = json_array(), *jobs = json_array(), *params;

        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                json_array_append_new(nodes, write_node(snapshot, &snapshot->nodes[s]));
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                json_array_append_new(jobs, write_job(snapshot, &snapshot->jobs[j]));
        params = json_pack("{s:I, s:I, s:b}", "distribution_weight", (json_int_t) snapshot->params.distribution_weight,
                           "age_weight", (json_int_t) snapshot->params.age_weight, "backfill", (int) snapshot->params.backfill);
        if (snapshot->params.move_budget > 0)
                json_object_set_new(params, "move_budget", json_integer(snapshot->params.move_budget));
        if (snapshot->params.bytes_per_cost != 1)
                json_object_set_new(params, "bytes_per_cost", json_integer(snapshot->params.bytes_per_cost));
        return json_pack("{s:i, s:o, s:o, s:o}", "version", 1, "params", params, "nodes", nodes, "jobs", jobs);
}
