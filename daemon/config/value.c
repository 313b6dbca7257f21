#include "daemon/config/value.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

int value_set_text(void *field, const char *text, const struct value_kind *kind) {
        char **out = field;

        if (kind->valid && !kind->valid(text))
                return -EINVAL;
        free(*out);
        *out = xstrdup(text);
        return 0;
}

int value_set_bool(void *field, const char *text, const struct value_kind *kind) {
        static const char *const words[] = { "no", "yes", "false", "true", "off", "on", "0", "1" };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcasecmp(text, words[i]) == 0) {
                        *(bool *) field = i % 2 == 1;
                        return 0;
                }
        return -EINVAL;
}

int value_set_u32(void *field, const char *text, const struct value_kind *kind) {
        int64_t number;
        int r = parse_i64(text, (int64_t) kind->min, (int64_t) kind->max, &number);

        if (r == 0)
                *(uint32_t *) field = (uint32_t) number;
        return r;
}

int value_set_u16(void *field, const char *text, const struct value_kind *kind) {
        uint32_t number;
        int r = value_set_u32(&number, text, kind);

        if (r == 0)
                *(uint16_t *) field = (uint16_t) number;
        return r;
}

int value_set_real(void *field, const char *text, const struct value_kind *kind) {
        char *end;
        double number = strtod(text, &end);

        if (end == text || *end || isspace((unsigned char) text[0]) || !isfinite(number))
                return -EINVAL;
        *(double *) field = number;
        return 0;
}

int value_set_duration(void *field, const char *text, const struct value_kind *kind) {
        uint64_t usec;
        int r = parse_duration_usec(text, &usec);

        if (r == 0 && kind->max > 0 && (usec < kind->min || usec > kind->max))
                r = -ERANGE;
        if (r == 0)
                *(uint64_t *) field = usec;
        return r;
}

int value_set_bytes(void *field, const char *text, const struct value_kind *kind) {
        return parse_bytes(text, field);
}

int value_set_word(void *field, const char *text, const struct value_kind *kind) {
        for (size_t i = 0; i < kind->n_words; i++)
                if (kind->words[i] && strcmp(text, kind->words[i]) == 0) {
                        *(uint32_t *) field = (uint32_t) i;
                        return 0;
                }
        return -EINVAL;
}
