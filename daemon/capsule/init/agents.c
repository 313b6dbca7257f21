#include "daemon/capsule/init/agents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/agent_request.h"
#include "daemon/capsule/init/ctl.h"
#include "daemon/capsule/init/init.h"

struct agent {
        LIST_ENTRY(agent) entry;
        struct agents *agents;
        struct source alive; /* pidfd */
        char id[AGENT_ID_MAX];
        char *text;
        struct agent_request request; /* points into text */
        bool answered;
};

/* Who writes nonsense into the directory is not to fill the log with it. */
enum { REFUSALS_TOLD = 5, REFUSALS_USEC = 60 * 1000000 };

struct agents {
        struct init *init;
        uint64_t refused_since_usec; /* of the counts */
        unsigned refused_told, refused_untold;
        LIST_HEAD(, agent) list;
        size_t count;
        int dir_fd;
        struct source wake;
};

static void report(struct agent *agent) {
        Capsule__Event event = CAPSULE__EVENT__INIT;
        Capsule__AgentRequest request = CAPSULE__AGENT_REQUEST__INIT;

        request.id = agent->id;
        request.host = (char *) agent->request.host;
        request.command = (char *) agent->request.command;
        event.event_case = CAPSULE__EVENT__EVENT_AGENT_REQUEST;
        event.agent_request = &request;
        ctl_send(agent->agents->init->ctl, &event);
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
        LIST_REMOVE(agent, entry);
        agent->agents->count--;
        source_remove(agent->agents->init->epoll_fd, &agent->alive);
        close(agent->alive.fd);
        free(agent->text);
        free(agent);
}

static void on_death(struct source *source, uint32_t events) {
        struct agent *agent = source->data;
        struct init *init = agent->agents->init;
        Capsule__Event event = CAPSULE__EVENT__INIT;
        Capsule__AgentGone gone = CAPSULE__AGENT_GONE__INIT;

        (void) events;
        remove_files(agent->agents, agent->id);
        if (!agent->answered) {
                gone.id = agent->id;
                event.event_case = CAPSULE__EVENT__EVENT_AGENT_GONE;
                event.agent_gone = &gone;
                ctl_send(init->ctl, &event);
        }
        forget(agent);
}

/* The directory is the user's: what is opened there must be of the kind expected, and the user's own. */
static int open_entry(struct agents *agents, const char *file, int flags, mode_t kind) {
        cleanup_close int fd = openat(agents->dir_fd, file, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if ((st.st_mode & S_IFMT) != kind || st.st_uid != agents->init->spec->uid)
                return -EPERM;
        return take_fd(&fd);
}

static int read_request(struct agents *agents, const char *file, char **ret_text, struct agent_request *ret) {
        cleanup_close int fd = open_entry(agents, file, O_RDONLY, S_IFREG);
        cleanup_free char *text = NULL;
        struct stat st;
        ssize_t n;
        int r;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0 || st.st_size > AGENT_REQUEST_MAX)
                return -EMSGSIZE;
        text = xcalloc(1, (size_t) st.st_size + 1);
        n = pread(fd, text, (size_t) st.st_size, 0);
        r = agent_request_parse(text, n > 0 ? (size_t) n : 0, ret);
        if (r == 0)
                *ret_text = take_ptr(text);
        return r;
}

static struct agent *find(struct agents *agents, const char *id) {
        struct agent *agent;

        LIST_FOREACH (agent, &agents->list, entry)
                if (strcmp(agent->id, id) == 0)
                        return agent;
        return NULL;
}

static void tell_refusal(struct agents *agents, const char *file, int r) {
        uint64_t now = now_usec();

        if (now - agents->refused_since_usec >= REFUSALS_USEC) {
                if (agents->refused_untold > 0)
                        log_warn("%u more requests of rm-agent were refused", agents->refused_untold);
                agents->refused_told = agents->refused_untold = 0;
                agents->refused_since_usec = now;
        }
        if (agents->refused_told < REFUSALS_TOLD) {
                agents->refused_told++;
                log_warn("rm-agent's request %s is refused: %s", file, strerror(-r));
        } else
                agents->refused_untold++;
}

static void learn(struct agents *agents, const char *file, const char *id, pid_t pid) {
        struct agent_request request;
        struct agent *agent;
        char *text = NULL;
        int pidfd;
        int r = agents->count < AGENT_REQUESTS_MAX ? read_request(agents, file, &text, &request) : -EUSERS;

        if (r < 0) {
                tell_refusal(agents, file, r);
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
        agent->request = request;
        snprintf(agent->id, sizeof(agent->id), "%s", id);
        agent->alive = (struct source) { .fd = pidfd, .fn = on_death, .data = agent };
        LIST_INSERT_HEAD(&agents->list, agent, entry);
        agents->count++;
        (void) source_add(agents->init->epoll_fd, &agent->alive, EPOLLIN);
        report(agent);
}

void agents_scan(struct agents *agents, bool all) {
        int fd = openat(agents->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct agent *agent;
        struct dirent *entry;
        char id[AGENT_ID_MAX];
        pid_t pid;

        if (all)
                LIST_FOREACH (agent, &agents->list, entry)
                        if (!agent->answered)
                                report(agent);
        while (dir && (entry = readdir(dir)))
                if (agent_file_parse(entry->d_name, id, &pid) && !find(agents, id))
                        learn(agents, entry->d_name, id, pid);
        if (dir)
                closedir(dir);
}

static void on_wake(struct source *source, uint32_t events) {
        struct agents *agents = source->data;
        char buffer[4096];

        (void) events;
        (void) read(source->fd, buffer, sizeof(buffer));
        /* While the payload is being restored, its requests are not complete; open() looks again. */
        if (agents->init->phase == CAPSULE__PHASE__PHASE_RUNNING)
                agents_scan(agents, false);
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

/* Before the payload is there, so that nothing in the directory is the user's yet. */
static int open_wake(const struct init *init, struct rm_error *error) {
        int fd;

        if (mkfifo(AGENT_WAKE, 0600) < 0 || chown(AGENT_WAKE, init->spec->uid, init->spec->gid) < 0)
                return error_sys(error, -errno, "cannot make " AGENT_WAKE);
        /* For both directions: it never reports an end. */
        fd = open(AGENT_WAKE, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        return fd < 0 ? error_sys(error, -errno, "cannot open " AGENT_WAKE) : fd;
}

int agents_create(struct init *init, struct agents **ret, struct rm_error *error) {
        struct agents *agents = xcalloc(1, sizeof(*agents));

        *ret = agents; /* lives as long as the process */
        agents->init = init;
        LIST_INIT(&agents->list);
        agents->dir_fd = open(AGENT_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (agents->dir_fd < 0)
                return error_sys(error, -errno, "cannot open " AGENT_DIR);
        agents->wake = (struct source) { .fd = open_wake(init, error), .fn = on_wake, .data = agents };
        if (agents->wake.fd < 0)
                return agents->wake.fd;
        return source_add(init->epoll_fd, &agents->wake, EPOLLIN) < 0 ? error_sys(error, -errno, "cannot watch " AGENT_WAKE) : 0;
}
