#include "daemon/sched/host/model.h"

#include <string.h>
#include <unistd.h>

#include "common/util.h"

int model_read(const char *directory, const char *name, char **ret_text, struct rm_error *err) {
        cleanup_free char *object = NULL, *path = NULL, *text = NULL;
        size_t size_bytes = 0;
        int r;

        *ret_text = NULL;
        if (!name_valid(name))
                return 0; /* loading it says so */
        object = xasprintf("%s/%s.so", directory, name);
        path = xasprintf("%s/%s" MODEL_SUFFIX, directory, name);
        if (access(object, F_OK) == 0 || access(path, F_OK) < 0)
                return 0;
        r = read_file(path, MODEL_MAX_BYTES, &text, &size_bytes);
        if (r < 0)
                return error_sys(err, r, "policy '%s': %s", name, path);
        if (strlen(text) != size_bytes || size_bytes == 0)
                return error_set(err, -EINVAL, "policy '%s': %s is empty, or no text", name, path);
        *ret_text = take_ptr(text);
        return 0;
}
