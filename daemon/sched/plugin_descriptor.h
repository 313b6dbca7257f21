/* Is what a plugin exports something that this rmd knows how to call? For the processes that load
 * plugins, of whatever kind. */
#ifndef RM_SCHED_PLUGIN_DESCRIPTOR_H
#define RM_SCHED_PLUGIN_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "rm/plugin.h"

struct plugin_kind {
        const char *name; /* RM_POLICY_KIND, ... */
        uint32_t abi;
        const char *call; /* the function that each plugin of the kind has: the last of the descriptor's first version */
        size_t call_offset; /* of its pointer in the descriptor */
};

/* `name`: that of its file. -ELIBBAD with "is not a policy" and the like. Looks at nothing behind a
 * field that already fails. */
int descriptor_check(const struct rm_plugin *head, const struct plugin_kind *kind, const char *name, struct rm_error *err);

/* Loads DIRECTORY/NAME.so for the rest of the process, and checks it. */
int descriptor_load(const char *directory, const char *name, const struct plugin_kind *kind, const struct rm_plugin **ret_head,
                    struct rm_error *err);

#endif
