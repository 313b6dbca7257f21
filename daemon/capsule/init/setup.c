#include "daemon/capsule/init/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/agent_request.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/init/base/groups.h"
#include "daemon/capsule/init/base/mounts.h"
#include "daemon/capsule/init/criu/criu.h"
#include "daemon/capsule/init/net/tcp_metrics.h"
#include "daemon/capsule/init/quota.h"
#include "daemon/capsule/init/stdio.h"
#include "daemon/capsule/rank_end.h"

enum { SPEC_MAX_BYTES = 4 * 1024 * 1024, KDAT_MAX_BYTES = 1024 * 1024 };

#define TMPFS_MIN_BYTES (UINT64_C(16) << 20)
#define TMPFS_MIN_INODES UINT64_C(4096)
#define BYTES_PER_INODE 16384 /* files smaller than this on the average are few; an empty one takes about 1 kB */

#define HOSTS_FILE "/run/rm/hosts"

int setup_read_spec(const char *runtime_dir, Capsule__Spec **ret, struct rm_error *error) {
        cleanup_free char *path = xasprintf("%s/spec", runtime_dir);
        cleanup_free char *data = NULL;
        size_t size;
        int r = read_file(path, SPEC_MAX_BYTES, &data, &size);

        if (r < 0)
                return error_sys(error, r, "cannot read %s", path);
        *ret = capsule__spec__unpack(NULL, size, (const uint8_t *) data);
        if (!*ret || (*ret)->mac.len != sizeof(((struct link_spec *) NULL)->mac))
                return error_set(error, -EBADMSG, "%s is damaged", path);
        return 0;
}

/* CRIU finds out what the kernel can do and keeps it in a file; in a capsule it could not, and
 * would do so each time. */
static void make_kdat(const Capsule__Spec *spec) {
        pid_t pid;

        if (access(spec->kdat_path, R_OK) == 0)
                return;
        pid = fork();
        if (pid == 0) {
                int null = open("/dev/null", O_RDWR);

                (void) dup2(null, STDOUT_FILENO);
                (void) dup2(null, STDERR_FILENO);
                execl(spec->criu_path, spec->criu_path, "check", (char *) NULL);
                _exit(127);
        }
        if (pid > 0)
                (void) waitpid(pid, NULL, 0);
}

static int open_dir(const char *path, const char *sub, struct rm_error *error) {
        cleanup_free char *full = xasprintf("%s%s", path, sub);
        int fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd >= 0 ? fd : error_sys(error, -errno, "cannot open %s", full);
}

static int bind_control(struct rm_error *error) {
        struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "ctl.sock" };
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void) unlink(address.sun_path);
        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return error_sys(error, -errno, "cannot bind the control socket");
        return take_fd(&fd);
}

int setup_node_side(struct init *init, const char *runtime_dir, struct rm_error *error) {
        const Capsule__Spec *spec = init->core.spec;
        struct node_fds *node = &init->core.node;
        struct link_spec link = {
                .uplink = spec->uplink,
                .alone = spec->drill,
                .address = spec->address,
                .gateway = spec->gateway,
                .prefix = (uint8_t) spec->prefix,
                .peers = spec->peers,
                .n_peers = spec->n_peers,
        };
        int r;

        memcpy(link.mac, spec->mac.data, sizeof(link.mac));
        make_kdat(spec);
        if (mkdir_p(spec->spool_dir, 0700) < 0 || (node->spool = open_dir(spec->spool_dir, "", error)) < 0)
                return error_prefix(error, "spool") < 0 ? -EIO : error_set(error, -EIO, "cannot make %s", spec->spool_dir);
        (void) quota_mark(node->spool, spec->uid);
        node->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        node->runtime = open_dir(runtime_dir, "", error);
        node->criu = mkdir("criu", 0755) < 0 && errno != EEXIST ? -1 : open_dir(runtime_dir, "/criu", error);
        if (groups_open(&init->core, error) < 0 || node->root < 0 || node->runtime < 0 || node->criu < 0)
                return -EIO;
        /* The working directory stays the runtime directory: our own small files need no path. */
        if (fchdir(node->runtime) < 0)
                return error_sys(error, -errno, "cannot enter %s", runtime_dir);
        r = cgroup_share_freezer(node->cgroup_payload, spec->cgroup_v1);
        if (r < 0)
                return error_sys(error, r, "cannot share the freezer of %s/payload", spec->cgroup_dir);
        r = groups_enter(&init->core, LEAF_INIT, 0);
        if (r < 0)
                return error_sys(error, r, "cannot enter %s/init", spec->cgroup_dir);
        node->listen = bind_control(error);
        if (node->listen < 0)
                return node->listen;
        return link_open_node(&init->link, &link, error);
}

int setup_unshare(struct rm_error *error) {
        if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWPID) < 0)
                return error_sys(error, -errno, "cannot make namespaces");
        /* Mounts that the node makes later (a user's home by autofs) shall appear here, and none of
         * ours there. */
        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
                return error_sys(error, -errno, "cannot make the mounts private");
        return 0;
}

/* Halves of its memory for /tmp and /dev/shm, as the kernel has it for a node, and little for /run,
 * where PID 1 has files too. Both full, and not much else, is thus what a group can be at most; and
 * a file takes memory of the kernel, which the kernel's own default does not count in. */
