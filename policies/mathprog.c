/*
 * mathprog: runs a policy written as a model in GNU MathProg. Its sets and parameters are the
 * snapshot, its variables the plan; see docs/policy-guide.md for their names and
 * models/fewest-nodes.mod for one that can be read in a minute.
 *
 * The host hands the text over: nothing is read from a file here. GLPK reads models from streams
 * only, and knows /dev/stdin as the process's own stdin, so that is lent a text for as long as it
 * reads.
 */
#include <errno.h>
#include <glpk.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement/cost.h"
#include "rm/policy.h"

enum {
        RESERVE_USEC = 20 * 1000, /* kept back to read the answer off */
        SAID_BYTES = 1024,
        MOST_BRACKETS = 500, /* inside each other: GLPK calls itself for each */
};

#define STDIN_NAME "/dev/stdin"
#define WHOLE 1e-5 /* as near to a whole number as GLPK's integers are */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

struct mathprog {
        const struct rm_plugin_host *host;
        char said[SAID_BYTES]; /* the last that GLPK had to say */
};

/* ---- texts ---- */

struct text {
        FILE *stream;
        char *data;
        size_t size_bytes;
};

static bool text_open(struct text *text) {
        text->stream = open_memstream(&text->data, &text->size_bytes);
        return text->stream != NULL;
}

static bool text_close(struct text *text) {
        bool good = text->stream && fclose(text->stream) == 0;

        text->stream = NULL;
        return good;
}

