#include "daemon/capsule/init/verify/inventory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define HASH_FUNCTION HASH_SAX /* the usual one falls through cases where the length is not known */
#include <uthash.h>
#include <xxhash.h>

#include "common/compare.h"
#include "common/error.h"
#include "common/openat.h"
#include "common/util.h"
#include "daemon/capsule/init/base/file_identity.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/criu/link_remap.h"
#include "daemon/capsule/init/verify/settings.h"

enum {
        INVENTORY_MAX_BYTES = 3 * 1024 * 1024, /* of a frame's 4 MiB between rm-capsule and rmd */
        STATUS_BYTES = 16384,                  /* 1,024 groups and the rest */
        FDINFO_BYTES = 512,                    /* the flags are in the second line */
        FLAGS_COMPARED = O_ACCMODE | O_APPEND | O_PATH,
        TAKE_USEC = 10000000, /* the group is frozen meanwhile */
};

/* A file is described once, however often it is open. */
struct known {
        UT_hash_handle hh;
        uint32_t file;
        char key[]; /* all that is told of it */
};

/* A mapped file is known by its key, without a look at it. */
struct mapped {
        UT_hash_handle hh;
        struct {
                uint64_t device;
                uint64_t inode;
        } key;
        uint32_t file;
};

struct taking {
        Capsule__Inventory *inventory;
        const Capsule__Spec *spec;
        struct known *known;
        struct mapped *mapped;
        size_t bytes; /* that it has at least, packed */
};

/* Items have at least so many bytes, packed, beside the name of a file: they are counted as they
 * come, for a program may have any number, with long names. */
enum { FILE_BYTES = 6, DESCRIPTOR_BYTES = 4, MAPPING_BYTES = 8, THREAD_BYTES = 4 };

static int grow(struct taking *taking, size_t bytes) {
        taking->bytes += bytes;
        return taking->bytes > INVENTORY_MAX_BYTES ? -EFBIG : 0;
}

void inventory_identity(const Capsule__InventoryFile *file, struct file_identity *ret) {
        *ret = (struct file_identity) {
                .inode = file->inode, .birth_nsec = file->birth_nsec, .type = file->handle_type, .bytes = file->handle.len
        };
        if (ret->bytes > sizeof(ret->handle))
                *ret = (struct file_identity) { 0 };
        else if (ret->bytes > 0)
                memcpy(ret->handle, file->handle.data, ret->bytes);
}

void inventory_set_identity(Capsule__InventoryFile *file, struct file_identity *identity) {
        file->inode = identity->inode;
        file->birth_nsec = identity->birth_nsec;
        file->handle_type = identity->type;
        file->handle.data = identity->handle;
        file->handle.len = identity->bytes;
}

bool *inventory_find_written(const Capsule__Inventory *inventory) {
        bool *written = xcalloc(inventory->n_files + 1, sizeof(*written));

        for (size_t t = 0; t < inventory->n_tasks; t++) {
                const Capsule__InventoryTask *task = inventory->tasks[t];

                for (size_t i = 0; i < task->n_descriptors; i++)
                        if (task->descriptors[i]->file < inventory->n_files)
                                written[task->descriptors[i]->file] |= inventory_opens_for_writing(task->descriptors[i]);
                for (size_t i = 0; i < task->n_mappings; i++)
                        if (task->mappings[i]->file < inventory->n_files)
                                written[task->mappings[i]->file] |= inventory_maps_for_writing(task->mappings[i]);
        }
        return written;
}

