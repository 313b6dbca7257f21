#include "daemon/client/users.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"

#define KNOWN_USEC UINT64_C(60000000) /* a user who leaves the administrators' group is none a minute later */
#define ANSWER_USEC UINT64_C(2000000) /* a client waits that long for its hello to be answered */
#define AGAIN_USEC UINT64_C(10000000)
/* Far more than have connections at a time; the oldest is forgotten. */
#define ENTRIES_MAX 4096U
#define GROUPS_MAX 1024
#define BUFFER_BYTES 65536U /* of one line of the data base; a group may have thousands of members */

enum entry_state {
        ENTRY_ASKED,
        ENTRY_KNOWN,
        ENTRY_LATE, /* no answer in time; it is taken when it comes after all */
};

struct entry {
        uid_t uid;
        gid_t gid;
        enum entry_state state;
        uint64_t since_usec; /* when it came into that state */
        bool outstanding; /* the thread has been asked and has not answered */
        struct user user;
        TAILQ_ENTRY(entry) place;
};

/* A look-up: to the thread and back. */
struct question {
        uid_t uid;
        gid_t gid;
        struct user user;
        STAILQ_ENTRY(question) next;
};
STAILQ_HEAD(question_list, question);

/* The data that the thread and the loop share. It outlives the loop's part while the thread hangs
 * in a look-up. */
struct desk {
        pthread_mutex_t lock;
        pthread_cond_t asked;
        struct question_list questions;
        struct question_list answers;
        char *admin_group;
        int answered_fd;
        bool busy;
        bool closing;
};

struct users {
        struct desk *desk;
        struct event *answered;
        struct event *late;
        users_changed_fn on_changed;
        void *userdata;
        TAILQ_HEAD(entry_list, entry) entries; /* oldest first */
        unsigned n_entries;
        unsigned n_outstanding;
        bool started; /* the thread */
};

/* ---- the thread: may block ---- */

static bool in_group(const char *user, gid_t gid, const char *name) {
        cleanup_free char *buffer = xcalloc(1, BUFFER_BYTES);
        struct group group;
        struct group *found = NULL;

        if (!name[0] || getgrnam_r(name, &group, buffer, BUFFER_BYTES, &found) != 0 || !found)
                return false;
        if (found->gr_gid == gid)
                return true;
        for (char **member = found->gr_mem; *member; member++)
                if (strcmp(*member, user) == 0)
                        return true;
        return false;
}

static void look_up(struct question *q, const char *admin_group) {
        cleanup_free char *buffer = xcalloc(1, BUFFER_BYTES);
        struct passwd entry;
        struct passwd *found = NULL;
        struct user *user = &q->user;
        gid_t gid = q->gid;
        int n = GROUPS_MAX;

        if (getpwuid_r(q->uid, &entry, buffer, BUFFER_BYTES, &found) == 0 && found)
                (void) snprintf(user->name, sizeof(user->name), "%s", found->pw_name);
        else
                (void) snprintf(user->name, sizeof(user->name), "%u", (unsigned) q->uid);
        if (gid == USERS_PRIMARY_GROUP && found)
                gid = found->pw_gid;
        user->admin = q->uid == 0 || in_group(user->name, gid, admin_group);
        user->groups = xcalloc(GROUPS_MAX, sizeof(gid_t));
        if (gid == USERS_PRIMARY_GROUP)
                return;
        /* Over the limit, or unknown to the data base: the primary group alone. */
        if (getgrouplist(user->name, gid, user->groups, &n) < 0) {
                user->groups[0] = gid;
                n = 1;
        }
        user->n_groups = (size_t) n;
        user->groups = xrealloc(user->groups, user->n_groups * sizeof(gid_t));
}

static void drop_questions(struct question_list *list) {
        struct question *q;

        while ((q = STAILQ_FIRST(list))) {
                STAILQ_REMOVE_HEAD(list, next);
                free(q->user.groups);
                free(q);
        }
}

