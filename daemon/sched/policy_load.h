/* Loading policies from a directory, and refusing, with the reason, what does not fit. */
#ifndef RM_SCHED_POLICY_LOAD_H
#define RM_SCHED_POLICY_LOAD_H

#include <jansson.h>

#include "common/error.h"
#include "rm/policy.h"

/* A loaded and created policy. */
struct loaded_policy {
        void *library;
        const struct rm_policy_plugin *plugin;
        void *self;
};

/* The folders of policies. */
struct policy_folders {
        const char *own;      /* looked at first, and the only one for policies */
        const char *standard; /* has the policy that runs texts where `own` has not; NULL ok */
};

/* With host->text, `name` is that text's, and the policy that runs texts is loaded. `host` must
 * stay valid until policy_unload(). -ENOENT: no such file; -ELIBBAD: cannot be loaded, or is no
 * policy of this ABI; else what its create said. Code of the plugin runs. */
int policy_load(const struct policy_folders *folders, const char *name, const struct rm_plugin_host *host,
                struct loaded_policy *ret_policy, struct rm_error *err);
void policy_unload(struct loaded_policy *policy);

/* [{"name","description"} or {"name","error"}] sorted by name; every policy is tried in a process
 * of its own, which first calls `confine` (NULL ok) and tries nothing if that fails. The caller
 * owns it. */
int policy_list(const struct policy_folders *folders, const struct rm_plugin_host *host, int (*confine)(struct rm_error *err),
                json_t **ret_list, struct rm_error *err);

#endif