int64_t inventory_mtime_nsec(const struct stat *st) {
        return (int64_t) st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

bool inventory_has_path(const Capsule__InventoryFile *file) {
        return file->name[0] == '/';
}

bool inventory_is_carried(const char *path) {
        static const char *const mounts[] = { "/tmp/", "/dev/shm/", "/run/", "/proc/", "/dev/" };

        for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
                if (strncmp(path, mounts[i], strlen(mounts[i])) == 0)
                        return true;
        return false;
}

/* ---- files ---- */

/* The name, and links that it leads through, are the owner's, so they are followed with his
 * rights. */
static bool has_name(const Capsule__Spec *spec, const char *name, const struct stat *st) {
        bool has = identity_look_as(spec) == 0 && link_remap_has_name(name, st);

        (void) identity_look_as(NULL);
        return has;
}

/* "socket:[4711]" is "socket", a deleted file "deleted": numbers, and names that nobody can open,
 * differ from node to node. NFS keeps a deleted file that is open under a name of its own. */
static void strip_name(const Capsule__Spec *spec, char *name, const struct stat *st) {
        if (name[0] != '/')
                name[strcspn(name, "[")] = '\0';
        else if (link_remap_lost_name(name) && !has_name(spec, name, st))
                strcpy(name, "deleted");
}

static void append_file(Capsule__Inventory *inventory, const Capsule__InventoryFile *file) {
        Capsule__InventoryFile *copy = xcalloc(1, sizeof(*copy));

        *copy = *file;
        copy->name = xstrdup(file->name);
        if (file->handle.len > 0) {
                copy->handle.data = xcalloc(1, file->handle.len);
                memcpy(copy->handle.data, file->handle.data, file->handle.len);
        }
        inventory->files = xgrow(inventory->files, inventory->n_files, sizeof(Capsule__InventoryFile *));
        inventory->files[inventory->n_files++] = copy;
}

/* `ret`: its index. */
static int add_file(struct taking *taking, const Capsule__InventoryFile *file, uint32_t *ret) {
        cleanup_free char *key = xasprintf("%" PRIo32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %s", file->mode, file->uid, file->gid,
                                           file->inode, file->name);
        size_t n = strlen(key);
        struct known *known = NULL;

        HASH_FIND(hh, taking->known, key, n, known);
        if (known) {
                *ret = known->file;
                return 0;
        }
        known = xcalloc(1, sizeof(*known) + n + 1);
        memcpy(known->key, key, n + 1);
        known->file = (uint32_t) taking->inventory->n_files;
        HASH_ADD(hh, taking->known, key, n, known);
        append_file(taking->inventory, file);
        *ret = known->file;
        return grow(taking, strlen(file->name) + file->handle.len + FILE_BYTES);
}

static void forget_known(struct taking *taking) {
        struct known *known, *next_known;
        struct mapped *mapped, *next_mapped;

        HASH_ITER (hh, taking->known, known, next_known) {
                HASH_DEL(taking->known, known);
                free(known);
        }
        HASH_ITER (hh, taking->mapped, mapped, next_mapped) {
                HASH_DEL(taking->mapped, mapped);
                free(mapped);
        }
}

uint64_t inventory_top(const char *path, uint32_t uid) {
        cleanup_free char *top = xstrdup(path);
        struct file_identity identity;
        struct stat st;

        for (char *end = top; end; *end = '/') {
                end = strchr(end + 1, '/');
                if (end)
                        *end = '\0';
                if (stat(top, &st) < 0)
                        return 0;
                if (st.st_uid != uid && end)
                        continue;
                if (st.st_uid != uid)
                        return 0;
                file_identity_take(AT_FDCWD, top, &st, &identity);
                return XXH3_64bits_withSeed(identity.handle, identity.bytes, identity.inode);
        }
        return 0;
}

/* `link` is a link of /proc below `dir_fd`: "fd/7", "map_files/START-END", "cwd". */
static int scan_one(struct taking *taking, int dir_fd, const char *link, uint32_t *ret_file, struct stat *ret_stat) {
        Capsule__InventoryFile file = CAPSULE__INVENTORY_FILE__INIT;
        struct file_identity identity;
        char name[PATH_MAX + 16];
        ssize_t n = readlinkat(dir_fd, link, name, sizeof(name) - 1);

        if (n < 0 || fstatat(dir_fd, link, ret_stat, 0) < 0)
                return -errno;
        name[n] = '\0';
        strip_name(taking->spec, name, ret_stat);
        file.name = name;
        file.mode = ret_stat->st_mode;
        if (inventory_has_path(&file)) {
                file.uid = ret_stat->st_uid;
                file.gid = ret_stat->st_gid;
                if (S_ISREG(ret_stat->st_mode)) {
                        file.size_bytes = (uint64_t) ret_stat->st_size;
                        file.mtime_nsec = inventory_mtime_nsec(ret_stat);
                }
                if (S_ISREG(ret_stat->st_mode) || S_ISDIR(ret_stat->st_mode) || S_ISFIFO(ret_stat->st_mode)) {
                        file_identity_take(dir_fd, link, ret_stat, &identity);
                        inventory_set_identity(&file, &identity);
                }
        } else if (strcmp(name, "deleted") == 0) {
                file.uid = ret_stat->st_uid;
                file.inode = ret_stat->st_ino;
        } else
                file.mode &= S_IFMT;
        return add_file(taking, &file, ret_file);
}

/* ---- descriptors ---- */

static int read_flags(int task_fd, unsigned fd, uint32_t *ret, uint64_t *ret_position) {
        char path[32];
        char text[FDINFO_BYTES];
        const char *flags;
        ssize_t n;

        snprintf(path, sizeof(path), "fdinfo/%u", fd);
        n = read_text_at(task_fd, path, text, sizeof(text));
        if (n < 0)
                return (int) n;
        flags = strstr(text, "flags:");
        if (!flags || sscanf(flags, "flags: %" SCNo32, ret) != 1 || sscanf(text, "pos: %" SCNu64, ret_position) != 1)
                return -EBADMSG;
        *ret &= FLAGS_COMPARED;
        return 0;
}

static void append_descriptor(Capsule__InventoryTask *task, const Capsule__InventoryDescriptor *descriptor) {
        Capsule__InventoryDescriptor *copy = xcalloc(1, sizeof(*copy));

        *copy = *descriptor;
        task->descriptors = xgrow(task->descriptors, task->n_descriptors, sizeof(Capsule__InventoryDescriptor *));
        task->descriptors[task->n_descriptors++] = copy;
}

static int add_descriptor(struct taking *taking, Capsule__InventoryTask *task, int task_fd, unsigned fd) {
        Capsule__InventoryDescriptor descriptor = CAPSULE__INVENTORY_DESCRIPTOR__INIT;
        struct stat st;
        char path[32];
        int r;

        descriptor.fd = fd;
        snprintf(path, sizeof(path), "fd/%u", fd);
        r = scan_one(taking, task_fd, path, &descriptor.file, &st);
        if (r == -ENOENT) /* closed since it was listed: it is missing in the comparison, if it should be there */
                return 0;
        if (r == 0 && inventory_has_path(taking->inventory->files[descriptor.file]))
                r = read_flags(task_fd, fd, &descriptor.flags, &descriptor.position);
        if (r == 0)
                append_descriptor(task, &descriptor);
        return r == 0 ? grow(taking, DESCRIPTOR_BYTES) : r;
}

/* The numbers that name the entries of a directory of /proc, in order; the caller frees. */
static int list_numbers(int dir_fd, const char *name, unsigned **ret, size_t *ret_n) {
        cleanup_dir DIR *dir = opendir_at(dir_fd, name);
        unsigned *numbers = NULL;
        const char *number;
        size_t n = 0;

        if (!dir)
                return -errno;
        while ((number = next_number(dir))) {
                numbers = xgrow(numbers, n, sizeof(*numbers));
                numbers[n++] = (unsigned) strtoul(number, NULL, 10);
        }
        if (n > 0)
                qsort(numbers, n, sizeof(*numbers), compare_u32);
        *ret = numbers;
        *ret_n = n;
        return 0;
}

static int take_descriptors(struct taking *taking, Capsule__InventoryTask *task, int task_fd) {
        cleanup_free unsigned *fds = NULL;
        size_t n = 0;
        int r = list_numbers(task_fd, "fd", &fds, &n);

        for (size_t i = 0; i < n && r == 0; i++)
                r = add_descriptor(taking, task, task_fd, fds[i]);
        return r;
}

/* ---- mappings ---- */

struct map_line {
        uint64_t start;
        uint64_t end;
        uint64_t offset;
        uint64_t inode;
        unsigned major;
        unsigned minor;
        char protection[5];
};

/* A mapping of a file has an inode; what has none is memory. */
static bool parse_map(const char *line, struct map_line *ret) {
        return sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &ret->start, &ret->end, ret->protection,
                      &ret->offset, &ret->major, &ret->minor, &ret->inode) == 7 &&
               ret->inode != 0;
}

