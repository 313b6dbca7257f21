#include "daemon/capsule/init/ranks/agents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HASH_FUNCTION HASH_SAX /* the usual one falls through cases where the length is not known */
#include <uthash.h>

#include "common/error.h"
#include "common/log.h"
#include "common/openat.h"
#include "common/util.h"
#include "daemon/capsule/agent_request.h"
#include "daemon/capsule/init/base/loop.h"
#include "daemon/capsule/init/core.h"

struct agent {
        UT_hash_handle hh; /* by id */
        struct agents *agents;
        struct source alive; /* pidfd */
        char id[AGENT_ID_MAX];
        char *text;
        size_t size; /* of it */
        struct agent_request request; /* points into text */
        bool answered;
};

/* The log is not to be filled by a program that writes nonsense into the directory. */
static const struct rate_limit refusals_limit = { .usec_each = 12000000, .burst = 5 };

/* A look at the directory that takes so long is followed by so many times as long without one: it
 * has a tenth of a processor at most. */
enum { REST_FROM_USEC = 1000, REST_SHARE = 9 };

struct agents {
        struct core *core;
        struct log_rate refusals;
        struct agent *all;
        size_t bytes; /* of the texts */
        uint64_t due_usec; /* when the next request is due, at the rate that is allowed */
        int dir_fd;
        struct source wake;
        uint64_t rest_until_usec; /* nobody wakes us before; UINT64_MAX: anybody may */
};

static void report(struct agent *agent) {
        Capsule__AgentRequest request = CAPSULE__AGENT_REQUEST__INIT;

        request.id = agent->id;
        request.host = (char *) agent->request.host;
        request.command = (char *) agent->request.command;
        agent->agents->core->ops->send(agent->agents->core, &request.base);
}

static void remove_files(struct agents *agents, const char *id) {
        static const char *const suffixes[] = { "req", "done", "status" };

        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
                char file[AGENT_ID_MAX + 8];

                snprintf(file, sizeof(file), "%s.%s", id, suffixes[i]);
                (void) unlinkat(agents->dir_fd, file, 0);
        }
}

static void forget(struct agent *agent) {
        HASH_DEL(agent->agents->all, agent);
        agent->agents->bytes -= agent->size;
        source_remove(agent->agents->core->epoll_fd, &agent->alive);
        close(agent->alive.fd);
        free(agent->text);
        free(agent);
}

static void on_death(struct source *source, uint32_t events) {
        struct agent *agent = source->data;
        struct core *core = agent->agents->core;
        Capsule__AgentGone gone = CAPSULE__AGENT_GONE__INIT;

        remove_files(agent->agents, agent->id);
        if (!agent->answered) {
                gone.id = agent->id;
                core->ops->send(core, &gone.base);
        }
        forget(agent);
}

/* The directory is the user's: what is opened there must be of the kind expected, and the user's
 * own. */
static int open_entry(struct agents *agents, const char *file, int flags, mode_t kind) {
        cleanup_close int fd = openat(agents->dir_fd, file, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if ((st.st_mode & S_IFMT) != kind || st.st_uid != agents->core->spec->uid)
                return -EPERM;
        return take_fd(&fd);
}

static int read_request(struct agents *agents, const char *file, char **ret_text, size_t *ret_size, struct agent_request *ret) {
        cleanup_close int fd = open_entry(agents, file, O_RDONLY, S_IFREG);
        cleanup_free char *text = NULL;
        struct stat st;
        ssize_t n;
        int r;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0 || st.st_size > AGENT_REQUEST_MAX)
                return -EMSGSIZE;
        if ((size_t) st.st_size > AGENT_REQUESTS_BYTES - agents->bytes)
                return -ENOBUFS;
        text = xcalloc(1, (size_t) st.st_size + 1);
        n = pread(fd, text, (size_t) st.st_size, 0);
        r = agent_request_parse(text, n > 0 ? (size_t) n : 0, ret);
        if (r == 0) {
                *ret_text = take_ptr(text);
                *ret_size = (size_t) st.st_size;
        }
        return r;
}

/* Requests may come ahead of the time at which they are due by as many as there may be at once, as
 * mpirun's do; those that come later keep to the rate. */
static bool admit(struct agents *agents) {
        const uint64_t each = UINT64_C(1000000) / AGENT_REQUESTS_PER_SEC;
        uint64_t now = now_usec();

        if (agents->due_usec < now)
                agents->due_usec = now;
        if (agents->due_usec - now > each * (AGENT_REQUESTS_MAX - 1))
                return false;
        agents->due_usec += each;
        return true;
}

static struct agent *find(struct agents *agents, const char *id) {
        struct agent *agent;

        HASH_FIND_STR(agents->all, id, agent);
        return agent;
}

