#include "launcher/sim/swf.h"

#include <stdbool.h>
#include <string.h>

#include "common/util.h"
#include "launcher/sim/lines.h"

/* The fields that are used, by their place in a line; all others must be numbers. */
enum {
        FIELD_NUMBER,
        FIELD_SUBMIT,
        FIELD_WAIT,
        FIELD_RUN,
        FIELD_CORES,
        FIELD_CPU,
        FIELD_MEMORY,
        FIELD_ASKED_CORES,
        FIELD_ASKED_TIME,
        FIELD_ASKED_MEMORY,
        FIELD_STATUS,
        FIELDS = 18,
};

#define MAX_SECONDS 1e10 /* three centuries, in microseconds far below 2^63 */
#define MAX_KILOBYTES 1e12
#define USEC 1000000.0

static const struct field {
        const char *what;
        double max;
        bool whole;
} fields[FIELDS] = {
        [FIELD_NUMBER] = { "job number", 1e15, true },
        [FIELD_SUBMIT] = { "submit time", MAX_SECONDS, false },
        [FIELD_WAIT] = { "wait time", MAX_SECONDS, false },
        [FIELD_RUN] = { "run time", MAX_SECONDS, false },
        [FIELD_CORES] = { "allocated processors", SWF_MAX_RANKS, true },
        [FIELD_CPU] = { "CPU time", 1e15, false },
        [FIELD_MEMORY] = { "used memory", MAX_KILOBYTES, false },
        [FIELD_ASKED_CORES] = { "requested processors", SWF_MAX_RANKS, true },
        [FIELD_ASKED_TIME] = { "requested time", MAX_SECONDS, false },
        [FIELD_ASKED_MEMORY] = { "requested memory", MAX_KILOBYTES, false },
        [FIELD_STATUS] = { "status", 5, true },
        { "user", 1e15, false },
        { "group", 1e15, false },
        { "executable", 1e15, false },
        { "queue", 1e15, false },
        { "partition", 1e15, false },
        { "preceding job", 1e15, false },
        { "think time", 1e15, false },
};

/* Checkpointed jobs have a line for each part (status 2, 3, 4) besides the one that counts. */
static bool is_part(double status) {
        return status == 2 || status == 3 || status == 4;
}

/* False: the line is no whole job. */
static bool make_job(const double *value, struct swf_job *ret) {
        double ranks = value[FIELD_ASKED_CORES] > 0 ? value[FIELD_ASKED_CORES] : value[FIELD_CORES];
        double limit = value[FIELD_ASKED_TIME] > 0 ? value[FIELD_ASKED_TIME] : value[FIELD_RUN];
        double kilobytes = value[FIELD_MEMORY] > 0 ? value[FIELD_MEMORY] : value[FIELD_ASKED_MEMORY];

        if (ranks <= 0 || value[FIELD_RUN] <= 0 || is_part(value[FIELD_STATUS]))
                return false;
        *ret = (struct swf_job) {
                .number = (uint64_t) value[FIELD_NUMBER],
                .submit_usec = (int64_t) (value[FIELD_SUBMIT] * USEC),
                .run_usec = (int64_t) (value[FIELD_RUN] * USEC),
                .limit_usec = (int64_t) (limit * USEC),
                .ranks = (uint32_t) ranks,
                .rank_bytes = kilobytes > 0 ? (uint64_t) (kilobytes * 1024) : 0,
        };
        /* Shorter than the clock ticks. */
        return ret->run_usec > 0 && ret->limit_usec > 0;
}

static int read_line(const struct lines *lines, double *value, struct rm_error *err) {
        int r;

        if (lines->n_fields != FIELDS)
                return lines_wrong(lines, err, "%zu fields, and a job has %d", lines->n_fields, FIELDS);
        for (size_t i = 0; i < FIELDS; i++) {
                double min = i == FIELD_NUMBER || i == FIELD_SUBMIT ? 0 : -1;

                r = fields[i].whole ? lines_whole(lines, i, fields[i].what, min, fields[i].max, &value[i], err)
                                    : lines_number(lines, i, fields[i].what, min, fields[i].max, &value[i], err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_line(const struct lines *lines, struct swf *swf, size_t *allocated, struct rm_error *err) {
        double value[FIELDS];
        struct swf_job job;
        int r = read_line(lines, value, err);

        if (r < 0)
                return r;
        if (!make_job(value, &job)) {
                swf->n_skipped++;
                return 0;
        }
        if (swf->n_jobs > 0 && job.submit_usec < swf->jobs[swf->n_jobs - 1].submit_usec)
                return lines_wrong(lines, err, "job %llu was submitted before the job above it: sort the trace by submit time",
                                   (unsigned long long) job.number);
        if (swf->n_jobs == *allocated) {
                *allocated = *allocated ? 2 * *allocated : 1024;
                swf->jobs = xrealloc(swf->jobs, *allocated * sizeof(*swf->jobs));
        }
        swf->jobs[swf->n_jobs++] = job;
        return 0;
}

static int compare_numbers(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return x < y ? -1 : x > y;
}

static int check_numbers(const char *name, const struct swf *swf, struct rm_error *err) {
        cleanup_free uint64_t *numbers = xcalloc(swf->n_jobs + 1, sizeof(*numbers));

        for (size_t i = 0; i < swf->n_jobs; i++)
                numbers[i] = swf->jobs[i].number;
        qsort(numbers, swf->n_jobs, sizeof(*numbers), compare_numbers);
        for (size_t i = 1; i < swf->n_jobs; i++)
                if (numbers[i] == numbers[i - 1])
                        return error_set(err, -EINVAL, "%s: job %llu is given twice", name, (unsigned long long) numbers[i]);
        return 0;
}

int swf_parse(const char *name, const char *text, size_t size_bytes, struct swf *ret_swf, struct rm_error *err) {
        struct lines *lines = xcalloc(1, sizeof(*lines));
        struct rm_error own = { 0 };
        struct swf swf = { 0 };
        size_t allocated = 0;
        int r = 0;

        *lines = (struct lines) { .name = name, .at = text, .end = text + size_bytes, .comment = ";#" };
        while (r == 0 && lines_next(lines, &own))
                r = add_line(lines, &swf, &allocated, &own);
        r = own.code;
        if (r == 0)
                r = check_numbers(name, &swf, &own);
        if (r == 0 && swf.n_jobs == 0)
                r = error_set(&own, -EINVAL, "%s: contains no job", name);
        free(lines);
        if (r < 0) {
                swf_finish(&swf);
                return error_set(err, r, "%s", own.text);
        }
        *ret_swf = swf;
        return 0;
}

static bool is_gzip(const char *text, size_t size_bytes) {
        return size_bytes > 2 && memcmp(text, "\x1f\x8b", 2) == 0;
}

int swf_read(const char *path, struct swf *ret_swf, struct rm_error *err) {
        cleanup_free char *text = NULL;
        size_t size_bytes;
        int r = read_file(strcmp(path, "-") == 0 ? "/dev/stdin" : path, SWF_MAX_BYTES, &text, &size_bytes);

        if (r < 0)
                return error_sys(err, r, "%s", path);
        if (is_gzip(text, size_bytes))
                return error_set(err, -EINVAL, "%s: it is compressed: zcat %s | rm-sim ... -", path, path);
        return swf_parse(path, text, size_bytes, ret_swf, err);
}

void swf_finish(struct swf *swf) {
        free(swf->jobs);
        *swf = (struct swf) { 0 };
}
