/* Feeds mathprog with models and answers. The bytes describe a model: which variables there are,
 * what they are called, and which value each has, so that all of mathprog runs on it: the text is
 * searched for what it declares, GLPK makes a program of it, and the answer is read off.
 *
 * They are not the model's text itself: that is GLPK's to read, which ends the process on some of
 * it. That is why models run in a process of their own, and what becomes of rmd then is tested
 * elsewhere. What mathprog itself looks for in a text is given the bytes as they are. */
#include "policies/mathprog.c"

#include "common/util.h"
#include "daemon/sched/plan.h"
#include "daemon/sched/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

enum { MOST_WISHES = 24, SYMBOL_BYTES = 12 };

static const char snapshot_text[] =
        "{\"version\":1,\"nodes\":[{\"name\":\"n1\",\"cores\":4,\"penalty\":1},{\"name\":\"n2\",\"cores\":3,\"penalty\":1}],"
        "\"jobs\":["
        "{\"name\":\"j1\",\"ranks\":4,\"group_size\":2,\"priority\":1,\"placed\":[{\"node\":\"n1\",\"ranks\":2},"
        "{\"node\":\"n2\",\"ranks\":2,\"pinned\":true}]},{\"name\":\"j2\",\"ranks\":3,\"priority\":1,\"availability\":{\"n2\":1},"
        "\"traffic\":[[0,1,1000],[1,2,9]]}]}";

struct bytes {
        const uint8_t *data;
        size_t left;
};

static unsigned take(struct bytes *bytes) {
        if (bytes->left == 0)
                return 0;
        bytes->left--;
        return *bytes->data++;
}

/* A subscript as a model may have it: a number, or any text in quotes. */
static void put_subscript(FILE *out, struct bytes *bytes) {
        unsigned kind = take(bytes);

        if (kind % 8 != 7) {
                (void) fprintf(out, "%d", (int) (kind % 8) - 1);
                return;
        }
        (void) fputc('\'', out);
        for (unsigned i = 1 + take(bytes) % SYMBOL_BYTES; i > 0; i--) {
                unsigned c = 32 + take(bytes) % 95;

                (void) fputc(c == '\'' ? ',' : (int) c, out);
        }
        (void) fputc('\'', out);
}

/* "0, 1, 'x,y'" */
static char *take_subscripts(struct bytes *bytes) {
        char *text = NULL;
        size_t size_bytes;
        FILE *out = open_memstream(&text, &size_bytes);

        if (!out)
                abort();
        for (unsigned i = 0; i < 3; i++) {
                (void) fputs(i ? ", " : "", out);
                put_subscript(out, bytes);
        }
        (void) fclose(out);
        return text;
}

/* A model that has the variables wished for, with the values wished for. */
static char *write_model(struct bytes *bytes) {
        static const char *const heads[] = {
                "",
                "set NODES;\n",
                "set NODES; set JOBS; param groups{JOBS};\n",
                "set JOBS;\nparam ranks {j in JOBS, 0..9}, default 0;\nparam traffic{JOBS, 0..9, 0..9}, default 0;\n",
        };
        char *text = NULL, *wishes = NULL;
        size_t text_bytes, wishes_bytes;
        FILE *out = open_memstream(&text, &text_bytes), *end = open_memstream(&wishes, &wishes_bytes);
        const char *head = heads[take(bytes) % ARRAY_SIZE(heads)], *kind = take(bytes) % 2 ? ", integer" : "";

        if (!out || !end)
                abort();
        (void) fprintf(out, "%sset WISHES, dimen 3 := {(0, 0, 0)}", head);
        for (unsigned k = 0; bytes->left > 0 && k < MOST_WISHES; k++) {
                char *subscripts = take_subscripts(bytes);

                (void) fprintf(out, " union {(%s)}", subscripts);
                (void) fprintf(end, "w%u: place[%s] = %u / 2;\n", k, subscripts, take(bytes) % 8);
                free(subscripts);
        }
        (void) fclose(end);
        (void) fprintf(
                out, ";\nvar place{WISHES}, >= 0, <= 3%s;\nvar other{0..2}, <= 9;\nmaximize m: sum{i in 0..2} other[i];\n%send;\n",
                kind, wishes);
        (void) fclose(out);
        free(wishes);
        return text;
}

struct listener {
        char said[SAID_BYTES + 128];
};

static void on_log(void *context, enum rm_plugin_level level, const char *text) {
        struct listener *listener = context;

        (void) level;
        (void) snprintf(listener->said, sizeof(listener->said), "%s", text);
}

static uint64_t plenty(void *context) {
        (void) context;
        return 1000 * 1000;
}

static void check_plan(const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        struct rm_error err = { 0 };

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++) {
                        int32_t node = plan->jobs[j].group_node[g];

                        if (node >= (int32_t) snapshot->n_nodes || (plan->jobs[j].decision == RM_PLACE) != (node >= 0))
                                abort();
                }
        if (plan_validate(snapshot, plan, &err) < 0 && err.text[0] == '\0')
                abort();
}

static void run_model(const char *model, const struct rm_snapshot *snapshot) {
        struct listener listener = { "" };
        struct rm_plugin_host host = {
                .size = sizeof(host), .log = on_log, .context = &listener, .text = model, .text_name = "m.mod"
        };
        struct rm_policy_run run = { .size = sizeof(run), .left_usec = plenty };
        struct rm_plan *plan = plan_create(snapshot);
        void *self;

        if (rm_plugin.plugin.create(&host, &self) < 0)
                abort();
        if (rm_plugin.place(self, snapshot, &run, plan) == 0)
                check_plan(snapshot, plan);
        else if (listener.said[0] == '\0')
                abort(); /* whoever wrote the model is told nothing */
        rm_plugin.plugin.destroy(self);
        plan_destroy(plan);
}

/* The search for declarations in the text of a model, whatever the text is. */
static void search_text(const uint8_t *bytes, size_t size_bytes, const struct rm_snapshot *snapshot) {
        char *model = xcalloc(1, size_bytes + 1), *text = NULL;
        size_t text_bytes;
        struct data data = { .out = open_memstream(&text, &text_bytes), .snapshot = snapshot, .model = model };

        if (!data.out)
                abort();
        memcpy(model, bytes, size_bytes);
        write_data(&data);
        (void) fclose(data.out);
        if (strncmp(text, "data;\n", 6) != 0 || strcmp(text + text_bytes - 5, "end;\n") != 0)
                abort();
        squeeze(model);
        free(model);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        struct bytes bytes = { data, size_bytes };
        struct snapshot *snapshot = NULL;
        struct rm_error err = { 0 };
        char *model;

        if (snapshot_parse(snapshot_text, sizeof(snapshot_text) - 1, &snapshot, &err) < 0)
                abort();
        search_text(data, size_bytes, snapshot_view(snapshot));
        model = write_model(&bytes);
        run_model(model, snapshot_view(snapshot));
        free(model);
        snapshot_destroy(snapshot);
        return 0;
}
