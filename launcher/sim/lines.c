#include "launcher/sim/lines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"

int lines_wrong(const struct lines *lines, struct rm_error *err, const char *fmt, ...) {
        char text[512];
        va_list args;

        va_start(args, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        return error_set(err, -EINVAL, "%s:%zu: %s", lines->name, lines->number, text);
}

static bool is_blank(char c) {
        return c == ' ' || c == '\t' || c == '\r';
}

/* The field that begins at `*at`; it is cleaned of what cannot be shown. */
static int take_field(struct lines *lines, const char **at, const char *end, struct rm_error *err) {
        const char *begin = *at;
        char *field;
        size_t length;

        while (*at < end && !is_blank(**at))
                (*at)++;
        length = (size_t) (*at - begin);
        if (lines->n_fields == LINES_MAX_FIELDS)
                return lines_wrong(lines, err, "more than %d fields", LINES_MAX_FIELDS);
        if (length >= LINES_FIELD_BYTES)
                return lines_wrong(lines, err, "field %zu is longer than %d characters", lines->n_fields + 1,
                                   LINES_FIELD_BYTES - 1);
        field = lines->field[lines->n_fields++];
        memcpy(field, begin, length);
        field[length] = '\0';
        for (size_t i = 0; i < length; i++)
                if (field[i] < ' ' || field[i] > '~')
                        return lines_wrong(lines, err, "field %zu has a character that is no printable ASCII", lines->n_fields);
        return 0;
}

static int split(struct lines *lines, const char *at, const char *end, struct rm_error *err) {
        lines->n_fields = 0;
        for (;;) {
                while (at < end && is_blank(*at))
                        at++;
                if (at == end || strchr(lines->comment, *at))
                        return 0;
                if (take_field(lines, &at, end, err) < 0)
                        return err ? err->code : -EINVAL;
        }
}

bool lines_next(struct lines *lines, struct rm_error *err) {
        while (lines->at < lines->end) {
                const char *begin = lines->at;
                const char *end = memchr(begin, '\n', (size_t) (lines->end - begin));

                if (!end)
                        end = lines->end;
                lines->number++;
                lines->at = end < lines->end ? end + 1 : end;
                if (memchr(begin, '\0', (size_t) (end - begin))) {
                        (void) lines_wrong(lines, err, "a zero byte: this is no text");
                        return false;
                }
                if (split(lines, begin, end, err) < 0)
                        return false;
                if (lines->n_fields > 0)
                        return true;
        }
        return false;
}

int lines_number(const struct lines *lines, size_t i, const char *what, double min, double max, double *ret_value,
                 struct rm_error *err) {
        const char *text = lines->field[i];
        int r = parse_decimal(text, min, max, ret_value);

        if (r == -ERANGE)
                return lines_wrong(lines, err, "%s must be from %.0f to %.0f, is %s", what, min, max, text);
        return r < 0 ? lines_wrong(lines, err, "%s: '%s' is no number", what, text) : 0;
}

int lines_whole(const struct lines *lines, size_t i, const char *what, double min, double max, double *ret_value,
                struct rm_error *err) {
        double value = 0;
        int r = lines_number(lines, i, what, min, max, &value, err);

        if (r < 0)
                return r;
        if (value != floor(value))
                return lines_wrong(lines, err, "%s must be a whole number, is %s", what, lines->field[i]);
        *ret_value = value;
        return 0;
}
