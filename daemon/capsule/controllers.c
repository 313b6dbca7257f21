#include "daemon/capsule/controllers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/cgroup.h"

enum { TEXT_MAX_BYTES = 64 * 1024 };

#define CAPSULES_DIR "rmd-capsules"

static const char *const
        names[CONTROLLER_COUNT] = { [CONTROLLER_MEMORY] = "memory", [CONTROLLER_PIDS] = "pids", [CONTROLLER_CPUSET] = "cpuset" };

/* O_NONBLOCK: kernels from 6.16 on then set a lower memory.max without waiting for what has to be
 * given back. */
int controllers_write(const char *dir, const char *name, const char *text) {
        cleanup_free char *path = xasprintf("%s/%s", dir, name);
        cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);

        if (fd < 0)
                return -errno;
        return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int read_from(const char *dir, const char *name, char **ret) {
        cleanup_free char *path = xasprintf("%s/%s", dir, name);
        int r = read_file(path, TEXT_MAX_BYTES, ret, NULL);

        if (r == 0)
                (*ret)[strcspn(*ret, "\n")] = '\0';
        return r;
}

/* Is `word` one of those in a list such as "cpu memory" or "rw,memory"? */
static bool has_word(const char *list, const char *word) {
        size_t length = strlen(word);

        for (const char *at = list; *at;) {
                size_t n = strcspn(at, " ,\n");

                if (n == length && memcmp(at, word, n) == 0)
                        return true;
                at += n;
                at += strspn(at, " ,\n");
        }
        return false;
}

/* ---- v2 ---- */

static bool group_has(const char *dir, const char *name) {
        cleanup_free char *list = NULL;

        return read_from(dir, "cgroup.controllers", &list) == 0 && has_word(list, name);
}

/* Switches a controller on for the groups below `dir`. A group that has the controller but may not
 * pass it on holds processes. */
static bool pass_on(const char *dir, const char *name) {
        cleanup_free char *word = xasprintf("+%s", name);

        return controllers_write(dir, "cgroup.subtree_control", word) == 0;
}

bool controllers_enable(const char *dir, const char *name) {
        cleanup_free char *above = xstrdup(dir);
        char *slash = strrchr(above, '/');

        if (group_has(dir, name))
                return true;
        if (!slash || slash == above)
                return false;
        *slash = '\0';
        /* Up to the top of the tree, and on the way back down: */
        return cgroup_is_v1(above) == 0 && controllers_enable(above, name) && pass_on(above, name) && group_has(dir, name);
}

/* ---- v1 ---- */

/* Our own group in the hierarchy of a controller; NULL when /proc does not tell. */
static char *own_group(const char *name) {
        cleanup_file FILE *f = fopen("/proc/self/cgroup", "re");
        cleanup_free char *line = NULL;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0) {
                char *list = strchr(line, ':');
                char *path = list ? strchr(list + 1, ':') : NULL;

                if (!path)
                        continue;
                *path++ = '\0';
                path[strcspn(path, "\n")] = '\0';
                if (has_word(list + 1, name))
                        return xstrdup(path);
        }
        return NULL;
}

/* Finds the place of that group in our mounts: a mount may show a part of the hierarchy only, which
 * then must hold the group. */
static char *find_v1(const char *name) {
        cleanup_file FILE *f = fopen("/proc/self/mountinfo", "re");
        cleanup_free char *own = own_group(name);
        cleanup_free char *line = NULL;
        size_t size = 0;

        while (f && own && getline(&line, &size, f) > 0) {
                char *separator = strstr(line, " - cgroup ");
                char top[4096], point[4096];
                size_t length;

                if (!separator || !has_word(separator, name) || sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) != 2)
                        continue;
                length = strcmp(top, "/") == 0 ? 0 : strlen(top);
                if (strncmp(own, top, length) == 0 && !strstr(own, "/.."))
                        return xasprintf("%s%s/" CAPSULES_DIR, point, strcmp(own + length, "/") == 0 ? "" : own + length);
        }
        return NULL;
}