static void desk_free(struct desk *desk) {
        drop_questions(&desk->questions);
        drop_questions(&desk->answers);
        (void) pthread_cond_destroy(&desk->asked);
        (void) pthread_mutex_destroy(&desk->lock);
        (void) close(desk->answered_fd);
        free(desk->admin_group);
        free(desk);
}

static void answer(struct desk *desk, struct question *q) {
        const uint64_t one = 1;

        desk->busy = true;
        (void) pthread_mutex_unlock(&desk->lock);
        look_up(q, desk->admin_group);
        (void) pthread_mutex_lock(&desk->lock);
        desk->busy = false;
        STAILQ_INSERT_TAIL(&desk->answers, q, next);
        (void) !write(desk->answered_fd, &one, sizeof(one));
}

static void *serve(void *arg) {
        struct desk *desk = arg;
        struct question *q;

        (void) pthread_mutex_lock(&desk->lock);
        while (!desk->closing) {
                q = STAILQ_FIRST(&desk->questions);
                if (!q) {
                        (void) pthread_cond_wait(&desk->asked, &desk->lock);
                        continue;
                }
                STAILQ_REMOVE_HEAD(&desk->questions, next);
                answer(desk, q);
        }
        (void) pthread_mutex_unlock(&desk->lock);
        desk_free(desk);
        return NULL;
}

/* Signals are the loop's. Detached: a look-up that hangs is not waited for. */
static int start_thread(struct desk *desk) {
        sigset_t all, before;
        pthread_t thread;
        int r;

        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread, NULL, serve, desk);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r == 0)
                (void) pthread_detach(thread);
        return -r;
}

/* ---- the loop ---- */

static struct entry *find(struct users *users, uid_t uid, gid_t gid) {
        struct entry *entry;

        TAILQ_FOREACH (entry, &users->entries, place)
                if (entry->uid == uid && entry->gid == gid)
                        return entry;
        return NULL;
}

static void forget(struct users *users, struct entry *entry) {
        TAILQ_REMOVE(&users->entries, entry, place);
        users->n_entries--;
        free(entry->user.groups);
        free(entry);
}

static void take_answer(struct users *users, struct question *q) {
        struct entry *entry = find(users, q->uid, q->gid);

        users->n_outstanding--;
        if (entry) {
                entry->outstanding = false;
                free(entry->user.groups);
                entry->user = q->user;
                q->user.groups = NULL;
                entry->state = ENTRY_KNOWN;
                entry->since_usec = now_usec();
        }
        free(q->user.groups);
        free(q);
}

static void on_answered(evutil_socket_t fd, short what, void *arg) {
        struct users *users = arg;
        struct question_list answers = STAILQ_HEAD_INITIALIZER(answers);
        struct question *q;
        uint64_t n;

        (void) !read(fd, &n, sizeof(n));
        (void) pthread_mutex_lock(&users->desk->lock);
        STAILQ_CONCAT(&answers, &users->desk->answers);
        (void) pthread_mutex_unlock(&users->desk->lock);
        while ((q = STAILQ_FIRST(&answers))) {
                STAILQ_REMOVE_HEAD(&answers, next);
                take_answer(users, q);
        }
        users->on_changed(users->userdata);
}

static void on_late(evutil_socket_t fd, short what, void *arg) {
        struct users *users = arg;
        uint64_t now = now_usec();
        unsigned late = 0, waiting = 0;
        struct entry *entry;

        TAILQ_FOREACH (entry, &users->entries, place) {
                if (entry->state != ENTRY_ASKED)
                        continue;
                if (now - entry->since_usec < ANSWER_USEC) {
                        waiting++;
                        continue;
                }
                entry->state = ENTRY_LATE;
                entry->since_usec = now;
                late++;
        }
        if (waiting > 0)
                timer_arm(users->late, ANSWER_USEC / 8);
        if (late == 0)
                return;
        log_warn("the user data base does not answer (%u users asked for): they are numbers, and no administrators", late);
        users->on_changed(users->userdata);
}