static int mapped_file(struct taking *taking, int task_fd, const struct map_line *map, uint32_t *ret) {
        struct mapped search = { .key = { makedev(map->major, map->minor), map->inode } }, *mapped;
        struct stat st;
        char path[64];
        int r;

        HASH_FIND(hh, taking->mapped, &search.key, sizeof(search.key), mapped);
        if (mapped) {
                *ret = mapped->file;
                return 0;
        }
        snprintf(path, sizeof(path), "map_files/%" PRIx64 "-%" PRIx64, map->start, map->end);
        r = scan_one(taking, task_fd, path, ret, &st);
        if (r < 0)
                return r;
        mapped = xcalloc(1, sizeof(*mapped));
        mapped->key = search.key;
        mapped->file = *ret;
        HASH_ADD(hh, taking->mapped, key, sizeof(mapped->key), mapped);
        return 0;
}

static uint32_t protection_of(const struct map_line *map) {
        return (map->protection[0] == 'r' ? (uint32_t) PROT_READ : 0) | (map->protection[1] == 'w' ? (uint32_t) PROT_WRITE : 0) |
               (map->protection[2] == 'x' ? (uint32_t) PROT_EXEC : 0) |
               (map->protection[3] == 's' ? (uint32_t) INVENTORY_SHARED : 0);
}

