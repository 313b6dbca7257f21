/*
 * rm/plugin.h: what every plugin of rmd exports, whatever it does.
 *
 * A plugin is a shared object with one data symbol, RM_PLUGIN_SYMBOL: a constant structure that
 * begins with `struct rm_plugin` and goes on with the calls of its kind (for a policy: `struct
 * rm_policy_plugin` in rm/policy.h, for a fence: `struct rm_fence_plugin` in rm/fence.h). Nothing
 * is registered and nothing runs at load time. A plugin links against nothing of rmd: what it may
 * ask of its host comes as function pointers.
 *
 *      RM_PLUGIN_EXPORT extern const struct rm_policy_plugin rm_plugin;
 *      const struct rm_policy_plugin rm_plugin = {
 *              .plugin = { .abi = RM_PLUGIN_ABI, .size = sizeof(struct rm_policy_plugin),
 *                          .name = "mine", .kind = RM_POLICY_KIND, .kind_abi = RM_POLICY_ABI,
 *                          .description = "what it aims at" },
 *              .place = mine_place,
 *      };
 *
 * Loading: the file name is NAME.so and must agree with `name`. A host refuses, saying why, a
 * missing symbol, another abi or kind_abi, another kind, a size smaller than the kind's first
 * version, and a missing call.
 *
 * Sizes: every structure that crosses the border begins with, or contains, its own size in bytes.
 * Structures only grow at the end, so a reader looks at a late field only when the size says that
 * it is there. A change that is not an addition raises the abi number.
 */
#ifndef RM_PLUGIN_H
#define RM_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RM_PLUGIN_ABI 1u
#define RM_PLUGIN_SYMBOL "rm_plugin"

/* For the one exported structure, so that a plugin can be compiled with -fvisibility=hidden. */
#define RM_PLUGIN_EXPORT __attribute__((visibility("default")))

enum rm_plugin_level {
        RM_PLUGIN_ERROR = 3, /* the numbers of syslog */
        RM_PLUGIN_WARNING = 4,
        RM_PLUGIN_INFO = 6,
        RM_PLUGIN_DEBUG = 7,
};

/* The functions that the host offers to a plugin. Owned by the host, valid until destroy() has
 * returned. */
struct rm_plugin_host {
        uint32_t size;
        uint32_t reserved;
        void *context;                                                  /* pass it back as it is */
        void (*log)(void *context, enum rm_plugin_level level, const char *text); /* one line, no newline; copied */
        /* For plugins that run a text, such as a model: the text, which is NUL-terminated, and the
         * name of its file, for messages. Both NULL for others. */
        const char *text;
        const char *text_name;
};

/* The head of every descriptor. All strings are static and never freed. */
struct rm_plugin {
        uint32_t abi; /* RM_PLUGIN_ABI the plugin was compiled with */
        uint32_t size; /* of the whole descriptor, with the calls of its kind */
        const char *name; /* 1..63 of [A-Za-z0-9._-], begins with a letter or digit; the file name without .so */
        const char *kind; /* RM_POLICY_KIND, ... */
        uint32_t kind_abi; /* of the kind's header */
        uint32_t reserved;
        const char *description; /* one sentence for people */

        /* Make whatever the plugin keeps between calls. 0 or a negative errno (the plugin is then
         * not used; log why). NULL: it keeps nothing, `self` is NULL in all calls. */
        int (*create)(const struct rm_plugin_host *host, void **ret_self);
        /* NULL: nothing to do. Called once for each successful create. */
        void (*destroy)(void *self);
};

#ifdef __cplusplus
}
#endif

#endif
