/* rmctl show-portable, verify-portable, merge-portable: folders of checkpoints that programs make
 * by librmrt-checkpoint. No rmd is asked. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "launcher/rmctl/checkpoint.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/verb.h"
#include "proto/json.h"
#include "rtlib/checkpoint/folder.h"
#include "rtlib/checkpoint/offline.h"

/* An operation that takes no longer shows no progress. */
#define SILENT_USEC 1000000U

/* The folder, and the numbers in it. */
static int folder_scan(struct call *call, int *ret_dir, uint64_t **ret_numbers, size_t *ret_n) {
        int dir = folder_open(call->args[0], false, &call->err);
        int r = dir < 0 ? dir : folder_list(dir, ret_numbers, ret_n, NULL, &call->err);

        if (r == 0 && *ret_n == 0)
                r = error_set(&call->err, -ENOENT, "folder '%s' has no portable checkpoint", call->args[0]);
        if (r < 0)
                cleanup_close_fd(&dir);
        else
                *ret_dir = dir;
        return r;
}

static int number_read(struct call *call, const char *text, uint64_t *ret) {
        int64_t number = 0;

        if (parse_i64(text, 1, INT64_MAX, &number) < 0)
                return call_usage(call, "'%s' is no number of a checkpoint (see 'rmctl show-portable %s')", text, call->args[0]);
        *ret = (uint64_t) number;
        return 0;
}

/* ---- show-portable ---- */

static char *kind_text(const Portable__Manifest *m) {
        return m->previous ? xasprintf("changes since %" PRIu64, m->previous) : xstrdup("full");
}

static void fill_row(struct table *t, uint64_t number, const Portable__Manifest *m, uint64_t now) {
        table_printf(t, "%" PRIu64, number);
        if (!m) {
                table_colour(t, "DAMAGED", COLOUR_RED);
                for (int i = 0; i < 5; i++)
                        table_cell(t, NULL);
                return;
        }
        table_take(t, kind_text(m));
        table_take(t, human_ago(m->time_usec, now));
        table_printf(t, "%zu", m->n_files);
        table_printf(t, "%zu", m->n_arrays);
        table_take(t, human_bytes(offline_raw_bytes(m)));
        table_take(t, human_bytes(offline_file_bytes(m)));
}

static json_t *json_of(uint64_t number, const Portable__Manifest *m) {
        if (!m)
                return json_pack("{s:I,s:b}", "checkpoint", (json_int_t) number, "damaged", 1);
        return json_pack("{s:I,s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:s}", "checkpoint", (json_int_t) number, "damaged", 0, "previous",
                         (json_int_t) m->previous, "time_usec", (json_int_t) m->time_usec, "ranks", (json_int_t) m->n_files,
                         "arrays", (json_int_t) m->n_arrays, "raw_bytes", (json_int_t) offline_raw_bytes(m), "file_bytes",
                         (json_int_t) offline_file_bytes(m), "byte_order", m->big_endian ? "big" : "little");
}

/* 1: a manifest is damaged, which is said. */
static int show_all(struct call *call, int dir, const uint64_t *numbers, size_t n) {
        static const struct column columns[] = {
                { "CHECKPOINT", true, false, 0 }, { "CONTENT", false, false, 0 }, { "AGE", false, false, 0 },
                { "RANKS", true, false, 0 },      { "ARRAYS", true, false, 1 },   { "SIZE", true, false, 0 },
                { "STORED", true, false, 0 },
        };
        struct table *t = table_create(columns, ARRAY_SIZE(columns));
        json_t *array = json_array();
        uint64_t now = now_real_usec();
        int n_bad = 0;

        for (size_t i = 0; i < n; i++) {
                Portable__Manifest *m = NULL;
                struct rm_error err = { 0 };

                if (folder_read_manifest(dir, numbers[i], &m, NULL, &err) < 0) {
                        n_bad++;
                        (void) fprintf(stderr, "rmctl: checkpoint %" PRIu64 ": %s\n", numbers[i], error_text(&err));
                }
                fill_row(t, numbers[i], m, now);
                (void) json_array_append_new(array, json_of(numbers[i], m));
                if (m)
                        portable__manifest__free_unpacked(m, NULL);
        }
        if (call->json) {
                call_print_json("checkpoints", array);
                table_destroy(t);
        } else {
                json_decref(array);
                call_print_table(call, t);
        }
        return n_bad > 0 ? 1 : 0;
}