/* Whether the kernel keeps two neighbours apart depends on how each came to be, so here they are
 * one. */
static bool join_mapping(Capsule__InventoryTask *task, const struct map_line *map, uint32_t file) {
        Capsule__InventoryMapping *last = task->n_mappings > 0 ? task->mappings[task->n_mappings - 1] : NULL;

        if (!last || last->file != file || last->protection != protection_of(map) || last->start + last->bytes != map->start ||
            last->offset + last->bytes != map->offset)
                return false;
        last->bytes += map->end - map->start;
        return true;
}

static int add_mapping(struct taking *taking, Capsule__InventoryTask *task, int task_fd, const struct map_line *map) {
        Capsule__InventoryMapping *mapping;
        uint32_t file;
        int r = mapped_file(taking, task_fd, map, &file);

        if (r < 0 || !inventory_has_path(taking->inventory->files[file]) || join_mapping(task, map, file))
                return r;
        mapping = xcalloc(1, sizeof(*mapping));
        capsule__inventory_mapping__init(mapping);
        mapping->start = map->start;
        mapping->bytes = map->end - map->start;
        mapping->offset = map->offset;
        mapping->protection = protection_of(map);
        mapping->file = file;
        task->mappings = xgrow(task->mappings, task->n_mappings, sizeof(Capsule__InventoryMapping *));
        task->mappings[task->n_mappings++] = mapping;
        return grow(taking, MAPPING_BYTES);
}

static int take_mappings(struct taking *taking, Capsule__InventoryTask *task, int task_fd) {
        int fd = openat(task_fd, "maps", O_RDONLY | O_CLOEXEC);
        cleanup_file FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
        cleanup_free char *line = NULL;
        size_t size = 0;
        int r = 0;

        if (!f)
                return -errno;
        while (r == 0 && getline(&line, &size, f) > 0) {
                struct map_line map;

                if (parse_map(line, &map))
                        r = add_mapping(taking, task, task_fd, &map);
        }
        return r;
}

/* ---- threads ---- */

static int add_thread(struct taking *taking, Capsule__InventoryTask *task, int task_fd, unsigned tid, struct rm_error *error) {
        Capsule__InventoryThread *thread;
        struct identity identity;
        char path[64];
        char text[STATUS_BYTES];
        int r;

        snprintf(path, sizeof(path), "task/%u/status", tid);
        r = (int) read_text_at(task_fd, path, text, sizeof(text));
        if (r >= 0)
                r = identity_parse(text, &identity);
        if (r < 0)
                return error_sys(error, r, "thread %u", tid);
        thread = xcalloc(1, sizeof(*thread));
        capsule__inventory_thread__init(thread);
        thread->tid = tid;
        thread->no_new_privs = identity.no_new_privs;
        thread->seccomp = identity.seccomp;
        thread->bounding = identity.bounding;
        task->threads = xgrow(task->threads, task->n_threads, sizeof(Capsule__InventoryThread *));
        task->threads[task->n_threads++] = thread;
        r = identity_check(&identity, taking->spec, error);
        identity_finish(&identity);
        return r == 0 ? grow(taking, THREAD_BYTES) : r;
}

