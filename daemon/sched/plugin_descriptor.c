#include "daemon/sched/plugin_descriptor.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"

int descriptor_check(const struct rm_plugin *head, const struct plugin_kind *kind, const char *name, struct rm_error *err) {
        void (*call)(void);
        size_t min_bytes = kind->call_offset + sizeof(call);

        if (head->abi != RM_PLUGIN_ABI)
                return error_set(err, -ELIBBAD, "was built for plugin ABI %u, this rmd has %u", head->abi, RM_PLUGIN_ABI);
        if (head->size < sizeof(*head) || !head->kind || strcmp(head->kind, kind->name) != 0)
                return error_set(err, -ELIBBAD, "is not a %s", kind->name);
        if (head->kind_abi != kind->abi)
                return error_set(err, -ELIBBAD, "was built for %s ABI %u, this rmd has %u", kind->name, head->kind_abi, kind->abi);
        if (head->size < min_bytes)
                return error_set(err, -ELIBBAD, "its descriptor has %u bytes, at least %zu are needed", head->size, min_bytes);
        if (!head->name || strcmp(head->name, name) != 0)
                return error_set(err, -ELIBBAD, "calls itself '%.64s': name and file name must agree",
                                 head->name ? head->name : "");
        (void) memcpy(&call, (const char *) head + kind->call_offset, sizeof(call));
        return call ? 0 : error_set(err, -ELIBBAD, "has no %s()", kind->call);
}

int descriptor_load(const char *directory, const char *name, const struct plugin_kind *kind, const struct rm_plugin **ret_head,
                    struct rm_error *err) {
        cleanup_free char *path = NULL;
        const struct rm_plugin *head;
        void *library;
        int r;

        if (!name_valid(name))
                return error_set(err, -EINVAL, "that is no name of a plugin");
        path = xasprintf("%s/%s.so", directory, name);
        if (access(path, R_OK) < 0)
                return error_sys(err, -errno, "%s", path);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!library)
                return error_set(err, -ELIBBAD, "%s", dlerror());
        head = dlsym(library, RM_PLUGIN_SYMBOL);
        if (!head)
                return error_set(err, -ELIBBAD, "%s has no symbol '%s'", path, RM_PLUGIN_SYMBOL);
        r = descriptor_check(head, kind, name, err);
        if (r == 0)
                *ret_head = head;
        return r;
}
