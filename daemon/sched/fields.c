#include "daemon/sched/fields.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"

int fields_parse(const void *data, size_t size_bytes, size_t max_bytes, json_t **ret_root, struct rm_error *err) {
        const char *text = data ? data : "";
        size_t mark_bytes = byte_order_mark_bytes(text, size_bytes);
        json_error_t at;
        json_t *root;

        if (size_bytes > max_bytes)
                return error_set(err, -EINVAL, "%zu bytes are more than the %zu allowed", size_bytes, max_bytes);
        root = json_loadb(text + mark_bytes, size_bytes - mark_bytes, JSON_REJECT_DUPLICATES, &at);
        if (!root) {
                (void) error_set(err, -EINVAL, "not valid JSON, line %d column %d: %s", at.line, at.column, at.text);
                error_clean(err);
                return -EINVAL;
        }
        *ret_root = root;
        return 0;
}

int fields_known(const json_t *object, const char *where, const char *const *known, struct rm_error *err) {
        const char *key;
        json_t *value;

        if (!json_is_object(object))
                return error_set(err, -EINVAL, "%s must be an object {...}", where);
        json_object_foreach((json_t *) object, key, value) {
                const char *const *k;

                if (strncmp(key, "x_", 2) == 0)
                        continue;
                for (k = known; *k && strcmp(*k, key) != 0; k++)
                        ;
                if (!*k)
                        return error_set(err, -EINVAL, "%s: unknown field \"%.64s\" (fields of your own begin with x_)", where,
                                         key);
        }
        return 0;
}

/* Absent, or of a type that `is` refuses. */
static int find(const json_t *object, const char *where, const char *key, bool required, const char *type,
                bool (*is)(const json_t *), const json_t **ret_value, struct rm_error *err) {
        const json_t *value = json_object_get(object, key);

        if (!value && required)
                return error_set(err, -EINVAL, "%s: field \"%s\" is missing", where, key);
        if (value && !is(value))
                return error_set(err, -EINVAL, "%s: field \"%s\" must be %s", where, key, type);
        *ret_value = value;
        return 0;
}

static bool is_string(const json_t *value) {
        return json_is_string(value);
}
static bool is_array(const json_t *value) {
        return json_is_array(value);
}
static bool is_bool(const json_t *value) {
        return json_is_boolean(value);
}
static bool is_number(const json_t *value) {
        return json_is_number(value);
}

int value_int(const json_t *value, const char *where, int64_t min, int64_t max, int64_t *ret_value, struct rm_error *err) {
        if (json_is_real(value)) {
                double real = json_real_value(value);

                if (real != floor(real) || real < (double) min || real > (double) max)
                        return error_set(err, -EINVAL, "%s must be a whole number from %" PRId64 " to %" PRId64 ", is %g", where,
                                         min, max, real);
                *ret_value = (int64_t) real;
                return 0;
        }
        if (!json_is_integer(value))
                return error_set(err, -EINVAL, "%s must be a whole number", where);
        if (json_integer_value(value) < min || json_integer_value(value) > max)
                return error_set(err, -EINVAL,
                                 "%s must be a whole number from %" PRId64 " to %" PRId64 ", is %" JSON_INTEGER_FORMAT, where, min,
                                 max, json_integer_value(value));
        *ret_value = json_integer_value(value);
        return 0;
}

int field_int(const json_t *object, const char *where, const char *key, bool required, int64_t min, int64_t max, int64_t *ret_value,
              struct rm_error *err) {
        const json_t *value = NULL;
        char at[160];
        int r = find(object, where, key, required, "a whole number", is_number, &value, err);

        if (r < 0 || !value)
                return r;
        (void) text_format(at, sizeof(at), "%s: field \"%s\"", where, key);
        return value_int(value, at, min, max, ret_value, err);
}

int field_u32(const json_t *object, const char *where, const char *key, bool required, uint32_t min, uint32_t max,
              uint32_t *ret_value, struct rm_error *err) {
        int64_t value = *ret_value;
        int r = field_int(object, where, key, required, min, max, &value, err);

        if (r == 0)
                *ret_value = (uint32_t) value;
        return r;
}

int field_bool(const json_t *object, const char *where, const char *key, bool *ret_value, struct rm_error *err) {
        const json_t *value = NULL;
        int r = find(object, where, key, false, "true or false", is_bool, &value, err);

        if (r == 0 && value)
                *ret_value = json_is_true(value);
        return r;
}

int field_string(const json_t *object, const char *where, const char *key, bool required, const char **ret_value,
                 struct rm_error *err) {
        const json_t *value = NULL;
        int r = find(object, where, key, required, "a text", is_string, &value, err);

        if (r == 0 && value)
                *ret_value = json_string_value(value);
        return r;
}

int field_name(const json_t *object, const char *where, const char *key, bool required, const char **ret_value,
               struct rm_error *err) {
        const char *name = NULL;
        int r = field_string(object, where, key, required, &name, err);

        if (r < 0 || !name)
                return r;
        if (!name_valid(name))
                return error_set(err, -EINVAL,
                                 "%s: field \"%s\" must be 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or digit", where,
                                 key);
        *ret_value = name;
        return 0;
}

int field_array(const json_t *object, const char *where, const char *key, bool required, const json_t **ret_value,
                struct rm_error *err) {
        return find(object, where, key, required, "an array [...]", is_array, ret_value, err);
}
