#include "daemon/sched/policy_load.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/sched/plugin_descriptor.h"
#include "daemon/sched/policy_model.h"

static const struct plugin_kind kind = { RM_POLICY_KIND, RM_POLICY_ABI, "place", offsetof(struct rm_policy_plugin, place) };

static bool ends_in(const char *name, const char *suffix) {
        size_t length = strlen(name), suffix_length = strlen(suffix);

        return length > suffix_length && strcmp(name + length - suffix_length, suffix) == 0;
}

static int no_policy(const struct policy_folders *folders, const char *name, struct rm_error *err) {
        bool object = ends_in(name, ".so");

        if (object || ends_in(name, MODEL_SUFFIX))
                return error_set(err, -ENOENT, "policy '%s': a policy is asked for without its '%s'", name,
                                 object ? ".so" : MODEL_SUFFIX);
        return error_set(err, -ENOENT, "policy '%s': %s has neither %s.so nor %s" MODEL_SUFFIX, name, folders->own, name, name);
}

static int find_object(const struct policy_folders *folders, const char *name, bool text, char **ret_path, struct rm_error *err) {
        cleanup_free char *path = xasprintf("%s/%s.so", folders->own, name);
        int r = access(path, F_OK) < 0 ? -errno : 0;

        if (r == -ENOENT && !text)
                return no_policy(folders, name, err);
        if (r < 0 && text && folders->standard) { /* a model's folder may be closed to nobody: root has read the model */
                cleanup_free char *other = xasprintf("%s/%s.so", folders->standard, name);

                if (access(other, F_OK) < 0)
                        return error_set(err, -ENOENT, "models need %s.so, and neither %s nor %s has it", name, folders->own,
                                         folders->standard);
                *ret_path = take_ptr(other);
                return 0;
        }
        if (r == 0 && access(path, R_OK) < 0)
                r = -errno;
        if (r == -EACCES)
                return error_set(err, r, "policy '%s': %s cannot be read: policies run as nobody, who must be able to", name, path);
        if (r < 0)
                return error_sys(err, r, "policy '%s': %s", name, path);
        *ret_path = take_ptr(path);
        return 0;
}

int policy_load(const struct policy_folders *folders, const char *name, const struct rm_plugin_host *host,
                struct loaded_policy *ret_policy, struct rm_error *err) {
        struct loaded_policy policy = { 0 };
        cleanup_free char *path = NULL;
        int r;

        if (!name_valid(name)) {
                (void) error_set(err, -EINVAL,
                                 "policy '%.64s': that is no name: a policy is asked for by that of its file, without folder "
                                 "and ending",
                                 name);
                error_clean(err);
                return -EINVAL;
        }
        if (host->text)
                name = MODEL_RUNNER;
        if ((r = find_object(folders, name, host->text != NULL, &path, err)) < 0)
                return r;
        /* The library is never unmapped: libraries of policies may have registered functions that
         * run when the process ends. */
        policy.library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!policy.library)
                return error_set(err, -ELIBBAD, "policy '%s': %s", name, dlerror());
        policy.plugin = dlsym(policy.library, RM_PLUGIN_SYMBOL);
        if (!policy.plugin)
                r = error_set(err, -ELIBBAD, "policy '%s': %s has no symbol '%s'", name, path, RM_PLUGIN_SYMBOL);
        else if ((r = descriptor_check(&policy.plugin->plugin, &kind, name, err)) < 0)
                error_prefix(err, "policy '%s'", name);
        else if (policy.plugin->plugin.create && (r = policy.plugin->plugin.create(host, &policy.self)) < 0)
                error_sys(err, r, "policy '%s': cannot start", name);
        if (r < 0)
                dlclose(policy.library);
        else
                *ret_policy = policy;
        return r;
}

void policy_unload(struct loaded_policy *policy) {
        if (!policy->library)
                return;
        if (policy->plugin->plugin.destroy)
                policy->plugin->plugin.destroy(policy->self);
        dlclose(policy->library);
        *policy = (struct loaded_policy) { 0 };
}