static const char *distribution_text(uint32_t distribution) {
        static const char *const texts[] = { "replicated", "block", "private" };

        return distribution < ARRAY_SIZE(texts) ? texts[distribution] : "?";
}

static void array_row(struct table *t, json_t *list, const Portable__Array *a) {
        struct rmrt_type type = manifest_type(a);
        uint64_t count = a->distribution == RMRT_REPLICATED ? a->counts[0] : manifest_total_count(a);
        char text[64];

        type_text(&type, text, sizeof(text));
        table_cell(t, a->name);
        table_cell(t, text);
        table_cell(t, distribution_text(a->distribution));
        table_printf(t, "%" PRIu64, count);
        table_take(t, human_bytes(count * type_element_bytes(&type)));
        (void) json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:I}", "name", a->name, "type", text, "distribution",
                                                     distribution_text(a->distribution), "elements", (json_int_t) count));
}

static int show_one(struct call *call, int dir) {
        static const struct column columns[] = {
                { "ARRAY", false, true, 0 },    { "TYPE", false, false, 0 }, { "DISTRIBUTION", false, false, 0 },
                { "ELEMENTS", true, false, 0 }, { "SIZE", true, false, 0 },
        };
        Portable__Manifest *m = NULL;
        struct table *t;
        uint64_t number = 0;
        json_t *list;
        int r = number_read(call, call->args[1], &number);

        if (r == 0)
                r = folder_read_manifest(dir, number, &m, NULL, &call->err);
        if (r < 0)
                return r;
        t = table_create(columns, ARRAY_SIZE(columns));
        list = json_array();
        for (size_t i = 0; i < m->n_arrays; i++)
                array_row(t, list, m->arrays[i]);
        if (call->json) {
                call_print_json("arrays", list);
                table_destroy(t);
        } else {
                json_decref(list);
                call_print_table(call, t);
        }
        portable__manifest__free_unpacked(m, NULL);
        return 0;
}

static int run_show(struct call *call) {
        cleanup_free uint64_t *numbers = NULL;
        cleanup_close int dir = -1;
        size_t n = 0;
        int r = folder_scan(call, &dir, &numbers, &n);

        if (r < 0)
                return r;
        return call->n_args > 1 ? show_one(call, dir) : show_all(call, dir, numbers, n);
}

/* ---- verify-portable ---- */

/* A checkpoint while it is read. */
struct reading {
        const struct call *call;
        const char *verb;
        uint64_t number, begin_usec;
        json_t *damages; /* NULL: they are printed */
};

static void report_damaged(void *ctx, const struct rm_error *err) {
        const struct reading *reading = ctx;

        call_progress("");
        if (reading->damages)
                (void) json_array_append_new(reading->damages, json_string(err->text));
        else
                (void) printf("%s\n", err->text);
}

static void report_progress(void *ctx, size_t done, size_t total) {
        const struct reading *reading = ctx;
        cleanup_free char *text = NULL;

        if (done == total || now_usec() < reading->begin_usec + SILENT_USEC) {
                if (done == total)
                        call_progress("");
                return;
        }
        text = xasprintf("checkpoint %" PRIu64 ": %s, %zu of %zu files", reading->number, reading->verb, done, total);
        call_progress(text);
}

/* How much of it is not good. */
static size_t verify_one(struct call *call, int dir, uint64_t number, json_t *list) {
        struct reading reading = { call, "verifying", number, now_usec(), call->json ? json_array() : NULL };
        const struct offline_watch watch = { report_damaged, report_progress, &reading };
        size_t n_bad = offline_verify(dir, number, &watch);

        if (call->json)
                (void) json_array_append_new(list,
                                             json_pack("{s:I,s:o}", "checkpoint", (json_int_t) number, "damages", reading.damages));
        else if (n_bad == 0)
                (void) printf("checkpoint %" PRIu64 ": good\n", number);
        (void) fflush(stdout);
        return n_bad;
}