static void report(const struct mathprog *mathprog, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void report(const struct mathprog *mathprog, const char *format, ...) {
        char line[SAID_BYTES + 128];
        va_list args;

        va_start(args, format);
        (void) vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        mathprog->host->log(mathprog->host->context, RM_PLUGIN_ERROR, line);
}

/* Keep what GLPK says about the model, which is one line that begins with "/dev/stdin:LINE: ", and
 * whatever comes after it. */
static int listen(void *info, const char *text) {
        struct mathprog *mathprog = info;
        size_t used = strlen(mathprog->said);

        if (used == 0 && strncmp(text, STDIN_NAME ":", strlen(STDIN_NAME) + 1) != 0)
                return 1; /* progress */
        if (used == 0 && strstr(text, ": warning: "))
                return 1; /* and goes on */
        (void) snprintf(mathprog->said + used, sizeof(mathprog->said) - used, "%s", text);
        return 1;
}

/* Every run of blanks and line ends to one blank, none at the end. */
static void squeeze(char *text) {
        char *to = text;

        for (const char *from = text; *from; from++)
                if (*from != '\n' && *from != ' ')
                        *to++ = *from;
                else if (to > text && to[-1] != ' ')
                        *to++ = ' ';
        while (to > text && to[-1] == ' ')
                to--;
        *to = '\0';
}

/* "fewest-nodes.mod:7: ..." on one line. */
static void report_said(struct mathprog *mathprog, const char *name, const char *otherwise) {
        const char *said = mathprog->said;

        squeeze(mathprog->said);
        if (strncmp(said, STDIN_NAME, strlen(STDIN_NAME)) == 0)
                report(mathprog, "%s%s", name, said + strlen(STDIN_NAME));
        else
                report(mathprog, "%s: %s", name, otherwise);
}

/* ---- the snapshot as data ---- */

/* Does the model declare `name` with `keyword` (set, param)? GLPK refuses data for what it does not
 * know. */
static bool declares(const char *model, const char *keyword, const char *name) {
        size_t length = strlen(keyword);

        for (const char *at = strstr(model, keyword); at; at = strstr(at + 1, keyword)) {
                const char *word = at + length + strspn(at + length, " \t\r\n");

                if (word > at + length && strncmp(word, name, strlen(name)) == 0 && strcspn(word, " \t\r\n{;,:=<>") == strlen(name))
                        return true;
        }
        return false;
}

struct data {
        FILE *out;
        const struct rm_snapshot *snapshot;
        const char *model;
};

static bool begin(const struct data *data, const char *name) {
        if (!declares(data->model, "param", name))
                return false;
        (void) fprintf(data->out, "param %s :=\n", name);
        return true;
}

static void end(const struct data *data) {
        (void) fputs(";\n", data->out);
}

static void write_set(const struct data *data, const char *name, uint32_t n) {
        if (!declares(data->model, "set", name))
                return;
        (void) fprintf(data->out, "set %s :=", name);
        for (uint32_t i = 0; i < n; i++)
                (void) fprintf(data->out, " %u", i);
        end(data);
}

static void write_single(const struct data *data, const char *name, int64_t value) {
        if (declares(data->model, "param", name))
                (void) fprintf(data->out, "param %s := %lld;\n", name, (long long) value);
}

/* Write a number for each node, or each job. */
static void write_nodes(const struct data *data, const char *name, int64_t (*value)(const struct rm_node *node)) {
        if (!begin(data, name))
                return;
        for (uint32_t s = 0; s < data->snapshot->n_nodes; s++)
                (void) fprintf(data->out, "%u %lld\n", s, (long long) value(&data->snapshot->nodes[s]));
        end(data);
}

static void write_jobs(const struct data *data, const char *name, int64_t (*value)(const struct rm_job *job)) {
        if (!begin(data, name))
                return;
        for (uint32_t j = 0; j < data->snapshot->n_jobs; j++)
                (void) fprintf(data->out, "%u %lld\n", j, (long long) value(&data->snapshot->jobs[j]));
        end(data);
}

static void write_groups(const struct data *data, const char *name, int64_t (*value)(const struct rm_group *group)) {
        if (!begin(data, name))
                return;
        for (uint32_t j = 0; j < data->snapshot->n_jobs; j++)
                for (uint32_t g = 0; g < data->snapshot->jobs[j].n_groups; g++)
                        (void) fprintf(data->out, "%u %u %lld\n", j, g, (long long) value(&data->snapshot->jobs[j].groups[g]));
        end(data);
}

static void write_limits(const struct data *data) {
        if (!begin(data, "limit"))
                return;
        for (uint32_t j = 0; j < data->snapshot->n_jobs; j++)
                for (uint32_t s = 0; data->snapshot->jobs[j].node_limit && s < data->snapshot->n_nodes; s++)
                        if (data->snapshot->jobs[j].node_limit[s] != RM_NO_LIMIT)
                                (void) fprintf(data->out, "%u %u %u\n", j, s, data->snapshot->jobs[j].node_limit[s]);
        end(data);
}

static void write_job_traffic(const struct data *data, uint32_t j, double *to) {
        const struct rm_job *job = &data->snapshot->jobs[j];

        for (uint32_t g = 0; g < job->n_groups; g++) {
                uint32_t first = job->groups[g].first_rank;

                memset(to, 0, sizeof(*to) * job->n_groups);
                for (uint64_t e = job->traffic.offset[first]; e < job->traffic.offset[first + job->groups[g].ranks]; e++)
                        to[job->traffic.peer[e] / job->group_size] += (double) job->traffic.bytes[e];
                for (uint32_t other = g + 1; other < job->n_groups; other++)
                        if (to[other] > 0)
                                (void) fprintf(data->out, "%u %u %u %.0f\n", j, g, other, to[other]);
        }
}

/* Bytes between groups, of each pair once. */
static void write_traffic(const struct data *data) {
        if (!begin(data, "traffic"))
                return;
        for (uint32_t j = 0; j < data->snapshot->n_jobs; j++) {
                double *to = calloc(data->snapshot->jobs[j].n_groups, sizeof(*to));

                if (to && data->snapshot->jobs[j].traffic.offset)
                        write_job_traffic(data, j, to);
                free(to);
        }
        end(data);
}

static int64_t node_cores(const struct rm_node *node) {
        return node->cores;
}
static int64_t node_penalty(const struct rm_node *node) {
        return node->penalty;
}
static int64_t node_switch(const struct rm_node *node) {
        return node->switch_index;
}
static int64_t job_groups(const struct rm_job *job) {
        return job->n_groups;
}
static int64_t job_priority(const struct rm_job *job) {
        return job->priority;
}
static int64_t job_age(const struct rm_job *job) {
        return job->age;
}
static int64_t job_running(const struct rm_job *job) {
        return job_runs(job);
}
static int64_t job_time_limit(const struct rm_job *job) {
        return (int64_t) (job->time_limit_usec / 1000000);
}
static int64_t group_ranks(const struct rm_group *group) {
        return group->ranks;
}
static int64_t group_at(const struct rm_group *group) {
        return group->node;
}
static int64_t group_pinned(const struct rm_group *group) {
        return (group->flags & RM_GROUP_PINNED) != 0;
}
static int64_t group_move_cost(const struct rm_group *group) {
        return group->move_cost;
}

static void write_data(const struct data *data) {
        (void) fputs("data;\n", data->out);
        write_set(data, "NODES", data->snapshot->n_nodes);
        write_set(data, "JOBS", data->snapshot->n_jobs);
        write_single(data, "distribution_weight", data->snapshot->params.distribution_weight);
        write_single(data, "age_weight", data->snapshot->params.age_weight);
        write_nodes(data, "cores", node_cores);
        write_nodes(data, "penalty", node_penalty);
        write_nodes(data, "switch", node_switch);
        write_jobs(data, "groups", job_groups);
        write_jobs(data, "priority", job_priority);
        write_jobs(data, "age", job_age);
        write_jobs(data, "running", job_running);
        write_jobs(data, "time_limit", job_time_limit);
        write_groups(data, "ranks", group_ranks);
        write_groups(data, "at", group_at);
        write_groups(data, "pinned", group_pinned);
        write_groups(data, "move_cost", group_move_cost);
        write_limits(data);
        write_traffic(data);
        (void) fputs("end;\n", data->out);
}

/* ---- model and data to a program ---- */

/* Returns the text behind a comment or a text in quotes that begins at `at`; `at` itself when there
 * is none. */
static const char *skip_unread(const char *at) {
        const char *end = at;

        if (*at == '#')
                return at + strcspn(at, "\n");
        if (at[0] == '/' && at[1] == '*')
                end = strstr(at + 2, "*/");
        else if (*at == '\'' || *at == '"')
                end = strchr(at + 1, *at);
        else
                return at;
        return end ? end + 1 : at + strlen(at);
}

/* The line in which brackets are too deep inside each other, 0: none. */
static unsigned too_deep(const char *model) {
        unsigned line = 1;
        int depth = 0;

        for (const char *at = model; *at;) {
                const char *next = skip_unread(at);

                if (next == at) {
                        depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
                        next++;
                }
                if (depth > MOST_BRACKETS)
                        return line;
                for (; at < next; at++)
                        line += *at == '\n';
        }
        return 0;
}

/* GLPK's reader `read` gets `text` through stdin. */
static int read_text(const char *text, size_t size_bytes, glp_tran *tran, int (*read)(glp_tran *tran)) {
        FILE *before = stdin, *stream = fmemopen((void *) text, size_bytes, "r");
        int r;

        if (!stream)
                return -ENOMEM;
        stdin = stream;
        r = read(tran);
        stdin = before;
        (void) fclose(stream);
        return r == 0 ? 0 : -EINVAL;
}

static int read_model(glp_tran *tran) {
        return glp_mpl_read_model(tran, STDIN_NAME, 1); /* a data section of its own is for trying the model out */
}

static int read_data(glp_tran *tran) {
        return glp_mpl_read_data(tran, STDIN_NAME);
}

static int load(struct mathprog *mathprog, const struct rm_snapshot *snapshot, glp_tran *tran, glp_prob *lp) {
        const char *name = mathprog->host->text_name, *model = mathprog->host->text;
        struct data data = { .snapshot = snapshot, .model = model };
        struct text text = { 0 };
        unsigned line = too_deep(model);
        int r;

        if (strncmp(model, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0) /* which some editors write */
                model += strlen(BYTE_ORDER_MARK);
        if (line > 0) {
                report(mathprog, "%s:%u: more than %d brackets inside each other", name, line, MOST_BRACKETS);
                return -EINVAL;
        }
        r = read_text(model, strlen(model), tran, read_model);
        if (r < 0) {
                report_said(mathprog, name, "cannot be read");
                return r;
        }
        if (!text_open(&text))
                return -ENOMEM;
        data.out = text.stream;
        write_data(&data);
        r = text_close(&text) ? read_text(text.data, text.size_bytes, tran, read_data) : -ENOMEM;
        free(text.data);
        if (r < 0) {
                report_said(mathprog, "the snapshot as data", "does not fit the model");
                return r;
        }
        if (glp_mpl_generate(tran, NULL) != 0) {
                report_said(mathprog, name, "cannot be made into a program");
                return -EINVAL;
        }
        glp_mpl_build_prob(tran, lp);
        return 0;
}

/* ---- answers ---- */

static int milliseconds_left(const struct rm_policy_run *run) {
        uint64_t left = run->left_usec(run->context);

        left = left > RESERVE_USEC ? (left - RESERVE_USEC) / 1000 : 0;
        return left > 1000u * 3600u ? 1000 * 3600 : (int) left;
}

static int solve(struct mathprog *mathprog, glp_prob *lp, const struct rm_policy_run *run, struct rm_plan *plan) {
        const char *name = mathprog->host->text_name;
        glp_iocp branch;
        int r, status;

        glp_init_iocp(&branch);
        branch.msg_lev = GLP_MSG_OFF;
        branch.presolve = GLP_ON;
        branch.mir_cuts = GLP_ON;
        branch.tm_lim = milliseconds_left(run);
        r = branch.tm_lim > 0 ? glp_intopt(lp, &branch) : GLP_ETMLIM;
        status = r == 0 || r == GLP_ETMLIM || r == GLP_EMIPGAP || r == GLP_ESTOP ? glp_mip_status(lp) : GLP_UNDEF;
        if (r == GLP_ENOPFS || r == GLP_ENODFS || (r == 0 && status == GLP_NOFEAS)) {
                report(mathprog, "%s: no plan satisfies it", name);
                return -EINVAL;
        }
        if (status != GLP_OPT && status != GLP_FEAS) {
                report(mathprog, r == GLP_ETMLIM ? "%s: no plan found in time" : "%s: cannot be solved", name);
                return r == GLP_ETMLIM ? -ETIME : -EINVAL;
        }
        (void) snprintf(plan->method, sizeof(plan->method), "%.40s, %s", name,
                        status == GLP_OPT ? "optimal" : "best found in time");
        return 0;
}

/* The other variables are the model's own. */
static bool is_place(const char *name) {
        return name && strncmp(name, "place", 5) == 0 && (name[5] == '[' || name[5] == '\0');
}

/* "place[0,1,2]" names job, group and node. */
static bool parse_place(const char *name, unsigned *ret_job, unsigned *ret_group, unsigned *ret_node) {
        char end;

        return sscanf(name, "place[%u,%u,%u%c", ret_job, ret_group, ret_node, &end) == 4 && end == ']';
}

static int take_column(const struct mathprog *mathprog, const struct rm_snapshot *snapshot, const char *name, double value,
                       struct rm_plan *plan) {
        unsigned j, g, node;

        if (!parse_place(name, &j, &g, &node)) {
                report(mathprog, "%s: %s has other subscripts than place{JOBS, GROUPS[j], NODES}", mathprog->host->text_name, name);
                return -EINVAL;
        }
        if (fabs(value) < WHOLE)
                return 0;
        if (fabs(value - 1) > WHOLE) {
                report(mathprog, "%s: %s is %g, where only 0 and 1 mean something: is it binary?", mathprog->host->text_name, name,
                       value);
                return -EINVAL;
        }
        if (j >= snapshot->n_jobs || g >= snapshot->jobs[j].n_groups || node >= snapshot->n_nodes) {
                report(mathprog, "%s: there is no %s", mathprog->host->text_name, name);
                return -EINVAL;
        }
        if (plan->jobs[j].group_node[g] >= 0) {
                report(mathprog, "%s: group %u of job '%s' is on two nodes", mathprog->host->text_name, g, snapshot->jobs[j].name);
                return -EINVAL;
        }
        plan->jobs[j].group_node[g] = (int32_t) node;
        return 0;
}

static int take_decision(const struct mathprog *mathprog, const struct rm_job *job, struct rm_plan_job *planned) {
        uint32_t placed = 0;

        for (uint32_t g = 0; g < job->n_groups; g++)
                placed += planned->group_node[g] >= 0;
        planned->decision = placed == job->n_groups ? RM_PLACE : RM_WAIT;
        if (placed == 0 || placed == job->n_groups)
                return 0;
        report(mathprog, "%s: %u of the %u groups of job '%s' are on no node", mathprog->host->text_name, job->n_groups - placed,
               job->n_groups, job->name);
        return -EINVAL;
}

static int take_plan(const struct mathprog *mathprog, const struct rm_snapshot *snapshot, glp_prob *lp, struct rm_plan *plan) {
        bool any = false;
        int r = 0;

        for (int column = 1; column <= glp_get_num_cols(lp) && r == 0; column++)
                if (is_place(glp_get_col_name(lp, column))) {
                        any = true;
                        r = take_column(mathprog, snapshot, glp_get_col_name(lp, column), glp_mip_col_val(lp, column), plan);
                }
        if (!any && !declares(mathprog->host->text, "var", "place")) {
                report(mathprog, "%s: it declares no var place{j in JOBS, GROUPS[j], NODES}, which is the plan",
                       mathprog->host->text_name);
                return -EINVAL;
        }
        for (uint32_t j = 0; j < snapshot->n_jobs && r == 0; j++)
                r = take_decision(mathprog, &snapshot->jobs[j], &plan->jobs[j]);
        return r;
}

static int mathprog_place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        struct mathprog *mathprog = self;
        glp_tran *tran;
        glp_prob *lp;
        int r;

        mathprog->said[0] = '\0';
        (void) glp_term_hook(listen, mathprog);
        tran = glp_mpl_alloc_wksp();
        lp = glp_create_prob();
        r = load(mathprog, snapshot, tran, lp);
        if (r == 0)
                r = solve(mathprog, lp, run, plan);
        if (r == 0)
                r = take_plan(mathprog, snapshot, lp, plan);
        glp_delete_prob(lp);
        glp_mpl_free_wksp(tran);
        (void) glp_free_env();
        return r;
}

/* ---- create and destroy ---- */

static int mathprog_create(const struct rm_plugin_host *host, void **ret_self) {
        struct mathprog *mathprog;

        if (host->size < sizeof(*host) || !host->text || !host->text_name) {
                host->log(host->context, RM_PLUGIN_ERROR, "mathprog runs models: ask for one by its name");
                return -EINVAL;
        }
        mathprog = calloc(1, sizeof(*mathprog));
        if (!mathprog)
                return -ENOMEM;
        mathprog->host = host;
        *ret_self = mathprog;
        return 0;
}

static void mathprog_destroy(void *self) {
        free(self);
}

RM_PLUGIN_EXPORT extern const struct rm_policy_plugin rm_plugin;
const struct rm_policy_plugin rm_plugin = {
        .plugin = {
                .abi = RM_PLUGIN_ABI,
                .size = sizeof(struct rm_policy_plugin),
                .name = "mathprog",
                .kind = RM_POLICY_KIND,
                .kind_abi = RM_POLICY_ABI,
                .description = "policies written as GNU MathProg models: NAME.mod in the directory of the policies",
                .create = mathprog_create,
                .destroy = mathprog_destroy,
        },
        .place = mathprog_place,
};