/* A v1 cpuset without CPUs or memory nodes takes no process. */
static int inherit_cpuset(const char *dir) {
        static const char *const files[] = { "cpuset.cpus", "cpuset.mems" };
        cleanup_free char *above = xasprintf("%s/..", dir);

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                cleanup_free char *text = NULL;
                int r = read_from(above, files[i], &text);

                if (r == 0)
                        r = controllers_write(dir, files[i], text);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int make_v1(const char *dir, enum controller which) {
        if (mkdir(dir, 0755) < 0 && errno != EEXIST)
                return -errno;
        return which == CONTROLLER_CPUSET ? inherit_cpuset(dir) : 0;
}

/* ---- all of them ---- */

void controllers_find(struct controllers *ret, const char *cgroup_parent) {
        *ret = (struct controllers) { .cpu_v1 = find_v1("cpu") };
        for (enum controller i = 0; i < CONTROLLER_COUNT; i++) {
                if (cgroup_is_v1(cgroup_parent) == 0 && controllers_enable(cgroup_parent, names[i]) &&
                    pass_on(cgroup_parent, names[i])) {
                        ret->parent[i] = xstrdup(cgroup_parent);
                        continue;
                }
                ret->parent[i] = find_v1(names[i]);
                ret->v1[i] = true;
                if (ret->parent[i] && make_v1(ret->parent[i], i) < 0) {
                        free(ret->parent[i]);
                        ret->parent[i] = NULL;
                }
        }
}

void controllers_finish(struct controllers *controllers) {
        for (enum controller i = 0; i < CONTROLLER_COUNT; i++)
                free(controllers->parent[i]);
        free(controllers->cpu_v1);
}

static int make_capsule_v1(const char *dir, enum controller which) {
        static const char *const leaves[] = { "", "/init", "/payload" };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(leaves) && r == 0; i++) {
                cleanup_free char *path = xasprintf("%s%s", dir, leaves[i]);

                r = make_v1(path, which);
        }
        return r;
}

void controllers_name(const struct controllers *controllers, const char *id, const char *cgroup_dir,
                      char *ret_dirs[CONTROLLER_COUNT]) {
        for (enum controller i = 0; i < CONTROLLER_COUNT; i++) {
                if (!controllers->parent[i])
                        ret_dirs[i] = NULL;
                else
                        ret_dirs[i] = controllers->v1[i] ? xasprintf("%s/%s", controllers->parent[i], id) : xstrdup(cgroup_dir);
        }
}

void controllers_make(const struct controllers *controllers, const char *id, const char *cgroup_dir,
                      char *ret_dirs[CONTROLLER_COUNT]) {
        controllers_name(controllers, id, cgroup_dir, ret_dirs);
        for (enum controller i = 0; i < CONTROLLER_COUNT; i++) {
                if (!ret_dirs[i] || (controllers->v1[i] ? make_capsule_v1(ret_dirs[i], i) == 0 : pass_on(cgroup_dir, names[i])))
                        continue;
                log_warn("capsule %s: the controller %s cannot be had: it is not limited", id, names[i]);
                if (controllers->v1[i])
                        (void) cgroup_remove(ret_dirs[i]);
                free(ret_dirs[i]);
                ret_dirs[i] = NULL;
        }
}

int controllers_remove(char *const dirs[CONTROLLER_COUNT], const char *cgroup_dir) {
        for (enum controller i = 0; i < CONTROLLER_COUNT; i++) {
                int r = dirs[i] && strcmp(dirs[i], cgroup_dir) != 0 ? cgroup_remove(dirs[i]) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- limits ---- */

static int write_limit(const char *dir, const char *name, uint64_t limit, const char *none) {
        cleanup_free char *text = limit == UINT64_MAX ? xstrdup(none) : xasprintf("%llu", (unsigned long long) limit);

        return controllers_write(dir, name, text);
}

int controllers_limit_memory(const char *dir, uint64_t bytes) {
        int r = write_limit(dir, "memory.max", bytes, "max");

        return r == -ENOENT ? write_limit(dir, "memory.limit_in_bytes", bytes, "-1") : r;
}

int controllers_set_memory(const char *dir, uint64_t bytes) {
        (void) controllers_write(dir, "memory.oom.group", "1"); /* v1 has none: there the largest process goes */
        return controllers_limit_memory(dir, bytes);
}

int controllers_set_pids(const char *dir, uint64_t pids) {
        return write_limit(dir, "pids.max", pids, "max");
}

char *controllers_cpu_list(const cpu_set_t *cpus) {
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                abort();
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
                int last = cpu;

                if (!CPU_ISSET(cpu, cpus))
                        continue;
                while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
                        last++;
                (void) fprintf(f, ftell(f) > 0 ? ",%d" : "%d", cpu);
                if (last > cpu)
                        (void) fprintf(f, "-%d", last);
                cpu = last;
        }
        (void) fclose(f);
        return text;
}

int controllers_set_cpus(const char *dir, const cpu_set_t *cpus) {
        cleanup_free char *list = controllers_cpu_list(cpus);

        return controllers_write(dir, "cpuset.cpus", list);
}
