/* Reading JSON objects strictly: every rule that is broken ends in one sentence that says where,
 * what, and what is allowed. `where` names the object for people, like "jobs[3]". All return 0 or
 * -EINVAL with `err` set. */
#ifndef RM_SCHED_FIELDS_H
#define RM_SCHED_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* The largest whole number that every JSON reader keeps exactly. */
#define FIELD_MAX (INT64_C(1) << 53)

/* Parse one document; duplicate keys, trailing text, NaN, and over `max_bytes` are errors. Caller
 * json_decref()s. */
int fields_parse(const void *data, size_t size_bytes, size_t max_bytes, json_t **ret_root, struct rm_error *err);

/* Is an object, and has no key but `known` (NULL-terminated) and those that begin with "x_", which
 * are free for other uses. */
int fields_known(const json_t *object, const char *where, const char *const *known, struct rm_error *err);

/* A missing optional field leaves *ret_value alone; null is an error. A real number with nothing
 * after the point is a whole one. */
int field_int(const json_t *object, const char *where, const char *key, bool required, int64_t min, int64_t max, int64_t *ret_value,
              struct rm_error *err);
int field_u32(const json_t *object, const char *where, const char *key, bool required, uint32_t min, uint32_t max,
              uint32_t *ret_value, struct rm_error *err);
int field_bool(const json_t *object, const char *where, const char *key, bool *ret_value, struct rm_error *err);
/* Borrowed from the object. */
int field_string(const json_t *object, const char *where, const char *key, bool required, const char **ret_value,
                 struct rm_error *err);
/* As field_string, and name_valid(). */
int field_name(const json_t *object, const char *where, const char *key, bool required, const char **ret_value,
               struct rm_error *err);
int field_array(const json_t *object, const char *where, const char *key, bool required, const json_t **ret_value,
                struct rm_error *err);

/* The same rule for a number that is not a field. */
int value_int(const json_t *value, const char *where, int64_t min, int64_t max, int64_t *ret_value, struct rm_error *err);

#endif