static char *tmpfs_options(const char *mode, uint64_t memory_bytes, unsigned share) {
        uint64_t bytes = memory_bytes / share > TMPFS_MIN_BYTES ? memory_bytes / share : TMPFS_MIN_BYTES;

        if (memory_bytes == UINT64_MAX)
                return xstrdup(mode);
        return xasprintf("%s,size=%" PRIu64 ",nr_inodes=%" PRIu64, mode, bytes, TMPFS_MIN_INODES + bytes / BYTES_PER_INODE);
}

static int mount_private(const Capsule__Spec *spec, struct rm_error *error) {
        cleanup_free char *tmp = tmpfs_options("mode=1777", spec->memory_max, 2);
        cleanup_free char *run = tmpfs_options("mode=0755", spec->memory_max, 16);
        const struct {
                const char *type;
                const char *path;
                unsigned long flags;
                const char *options;
        } mounts[] = {
                { "proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
                { "tmpfs", "/tmp", MS_NOSUID | MS_NODEV, tmp },
                { "tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, tmp },
                { "tmpfs", "/run", MS_NOSUID | MS_NODEV, run },
                { "devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5" },
        };

        (void) mkdir("/dev/shm", 01777);
        (void) mkdir("/dev/pts", 0755);
        for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
                if (mount(mounts[i].type, mounts[i].path, mounts[i].type, mounts[i].flags, mounts[i].options) < 0)
                        return error_sys(error, -errno, "cannot mount %s", mounts[i].path);
        return 0;
}

/* Programs that open /dev/ptmx must get the capsule's devpts: a device node finds the one beside it
 * by itself, a symlink leads there anyway. */
static int make_dir(const char *path, mode_t mode, uid_t uid, gid_t gid, struct rm_error *error) {
        if (mkdir(path, mode) < 0 || chmod(path, mode) < 0 || chown(path, uid, gid) < 0)
                return error_sys(error, -errno, "cannot make %s", path);
        return 0;
}

/* The daemon writes to it as the job's owner; its directory is root's, so that it stays the file
 * that it is. */
static int make_rank_ends(const Capsule__Spec *spec, struct rm_error *error) {
        cleanup_close int fd = open(RANK_END_PATH, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        return fd < 0 || fchown(fd, spec->uid, spec->gid) < 0 ? error_sys(error, -errno, "cannot make " RANK_END_PATH) : 0;
}

static int fill_run(const struct init *init, const char *kdat, size_t kdat_size, struct rm_error *error) {
        const Capsule__Spec *spec = init->core.spec;
        cleanup_free char *runtime = xasprintf("/run/user/%u", spec->uid);
        int r = make_dir("/run/rm", 0755, 0, 0, error);

        if (r == 0)
                r = make_dir(AGENT_DIR, 0700, spec->uid, spec->gid, error);
        if (r == 0)
                r = make_rank_ends(spec, error);
        if (r == 0)
                r = make_dir("/run/lock", 01777, 0, 0, error);
        if (r == 0)
                r = make_dir("/run/user", 0755, 0, 0, error);
        if (r == 0)
                r = make_dir(runtime, 0700, spec->uid, spec->gid, error);
        if (r == 0)
                r = make_dir(CRIU_KDAT_DIR, 0755, 0, 0, error);
        if (r == 0 && kdat)
                r = write_file_atomic(CRIU_KDAT_DIR "/criu.kdat", kdat, kdat_size, 0644, false);
        if (r == 0 && kdat && spec->uid == 0)
                r = write_file_atomic("/run/criu.kdat", kdat, kdat_size, 0600, false);
        if (r < 0 || !*spec->hosts)
                return r;
        r = write_file_atomic(HOSTS_FILE, spec->hosts, strlen(spec->hosts), 0644, false);
        if (r < 0)
                return error_sys(error, r, "cannot write " HOSTS_FILE);
        if (mount(HOSTS_FILE, "/etc/hosts", NULL, MS_BIND, NULL) < 0)
                return error_sys(error, -errno, "cannot mount the hosts file");
        return 0;
}

int setup_capsule_side(struct init *init, struct rm_error *error) {
        cleanup_free char *kdat = NULL;
        size_t kdat_size = 0;
        int r;

        (void) read_file(init->core.spec->kdat_path, KDAT_MAX_BYTES, &kdat, &kdat_size);
        r = mount_private(init->core.spec, error);
        if (r == 0)
                r = fill_run(init, kdat, kdat_size, error);
        if (r == 0)
                r = mounts_protect(init->core.spec, error);
        /* Our own small files are written through the node's mount, which stays as it is. */
        if (r == 0 && fchdir(init->core.node.runtime) < 0)
                r = error_sys(error, -errno, "cannot enter the runtime directory");
        if (r < 0)
                return r;
        if (sethostname(init->core.spec->hostname, strlen(init->core.spec->hostname)) < 0)
                return error_sys(error, -errno, "cannot set the host name");
        r = link_create(&init->link, error);
        if (r == 0 && init->core.spec->cut && init->link.index != 0)
                tcp_metrics_set_round_trips(init->link.own, init->core.spec->address, init->core.spec->hosts);
        if (r == 0 && init->core.spec->cut)
                r = link_set_filter(&init->link, true, error);
        if (r == 0 && !init->core.spec->cut)
                r = link_set_up(&init->link, true, error);
        if (r == 0 && !init->core.spec->cut)
                link_announce(&init->link);
        return r;
}
