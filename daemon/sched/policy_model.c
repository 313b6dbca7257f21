#include "daemon/sched/policy_model.h"

#include <string.h>
#include <unistd.h>

#include "common/util.h"

static char *object_path(const char *directory, const char *name) {
        return xasprintf("%s/%s.so", directory, name);
}

static char *model_path(const char *directory, const char *name) {
        return xasprintf("%s/%s" MODEL_SUFFIX, directory, name);
}

bool policy_there(const char *directory, const char *name) {
        cleanup_free char *object = NULL, *model = NULL;

        if (!name_valid(name))
                return false;
        object = object_path(directory, name);
        model = model_path(directory, name);
        return access(object, R_OK) == 0 || access(model, R_OK) == 0;
}

int model_read(const char *directory, const char *name, char **ret_text, struct rm_error *err) {
        cleanup_free char *object = NULL, *path = NULL, *text = NULL;
        size_t size_bytes = 0;
        int r;

        *ret_text = NULL;
        if (!name_valid(name))
                return 0; /* loading it says so */
        object = object_path(directory, name);
        path = model_path(directory, name);
        if (access(object, F_OK) == 0 || access(path, F_OK) < 0)
                return 0;
        r = read_file(path, MODEL_MAX_BYTES, &text, &size_bytes);
        if (r < 0)
                return error_sys(err, r, "policy '%s': %s", name, path);
        if (strlen(text) != size_bytes || size_bytes == 0)
                return error_set(err, -EINVAL, "policy '%s': %s is empty or not a text file", name, path);
        *ret_text = take_ptr(text);
        return 0;
}
