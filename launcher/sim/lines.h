/* Text files of a simulation, line by line: fields between blanks, errors with file and line. */
#ifndef RM_SIM_LINES_H
#define RM_SIM_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

enum {
        LINES_MAX_FIELDS = 24,
        LINES_FIELD_BYTES = 80,
};

/* A text, of which one line is looked at. */
struct lines {
        const char *name; /* of the file, for errors */
        const char *at, *end;
        const char *comment; /* characters that begin a comment, at the start of a line or after a blank */
        size_t number; /* of the line, from 1 */
        size_t n_fields;
        char field[LINES_MAX_FIELDS][LINES_FIELD_BYTES];
};

/* The next line that has a field. False at the end, and when a line is wrong: then err->code is
 * set. */
bool lines_next(struct lines *lines, struct rm_error *err);
/* "NAME:LINE: " and what is wrong; -EINVAL. */
int lines_wrong(const struct lines *lines, struct rm_error *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A finite number of field `i` (from 0), called `what` in errors, within [min, max]. */
int lines_number(const struct lines *lines, size_t i, const char *what, double min, double max, double *ret_value,
                 struct rm_error *err);
/* The same without a fraction. */
int lines_whole(const struct lines *lines, size_t i, const char *what, double min, double max, double *ret_value,
                struct rm_error *err);

#endif