static int take_threads(struct taking *taking, Capsule__InventoryTask *task, int task_fd, struct rm_error *error) {
        cleanup_free unsigned *tids = NULL;
        size_t n = 0;
        int r = list_numbers(task_fd, "task", &tids, &n);

        if (r < 0)
                return error_sys(error, r, "its threads");
        for (size_t i = 0; i < n && r == 0; i++)
                r = add_thread(taking, task, task_fd, tids[i], error);
        return r;
}

/* ---- tasks ---- */

/* The name of a program is its own choice: only for people, and cleaned. */
static void name_task(struct rm_error *error, int task_fd, unsigned pid) {
        char name[32];

        if (read_text_at(task_fd, "comm", name, sizeof(name)) < 0)
                strcpy(name, "?");
        name[strcspn(name, "\n")] = '\0';
        (void) error_prefix(error, "process %u (%s)", pid, name);
        error_clean(error);
}

static bool is_zombie(int task_fd) {
        char text[STATUS_BYTES];
        const char *state = read_text_at(task_fd, "status", text, sizeof(text)) > 0 ? strstr(text, "\nState:\t") : NULL;

        return state && state[8] == 'Z';
}

static int take_places(struct taking *taking, Capsule__InventoryTask *task, int task_fd) {
        struct stat st;
        int r = scan_one(taking, task_fd, "cwd", &task->cwd, &st);

        if (r == 0)
                r = scan_one(taking, task_fd, "root", &task->root, &st);
        return r == 0 ? scan_one(taking, task_fd, "exe", &task->exe, &st) : r;
}

static int too_much(struct rm_error *error) {
        return error_set(error, -EFBIG, "the group has too many open files for a restore to be verified");
}

/* See blocker_scan.c. */
static int check_dumpable(const struct taking *taking, int task_fd, struct rm_error *error) {
        struct stat st;

        if (fstatat(task_fd, "mem", &st, 0) == 0 && st.st_uid != taking->spec->uid)
                return error_set(error, -EPERM, "is not dumpable");
        return 0;
}

static int fill_task(struct taking *taking, Capsule__InventoryTask *task, int task_fd, struct rm_error *error) {
        int r = take_threads(taking, task, task_fd, error);

        if (r == -EFBIG)
                return too_much(error);
        if (r < 0 || is_zombie(task_fd)) /* which has nothing open */
                return r;
        r = check_dumpable(taking, task_fd, error);
        if (r < 0)
                return r;
        settings_take(task_fd, task);
        r = take_places(taking, task, task_fd);
        if (r == 0)
                r = take_descriptors(taking, task, task_fd);
        if (r == 0)
                r = take_mappings(taking, task, task_fd);
        if (r == -EFBIG)
                return too_much(error);
        return r < 0 ? error_sys(error, r, "cannot read its open files") : 0;
}

static int take_task(struct taking *taking, unsigned pid, struct rm_error *error) {
        Capsule__Inventory *inventory = taking->inventory;
        Capsule__InventoryTask *task = xcalloc(1, sizeof(*task));
        cleanup_close int task_fd = -1;
        char path[32];
        int r;

        capsule__inventory_task__init(task);
        task->pid = pid;
        inventory->tasks = xgrow(inventory->tasks, inventory->n_tasks, sizeof(Capsule__InventoryTask *));
        inventory->tasks[inventory->n_tasks++] = task;
        snprintf(path, sizeof(path), "/proc/%u", pid);
        task_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (task_fd < 0)
                return error_sys(error, -errno, "process %u", pid);
        r = fill_task(taking, task, task_fd, error);
        if (r < 0)
                name_task(error, task_fd, pid);
        return r;
}

static int list_tasks(int cgroup_fd, unsigned **ret, size_t *ret_n) {
        cleanup_file FILE *f = fopen_at(cgroup_fd, "cgroup.procs");
        unsigned *pids = NULL;
        unsigned pid;
        size_t n = 0;

        if (!f)
                return -errno;
        while (fscanf(f, "%u", &pid) == 1) {
                pids = xgrow(pids, n, sizeof(*pids));
                pids[n++] = pid;
        }
        if (n > 0)
                qsort(pids, n, sizeof(*pids), compare_u32);
        *ret = pids;
        *ret_n = n;
        return 0;
}