/* The description of a policy: {"name", "description"}, or {"name", "error"}. */
static json_t *describe(const struct policy_folders *folders, const char *name, const struct rm_plugin_host *host) {
        struct rm_plugin_host own = *host;
        cleanup_free char *text = NULL, *text_name = xasprintf("%s" MODEL_SUFFIX, name);
        struct loaded_policy policy;
        struct rm_error err = { 0 };
        const char *description;
        int r = model_read(folders->own, name, &text, &err);

        own.text = text;
        own.text_name = text ? text_name : NULL;
        if (r == 0)
                r = policy_load(folders, name, &own, &policy, &err);
        if (r < 0)
                return json_pack("{s:s, s:s}", "name", name, "error", error_text(&err));
        description = policy.plugin->plugin.description ? policy.plugin->plugin.description : "";
        return json_pack("{s:s, s:s}", "name", name, "description", text ? "a model, run by " MODEL_RUNNER : description);
}

static int try_one(const struct policy_folders *folders, const char *name, const struct rm_plugin_host *host, int fd) {
        json_t *entry = describe(folders, name, host);
        cleanup_free char *text = entry ? json_dumps(entry, JSON_COMPACT) : NULL;

        return text ? write_all(fd, text, strlen(text)) : -EINVAL;
}

/* Asks a child about one policy: loading the policy runs its code, which may do anything. */
static json_t *ask_one(const struct policy_folders *folders, const char *name, const struct rm_plugin_host *host,
                       int (*confine)(struct rm_error *err)) {
        char text[8192];
        size_t used = 0;
        ssize_t n;
        json_t *entry;
        int status = 0, fds[2];
        pid_t child;

        if (pipe(fds) < 0)
                return NULL;
        child = fork();
        if (child == 0) {
                (void) close(fds[0]);
                (void) alarm(2);
                _exit((confine && confine(NULL) < 0) || try_one(folders, name, host, fds[1]) < 0);
        }
        (void) close(fds[1]);
        while (child > 0 && used < sizeof(text) &&
               ((n = read(fds[0], text + used, sizeof(text) - used)) > 0 || (n < 0 && errno == EINTR)))
                used += n > 0 ? (size_t) n : 0;
        (void) close(fds[0]);
        if (child > 0)
                (void) waitpid(child, &status, 0);
        entry = status == 0 ? json_loadb(text, used, 0, NULL) : NULL;
        return entry ? entry : json_pack("{s:s, s:s}", "name", name, "error", "loading it ends the process");
}

/* The one that runs texts is none by itself. */
static int is_policy(const struct dirent *entry) {
        return (ends_in(entry->d_name, ".so") && strcmp(entry->d_name, MODEL_RUNNER ".so") != 0) ||
               ends_in(entry->d_name, MODEL_SUFFIX);
}

static bool same_name_before(const json_t *list, const char *name) {
        const json_t *last = json_array_get(list, json_array_size(list) - 1);
        const char *last_name = json_string_value(json_object_get(last, "name"));

        return last_name && strcmp(last_name, name) == 0;
}

int policy_list(const struct policy_folders *folders, const struct rm_plugin_host *host, int (*confine)(struct rm_error *err),
                json_t **ret_list, struct rm_error *err) {
        struct dirent **entries;
        json_t *list;
        int n = scandir(folders->own, &entries, is_policy, alphasort);

        if (n < 0)
                return error_sys(err, -errno, "policy directory %s", folders->own);
        list = json_array();
        for (int i = 0; i < n; i++) {
                *strrchr(entries[i]->d_name, '.') = '\0';
                if (!same_name_before(list, entries[i]->d_name))
                        json_array_append_new(list, ask_one(folders, entries[i]->d_name, host, confine));
                free(entries[i]);
        }
        free(entries);
        *ret_list = list;
        return 0;
}