static void learn(struct agents *agents, const char *file, const char *id, pid_t pid) {
        struct agent_request request;
        struct agent *agent;
        char *text = NULL;
        size_t size = 0;
        int pidfd;
        int r = HASH_COUNT(agents->all) < AGENT_REQUESTS_MAX && admit(agents) ? read_request(agents, file, &text, &size, &request)
                                                                              : -EUSERS;

        if (r < 0) {
                log_rated(&agents->refusals, &refusals_limit, LOG_WARNING, "rm-agent's request %s is refused: %s", file,
                          strerror(-r));
                remove_files(agents, id); /* it then sees its FIFO gone and fails */
                return;
        }
        pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0) { /* it died before anybody knew of it */
                free(text);
                remove_files(agents, id);
                return;
        }
        agent = xcalloc(1, sizeof(*agent));
        agent->agents = agents;
        agent->text = text;
        agent->size = size;
        agent->request = request;
        snprintf(agent->id, sizeof(agent->id), "%s", id);
        agent->alive = (struct source) { .fd = pidfd, .fn = on_death, .data = agent };
        HASH_ADD_STR(agents->all, id, agent);
        agents->bytes += size;
        (void) source_add(agents->core->epoll_fd, &agent->alive, EPOLLIN);
        report(agent);
}

void agents_scan(struct agents *agents, bool all) {
        cleanup_dir DIR *dir = opendir_at(agents->dir_fd, ".");
        struct agent *agent;
        const char *name;
        char id[AGENT_ID_MAX];
        pid_t pid;

        if (all)
                for (agent = agents->all; agent; agent = agent->hh.next)
                        if (!agent->answered)
                                report(agent);
        while ((name = next_name(dir)))
                if (agent_file_parse(name, id, &pid) && !find(agents, id))
                        learn(agents, name, id, pid);
}

/* The owner can have any number of names there, and wake us all the time. */
static void rest(struct agents *agents, uint64_t took_cpu_usec) {
        if (took_cpu_usec < REST_FROM_USEC)
                return;
        source_modify(agents->core->epoll_fd, &agents->wake, 0);
        agents->rest_until_usec = now_usec() + REST_SHARE * took_cpu_usec;
}

static void on_wake(struct source *source, uint32_t events) {
        struct agents *agents = source->data;
        uint64_t began_usec = thread_cpu_usec();
        char buffer[4096];

        (void) !read(source->fd, buffer, sizeof(buffer));
        /* While the payload is being restored, its requests are not complete; open() looks
         * again. */
        if (agents->core->phase == CAPSULE__PHASE__PHASE_RUNNING)
                agents_scan(agents, false);
        rest(agents, thread_cpu_usec() - began_usec);
}

uint64_t agents_deadline(const struct agents *agents) {
        return agents->rest_until_usec;
}

void agents_timeout(struct agents *agents) {
        agents->rest_until_usec = UINT64_MAX;
        source_modify(agents->core->epoll_fd, &agents->wake, EPOLLIN);
}

int agents_reply(struct agents *agents, const char *id, int status) {
        struct agent *agent = find(agents, id);
        char file[AGENT_ID_MAX + 8];
        char done[AGENT_ID_MAX + 8];
        char text[8];
        cleanup_close int fd = -1;

        if (!agent)
                return -ENOENT;
        snprintf(file, sizeof(file), "%s.status", id);
        fd = open_entry(agents, file, O_WRONLY, S_IFIFO);
        if (fd < 0)
                return -EPIPE;
        /* The mark moves with the files: nobody starts the command again when it is answered. */
        agent->answered = true;
        snprintf(file, sizeof(file), "%s.req", id);
        snprintf(done, sizeof(done), "%s.done", id);
        (void) renameat(agents->dir_fd, file, agents->dir_fd, done);
        snprintf(text, sizeof(text), "%d\n", status & 0xff);
        return write(fd, text, strlen(text)) < 0 ? -EPIPE : 0;
}

/* Makes the FIFO before the payload is there, so that nothing in the directory is the user's
 * yet. */
static int open_wake(const struct core *core, struct rm_error *error) {
        int fd;

        if (mkfifo(AGENT_WAKE, 0600) < 0 || chown(AGENT_WAKE, core->spec->uid, core->spec->gid) < 0)
                return error_sys(error, -errno, "cannot make " AGENT_WAKE);
        /* The FIFO is open for both directions, so that it never reports an end. */
        fd = open(AGENT_WAKE, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        return fd < 0 ? error_sys(error, -errno, "cannot open " AGENT_WAKE) : fd;
}

int agents_create(struct core *core, struct agents **ret, struct rm_error *error) {
        struct agents *agents = xcalloc(1, sizeof(*agents));

        *ret = agents; /* lives as long as the process */
        agents->core = core;
        agents->rest_until_usec = UINT64_MAX;
        agents->dir_fd = open(AGENT_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (agents->dir_fd < 0)
                return error_sys(error, -errno, "cannot open " AGENT_DIR);
        agents->wake = (struct source) { .fd = open_wake(core, error), .fn = on_wake, .data = agents };
        if (agents->wake.fd < 0)
                return agents->wake.fd;
        return source_add(core->epoll_fd, &agents->wake, EPOLLIN) < 0 ? error_sys(error, -errno, "cannot watch " AGENT_WAKE) : 0;
}
