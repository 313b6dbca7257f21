/* Policies that are broken on purpose: each file defines `broken_place` and what differs from a
 * good descriptor. */
#ifndef RM_TESTS_BROKEN_H
#define RM_TESTS_BROKEN_H

#include <stddef.h>

#include "rm/policy.h"

#ifndef BROKEN_ABI
#define BROKEN_ABI RM_PLUGIN_ABI
#endif
#ifndef BROKEN_KIND_ABI
#define BROKEN_KIND_ABI RM_POLICY_ABI
#endif
#ifndef BROKEN_KIND
#define BROKEN_KIND RM_POLICY_KIND
#endif
#ifndef BROKEN_SIZE
#define BROKEN_SIZE sizeof(struct rm_policy_plugin)
#endif
#ifndef BROKEN_CREATE
#define BROKEN_CREATE NULL
#endif

#define BROKEN_POLICY(plugin_name, place_call)                                                                                     \
        extern const struct rm_policy_plugin rm_plugin;                                                                            \
        RM_PLUGIN_EXPORT const struct rm_policy_plugin rm_plugin = {                                                               \
                .plugin = { .abi = BROKEN_ABI,                                                                                     \
                            .size = BROKEN_SIZE,                                                                                   \
                            .name = plugin_name,                                                                                   \
                            .kind = BROKEN_KIND,                                                                                   \
                            .kind_abi = BROKEN_KIND_ABI,                                                                           \
                            .description = "broken on purpose",                                                                    \
                            .create = BROKEN_CREATE },                                                                             \
                .place = place_call,                                                                                               \
        }

/* A plan that places nothing, which is right as long as nothing runs. */
static inline int place_nothing(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run,
                                struct rm_plan *plan) {
        (void) self;
        (void) snapshot;
        (void) run;
        (void) plan;
        return 0;
}

#endif
