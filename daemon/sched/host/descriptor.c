#include "daemon/sched/host/descriptor.h"

#include <string.h>

int descriptor_check(const struct rm_plugin *head, const struct plugin_kind *kind, const char *name, struct rm_error *err) {
        if (head->abi != RM_PLUGIN_ABI)
                return error_set(err, -ELIBBAD, "was built for plugin ABI %u, this rmd has %u", head->abi, RM_PLUGIN_ABI);
        if (head->size < sizeof(*head) || !head->kind || strcmp(head->kind, kind->name) != 0)
                return error_set(err, -ELIBBAD, "is not a %s", kind->name);
        if (head->kind_abi != kind->abi)
                return error_set(err, -ELIBBAD, "was built for %s ABI %u, this rmd has %u", kind->name, head->kind_abi, kind->abi);
        if (head->size < kind->min_bytes)
                return error_set(err, -ELIBBAD, "its descriptor has %u bytes, at least %zu are needed", head->size,
                                 kind->min_bytes);
        if (!head->name || strcmp(head->name, name) != 0)
                return error_set(err, -ELIBBAD, "calls itself '%.64s': name and file name must agree",
                                 head->name ? head->name : "");
        return 0;
}
