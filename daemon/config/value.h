/* Values of keys in configuration files: what each kind of them takes, in which words that is told,
 * and how it is stored. */
#ifndef RM_CONFIG_VALUE_H
#define RM_CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct value_kind {
        /* Stores the value in `field`, whose type is the function's. A negative errno: it is none
         * of this kind, and the field is as before. */
        int (*set)(void *field, const char *text, const struct value_kind *kind);
        const char *expected; /* for people: "a number from 1 to 65535" */
        uint64_t min, max; /* of numbers and times; max 0: of any size */
        const char *const *words; /* by the number that each means; gaps are NULL */
        size_t n_words;
        bool (*valid)(const char *text); /* of texts; NULL: every text is */
};

/* The initializer of a list of words in a struct value_kind. */
#define VALUE_WORDS(list) .words = (list), .n_words = sizeof(list) / sizeof((list)[0])

int value_set_text(void *field, const char *text, const struct value_kind *kind); /* char *, malloc'ed */
int value_set_bool(void *field, const char *text, const struct value_kind *kind);
int value_set_u16(void *field, const char *text, const struct value_kind *kind);
int value_set_u32(void *field, const char *text, const struct value_kind *kind);
int value_set_real(void *field, const char *text, const struct value_kind *kind); /* double, finite */
int value_set_duration(void *field, const char *text, const struct value_kind *kind); /* uint64_t, microseconds */
int value_set_bytes(void *field, const char *text, const struct value_kind *kind); /* uint64_t */
int value_set_word(void *field, const char *text, const struct value_kind *kind); /* uint32_t, int or an enum */

#endif
