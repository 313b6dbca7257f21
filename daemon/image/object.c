#include <string.h>

#include "common/util.h"
#include "daemon/image/attributes.h"

bool image_kind_has_data(Rm__ImageKind kind) {
        return kind == RM__IMAGE_KIND__IMAGE_KIND_CRIU || kind == RM__IMAGE_KIND__IMAGE_KIND_REGULAR ||
               kind == RM__IMAGE_KIND__IMAGE_KIND_SPOOL || kind == RM__IMAGE_KIND__IMAGE_KIND_BLOCKS ||
               kind == RM__IMAGE_KIND__IMAGE_KIND_AHEAD || image_kind_is_memory(kind);
}

bool image_kind_is_memory(Rm__ImageKind kind) {
        return kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES || image_kind_is_runs(kind);
}

bool image_kind_is_runs(Rm__ImageKind kind) {
        return kind == RM__IMAGE_KIND__IMAGE_KIND_PRESENT || kind == RM__IMAGE_KIND__IMAGE_KIND_LATER ||
               kind == RM__IMAGE_KIND__IMAGE_KIND_SUMS;
}

bool image_object_replaces(const struct image_object *object) {
        return object->kind == RM__IMAGE_KIND__IMAGE_KIND_AHEAD || object->ahead > 0;
}

/* Is it a name in a directory, as the kernel would take it. */
static bool component_valid(const char *name, size_t size_bytes) {
        if (size_bytes == 0 || size_bytes > IMAGE_NAME_MAX_BYTES)
                return false;
        if (name[0] == '.' && (size_bytes == 1 || (size_bytes == 2 && name[1] == '.')))
                return false;
        return !memchr(name, '/', size_bytes);
}

static bool image_name_valid(const char *name) {
        for (const char *p = name; *p; p++)
                if (*p <= ' ' || *p > '~')
                        return false;
        return component_valid(name, strlen(name));
}

static bool path_valid(const char *path) {
        if (strlen(path) > IMAGE_PATH_MAX_BYTES)
                return false;
        for (;;) {
                const char *end = strchrnul(path, '/');

                if (!component_valid(path, (size_t) (end - path)))
                        return false;
                if (!*end)
                        return true;
                path = end + 1;
        }
}

/* A number has only one spelling: it is a name to find others by. */
static bool number_valid(const char *text, int64_t most) {
        int64_t number;

        return text[0] >= '1' && text[0] <= '9' && parse_i64(text, 1, most, &number) == 0;
}

static bool path_fits(const struct image_object *o) {
        switch (o->kind) {
        case RM__IMAGE_KIND__IMAGE_KIND_CRIU:
                return image_name_valid(o->path);
        case RM__IMAGE_KIND__IMAGE_KIND_SPOOL:
        case RM__IMAGE_KIND__IMAGE_KIND_BLOCKS:
                return o->path[0] == 0;
        case RM__IMAGE_KIND__IMAGE_KIND_PAGES:
        case RM__IMAGE_KIND__IMAGE_KIND_PRESENT:
        case RM__IMAGE_KIND__IMAGE_KIND_LATER:
        case RM__IMAGE_KIND__IMAGE_KIND_SUMS:
                return number_valid(o->path, IMAGE_PID_MAX);
        case RM__IMAGE_KIND__IMAGE_KIND_AHEAD:
                return number_valid(o->path, IMAGE_AHEAD_MAX);
        case RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY:
        case RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END:
                return strcmp(o->path, ".") == 0 || path_valid(o->path);
        default:
                return path_valid(o->path);
        }
}

static bool target_fits(const struct image_object *o) {
        switch (o->kind) {
        case RM__IMAGE_KIND__IMAGE_KIND_SYMLINK:
                return o->target[0] != 0 && strlen(o->target) <= IMAGE_PATH_MAX_BYTES;
        case RM__IMAGE_KIND__IMAGE_KIND_HARDLINK:
                return path_valid(o->target);
        default:
                return o->target[0] == 0;
        }
}

static bool role_fits(const struct image_object *o) {
        if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_CRIU || o->kind == RM__IMAGE_KIND__IMAGE_KIND_BLOCKS ||
            image_kind_is_memory(o->kind))
                return o->role[0] == 0;
        return name_valid(o->role);
}

int image_object_check(const struct image_object *o, struct rm_error *err) {
        if (o->kind < RM__IMAGE_KIND__IMAGE_KIND_CRIU || o->kind > RM__IMAGE_KIND__IMAGE_KIND_SUMS)
                return error_set(err, -EBADMSG, "an object of unknown kind %d", (int) o->kind);
        if (!role_fits(o))
                return error_set(err, -EBADMSG, "an object with an invalid role: '%.80s'", o->role);
        if (!path_fits(o))
                return error_set(err, -EBADMSG, "an object with an unsafe name: '%.300s'", o->path);
        if (!target_fits(o))
                return error_set(err, -EBADMSG, "object '%.300s' with an invalid target: '%.300s'", o->path, o->target);
        if (o->mode > 07777 || o->mtime_nsec >= 1000000000U)
                return error_set(err, -EBADMSG, "object '%.300s' with an invalid mode or time", o->path);
        if (o->ahead > (o->kind == RM__IMAGE_KIND__IMAGE_KIND_REGULAR ? IMAGE_AHEAD_MAX : 0))
                return error_set(err, -EBADMSG, "object '%.300s' of kind %d with contents ahead, number %u", o->path, (int) o->kind,
                                 o->ahead);
        return image_attributes_check(o, err);
}