static void ask(struct users *users, struct entry *entry) {
        struct desk *desk = users->desk;
        struct question *q;

        entry->state = ENTRY_ASKED;
        entry->since_usec = now_usec();
        if (!evtimer_pending(users->late, NULL))
                timer_arm(users->late, ANSWER_USEC / 8);
        /* A thread that hangs has a queue that does not grow. */
        if (entry->outstanding || users->n_outstanding >= ENTRIES_MAX)
                return;
        entry->outstanding = true;
        users->n_outstanding++;
        q = xcalloc(1, sizeof(*q));
        q->uid = entry->uid;
        q->gid = entry->gid;
        if (!users->started && start_thread(desk) == 0)
                users->started = true;
        (void) pthread_mutex_lock(&desk->lock);
        STAILQ_INSERT_TAIL(&desk->questions, q, next);
        (void) pthread_cond_signal(&desk->asked);
        (void) pthread_mutex_unlock(&desk->lock);
}

static struct entry *remember(struct users *users, uid_t uid, gid_t gid) {
        struct entry *entry = xcalloc(1, sizeof(*entry));

        if (users->n_entries >= ENTRIES_MAX)
                forget(users, TAILQ_FIRST(&users->entries));
        entry->uid = uid;
        entry->gid = gid;
        TAILQ_INSERT_TAIL(&users->entries, entry, place);
        users->n_entries++;
        return entry;
}

int users_find(struct users *users, uid_t uid, gid_t gid, const struct user **ret_user) {
        struct entry *entry = find(users, uid, gid);
        uint64_t age = entry ? now_usec() - entry->since_usec : 0;

        if (!entry) {
                entry = remember(users, uid, gid);
                ask(users, entry);
        } else if ((entry->state == ENTRY_KNOWN && age >= KNOWN_USEC) || (entry->state == ENTRY_LATE && age >= AGAIN_USEC)) {
                ask(users, entry);
        }
        /* Root is served with what was true before. */
        if (entry->state != ENTRY_KNOWN && (uid != 0 || !entry->user.groups))
                return entry->state == ENTRY_ASKED ? -EAGAIN : -ETIMEDOUT;
        *ret_user = &entry->user;
        return 0;
}

struct users *users_create(struct event_base *base, const char *admin_group, users_changed_fn on_changed, void *userdata) {
        struct users *users = xcalloc(1, sizeof(*users));
        struct desk *desk = xcalloc(1, sizeof(*desk));

        users->desk = desk;
        users->on_changed = on_changed;
        users->userdata = userdata;
        TAILQ_INIT(&users->entries);
        STAILQ_INIT(&desk->questions);
        STAILQ_INIT(&desk->answers);
        desk->admin_group = xstrdup(admin_group);
        desk->answered_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (desk->answered_fd < 0 || pthread_mutex_init(&desk->lock, NULL) != 0 || pthread_cond_init(&desk->asked, NULL) != 0)
                abort();
        users->answered = event_new(base, desk->answered_fd, EV_READ | EV_PERSIST, on_answered, users);
        users->late = evtimer_new(base, on_late, users);
        if (!users->answered || !users->late || event_add(users->answered, NULL) < 0)
                abort();
        return users;
}

void users_destroy(struct users *users) {
        struct desk *desk;

        if (!users)
                return;
        event_free(users->answered);
        event_free(users->late);
        while (!TAILQ_EMPTY(&users->entries))
                forget(users, TAILQ_FIRST(&users->entries));
        desk = users->desk;
        (void) pthread_mutex_lock(&desk->lock);
        desk->closing = true;
        (void) pthread_cond_signal(&desk->asked);
        (void) pthread_mutex_unlock(&desk->lock);
        /* The thread clears the desk when it comes back to it. */
        if (!users->started)
                desk_free(desk);
        free(users);
}