static int run_verify(struct call *call) {
        cleanup_free uint64_t *numbers = NULL;
        cleanup_close int dir = -1;
        size_t n = 0, n_bad = 0;
        json_t *list;
        int r = folder_scan(call, &dir, &numbers, &n);

        if (r == 0 && call->n_args > 1) {
                r = number_read(call, call->args[1], &numbers[0]);
                n = 1;
        }
        if (r < 0)
                return r;
        list = json_array();
        for (size_t i = 0; i < n; i++)
                n_bad += verify_one(call, dir, numbers[i], list);
        if (call->json)
                call_print_json("checkpoints", list);
        else
                json_decref(list);
        return n_bad > 0 ? 1 : 0;
}

/* ---- merge-portable ---- */

static int order_read(struct call *call, int dir, struct offline_merge *merge) {
        const char *order = call_flag(call, "byte-order");
        Portable__Manifest *m = NULL;
        int r;

        if (order && strcmp(order, "big") != 0 && strcmp(order, "little") != 0)
                return call_usage(call, "--byte-order: 'big' or 'little', not '%s'", order);
        r = folder_read_manifest(dir, merge->number, &m, NULL, &call->err);
        if (r < 0)
                return r;
        merge->big_endian = order ? strcmp(order, "big") == 0 : m->big_endian;
        portable__manifest__free_unpacked(m, NULL);
        return 0;
}

static int level_read(struct call *call, struct offline_merge *merge) {
        const char *text = call_flag(call, "zstd");
        int64_t level = 0;

        if (text && parse_i64(text, 0, 19, &level) < 0)
                return call_usage(call, "--zstd: '%s' is no level from 0 to 19", text);
        merge->zstd_level = (int) level;
        return 0;
}

static int merge(struct call *call, int from, const struct offline_merge *merge) {
        struct reading reading = { call, "merging", merge->number, now_usec(), NULL };
        const struct offline_watch watch = { report_damaged, report_progress, &reading };
        const char *into = call_flag(call, "into");
        cleanup_close int other = into ? folder_open(into, true, &call->err) : -1;
        int to = into ? other : from;
        uint64_t number = 0;
        int r = to < 0 ? to : offline_merge(from, to, merge, &watch, &number, &call->err);

        if (r < 0)
                return r;
        if (call_flag(call, "remove"))
                folder_keep(to, 1);
        if (call->json)
                call_print_json("checkpoint", json_integer((json_int_t) number));
        else
                (void) printf("checkpoint %" PRIu64 " of folder '%s' is made of checkpoint %" PRIu64 "\n", number,
                              into ? into : call->args[0], merge->number);
        return 0;
}

static int run_merge(struct call *call) {
        cleanup_free uint64_t *numbers = NULL;
        cleanup_close int dir = -1;
        struct offline_merge what = { 0 };
        size_t n = 0;
        int r = folder_scan(call, &dir, &numbers, &n);

        if (r < 0)
                return r;
        what.number = numbers[0];
        if (call->n_args > 1)
                r = number_read(call, call->args[1], &what.number);
        if (r == 0)
                r = order_read(call, dir, &what);
        if (r == 0)
                r = level_read(call, &what);
        return r == 0 ? merge(call, dir, &what) : r;
}

const struct verb verb_show_portable = {
        .name = "show-portable",
        .args = "DIRECTORY [N]",
        .min_args = 1,
        .max_args = 2,
        .role = ROLE_ANYONE,
        .help = "list portable checkpoints, which a program has made by librmrt-checkpoint, or the arrays of one\n"
                "Exit status 1: one is damaged. Only manifests are read: see verify-portable.",
        .run = run_show,
};

const struct verb verb_verify_portable = {
        .name = "verify-portable",
        .args = "DIRECTORY [N]",
        .min_args = 1,
        .max_args = 2,
        .role = ROLE_ANYONE,
        .help = "read portable checkpoints again, and name each block that is damaged\n"
                "All of the folder, or checkpoint N. Exit status 1: one is damaged.",
        .run = run_verify,
};

const struct verb verb_merge_portable = {
        .name = "merge-portable",
        .args = "DIRECTORY [N]",
        .min_args = 1,
        .max_args = 2,
        .role = ROLE_ANYONE,
        .help = "make one full portable checkpoint of the newest, or of N, and those that it builds on\n"
                "It becomes the newest of its folder.",
        .flags = { { "into", "DIRECTORY", "write it into another folder" },
                   { "byte-order", "ORDER", "convert it: 'big' or 'little'" },
                   { "zstd", "LEVEL", "compress it, 1 (fast) to 19" },
                   { "remove", NULL, "then remove all others from the folder that it is in" } },
        .run = run_merge,
};