static int take_all(int cgroup_fd, const Capsule__Spec *spec, Capsule__Inventory **ret, struct rm_error *error) {
        struct taking taking = { .inventory = xcalloc(1, sizeof(Capsule__Inventory)), .spec = spec };
        cleanup_free unsigned *pids = NULL;
        size_t n = 0;
        int r = list_tasks(cgroup_fd, &pids, &n);

        capsule__inventory__init(taking.inventory);
        if (r < 0)
                error_sys(error, r, "cannot list the group's processes");
        for (size_t i = 0; i < n && r == 0; i++)
                r = take_task(&taking, pids[i], error);
        forget_known(&taking);
        if (r == 0 && capsule__inventory__get_packed_size(taking.inventory) > INVENTORY_MAX_BYTES)
                r = too_much(error);
        if (r == 0)
                *ret = taking.inventory;
        else
                capsule__inventory__free_unpacked(taking.inventory, NULL);
        return r;
}

/* ---- the child that takes it ---- */

struct order {
        int cgroup_fd;
        const Capsule__Spec *spec;
};

/* This struct comes before the packed inventory. */
struct taken {
        struct rm_error error;
        uint32_t bytes;
};

/* As the owner, for good: the child does nothing else any more. */
static void add_tops(const Capsule__Spec *spec, Capsule__Inventory *inventory) {
        bool may = identity_look_as(spec) == 0;

        for (size_t f = 0; f < inventory->n_files && may; f++) {
                Capsule__InventoryFile *file = inventory->files[f];

                if (inventory_has_path(file) && S_ISDIR(file->mode) && file->uid == spec->uid)
                        file->top = inventory_top(file->name, file->uid);
        }
}

static void take_in_child(int error, int report_fd, const void *arg) {
        const struct order *order = arg;
        Capsule__Inventory *inventory = NULL;
        cleanup_free uint8_t *data = NULL;
        struct taken taken = { 0 };

        taken.error.code = take_all(order->cgroup_fd, order->spec, &inventory, &taken.error);
        if (inventory) {
                add_tops(order->spec, inventory);
                taken.bytes = (uint32_t) capsule__inventory__get_packed_size(inventory);
                data = xcalloc(1, taken.bytes + 1);
                (void) capsule__inventory__pack(inventory, data);
        }
        (void) write_all(report_fd, &taken, sizeof(taken));
        (void) write_all(report_fd, data, taken.bytes);
}

/* A child that has told the first part waits for no file system any more. */
static int receive(int fd, struct taken *taken, Capsule__Inventory **ret) {
        cleanup_free uint8_t *data = NULL;
        int r = identity_await(fd, TAKE_USEC);

        if (r == 0)
                r = read_all(fd, taken, sizeof(*taken));
        if (r < 0 || taken->error.code < 0)
                return r;
        data = xcalloc(1, taken->bytes + 1);
        r = read_all(fd, data, taken->bytes);
        if (r < 0)
                return r;
        *ret = capsule__inventory__unpack(NULL, taken->bytes, data);
        return *ret ? 0 : -EBADMSG;
}

/* To ask for the state of an open file can wait for a file server, or for a file system of the
 * owner's, for ever. PID 1 must not: it ends what runs without a lease. */
int inventory_take(int cgroup_fd, const Capsule__Spec *spec, Capsule__Inventory **ret, struct rm_error *error) {
        const struct order order = { cgroup_fd, spec };
        struct taken taken = { 0 };
        pid_t pid;
        int fd, r = identity_child(NULL, 0, take_in_child, &order, &pid, &fd);

        if (r == 0) {
                r = receive(fd, &taken, ret);
                identity_child_end(pid, fd);
        }
        if (r == -ETIMEDOUT)
                return error_set(error, r, "a file system does not tell of its open files within %d seconds", TAKE_USEC / 1000000);
        if (r < 0)
                return error_sys(error, r, "cannot look at its open files");
        return taken.error.code < 0 ? error_set(error, taken.error.code, "%s", taken.error.text) : 0;
}
