#include "daemon/node/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/util.h"

/* The identity before the change; `active` false: nothing was changed. */
struct identity {
        bool active;
        bool groups_dropped;
        uid_t uid;
        gid_t gid;
        gid_t *groups;
        int n_groups;
        bool powerless;
        uint32_t effective[_LINUX_CAPABILITY_U32S_3]; /* capabilities, where it is */
};

/* Changes what this thread may do. fsuid leaves it capabilities that are not of files, as
 * CAP_SYS_PTRACE, by which links in /proc of other processes can be followed. NULL: none. */
static int set_effective(const uint32_t *effective, uint32_t *ret_before) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

        if (syscall(SYS_capget, &header, data) < 0)
                return -errno;
        for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
                if (ret_before)
                        ret_before[i] = data[i].effective;
                data[i].effective = effective ? effective[i] : 0;
        }
        return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* The system call itself: glibc's function would change all threads of the process. */
static int set_groups(int n, const gid_t *groups) {
        return syscall(SYS_setgroups, (long) n, groups) < 0 ? -errno : 0;
}

/* Both calls return the old value and no error, so that only asking again tells whether they
 * worked. */
static uid_t current_fsuid(void) {
        return (uid_t) setfsuid((uid_t) -1);
}

static gid_t current_fsgid(void) {
        return (gid_t) setfsgid((gid_t) -1);
}

static void identity_restore(struct identity *identity) {
        if (!identity->active)
                return;
        if (identity->powerless && set_effective(identity->effective, NULL) < 0)
                abort();
        (void) setfsuid(identity->uid);
        (void) setfsgid(identity->gid);
        if (identity->groups_dropped && set_groups(identity->n_groups, identity->groups) < 0)
                abort();
        /* Going on under a wrong identity would be worse than ending. */
        if (current_fsuid() != identity->uid || current_fsgid() != identity->gid)
                abort();
        free(identity->groups);
}

static int identity_take(uid_t uid, gid_t gid, struct identity *ret_identity) {
        struct identity identity = { 0 };

        *ret_identity = identity;
        if (uid == USER_NONE)
                return 0;
        identity.uid = current_fsuid();
        identity.gid = current_fsgid();
        identity.n_groups = getgroups(0, NULL);
        if (identity.n_groups < 0)
                return -errno;
        identity.groups = xcalloc((size_t) identity.n_groups, sizeof(gid_t));
        identity.n_groups = getgroups(identity.n_groups, identity.groups);
        identity.active = true;
        identity.groups_dropped = identity.n_groups >= 0 && set_groups(0, NULL) == 0;
        (void) setfsgid(gid);
        (void) setfsuid(uid);
        /* An ordinary process cannot change its identity; it keeps its groups then. */
        if (current_fsuid() != uid || current_fsgid() != gid || (!identity.groups_dropped && uid != geteuid())) {
                identity_restore(&identity);
                return -EPERM;
        }
        identity.powerless = set_effective(NULL, identity.effective) == 0;
        if (!identity.powerless) {
                identity_restore(&identity);
                return -EPERM;
        }
        *ret_identity = identity;
        return 0;
}

/* The contents of /proc depend on the process that looks, so a user's file names may not lead rmd
 * there. */
static int open_place(const char *path, bool of_user) {
        const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = of_user ? RESOLVE_NO_MAGICLINKS : 0 };
        int fd = (int) syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
        struct statfs fs;

        if (fd < 0)
                return -errno;
        if (!of_user || (fstatfs(fd, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC))
                return fd;
        (void) close(fd);
        return -ENOTSUP;
}

static int open_regular(const char *path, bool of_user, int *ret_fd, struct stat *ret_stat) {
        cleanup_close int place = open_place(path, of_user);
        char again[64];
        int fd;

        if (place < 0)
                return place;
        if (fstat(place, ret_stat) < 0)
                return -errno;
        if (S_ISDIR(ret_stat->st_mode))
                return -EISDIR;
        if (!S_ISREG(ret_stat->st_mode))
                return -ENOTSUP;
        (void) snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
        fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return -errno;
        if (fstat(fd, ret_stat) < 0) {
                int r = -errno;

                (void) close(fd);
                return r;
        }
        *ret_fd = fd;
        return 0;
}

int user_file_open(const char *path, uid_t uid, gid_t gid, int *ret_fd, struct stat *ret_stat) {
        struct identity identity;
        struct stat st;
        int fd = -1;
        int r = identity_take(uid, gid, &identity);

        if (r < 0)
                return r;
        r = open_regular(path, uid != USER_NONE, &fd, &st);
        identity_restore(&identity);
        if (r < 0)
                return r;
        *ret_fd = fd;
        *ret_stat = st;
        return 0;
}

int user_inotify_add(int inotify_fd, const char *path, uint32_t mask, uid_t uid, gid_t gid) {
        struct identity identity;
        int wd;
        int r = identity_take(uid, gid, &identity);

        if (r < 0)
                return r;
        wd = inotify_add_watch(inotify_fd, path, mask);
        r = wd < 0 ? -errno : wd;
        identity_restore(&identity);
        return r;
}
