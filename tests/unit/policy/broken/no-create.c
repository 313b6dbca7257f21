#include <errno.h>
#include <stddef.h>

#include "rm/plugin.h"

static int create(const struct rm_plugin_host *host, void **ret_self) {
        host->log(host->context, RM_PLUGIN_WARNING, "cannot find my slide rule");
        *ret_self = NULL;
        return -ENOENT;
}

#define BROKEN_CREATE create
#include "tests/unit/policy/broken/broken.h"

BROKEN_POLICY("no-create", place_nothing);
