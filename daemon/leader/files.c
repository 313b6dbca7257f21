#include "daemon/leader/files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/log.h"
#include "common/rate.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/leader/leader.h"
#include "daemon/node/availability_watch.h"
#include "daemon/state/commands.h"

/* A user may change the files of a thousand jobs all the time, and each change is an entry of the
 * log: as many as he may cause by requests (client/account.c). */
static const struct rate_limit user_changes = { .usec_each = 20000, .burst = 1000 };

#define LATE_USEC 200000U /* from one look at those that wait to the next */

struct user {
        uint32_t uid;
        struct rate changes;
        struct user *next;
};

/* A file that is watched. */
struct file {
        struct leader_files *files;
        uint64_t job; /* 0 = the cluster's */
        bool judged; /* it is known what it says, or that it says nothing */
        bool content; /* it said something, which is in the state or on its way there */
        struct availability_watch *watch;
        Rm__Command *late; /* what it said last, if its user has to wait until that goes into the log; else NULL */
        UT_hash_handle hh;
};

struct leader_files {
        struct rmd *rmd;
        struct file_reader *reader;
        struct file *by_job;
        struct user *users;
        struct event *late; /* some may be proposed */
        size_t n_nodes; /* known when the files were last looked at */
};

static const Rm__State *state_of(const struct leader_files *files) {
        return cluster_state(files->rmd->cluster);
}

static const char *name_at(const void *names, size_t i) {
        return ((const Rm__State *) names)->nodes[i]->name;
}

static const char *find(void *userdata, const char *host) {
        const struct file *file = userdata;
        const Rm__State *state = state_of(file->files);
        int64_t i = availability_match(host, name_at, state, state->n_nodes);

        return i < 0 ? NULL : state->nodes[i]->name;
}

struct cores_list {
        Rm__NodeCores *items;
        Rm__NodeCores **pointers;
        size_t n;
};

static struct cores_list make_list(const struct availability *availability) {
        struct cores_list list = { .n = availability ? availability->n_entries : 0 };

        list.items = xcalloc(list.n, sizeof(list.items[0]));
        list.pointers = xcalloc(list.n, sizeof(list.pointers[0]));
        for (size_t i = 0; i < list.n; i++) {
                rm__node_cores__init(&list.items[i]);
                list.items[i].node = availability->entries[i].host;
                list.items[i].cores = availability->entries[i].cores;
                list.pointers[i] = &list.items[i];
        }
        return list;
}

static void free_list(struct cores_list *list) {
        free(list->items);
        free(list->pointers);
}

static void propose_cluster(struct file *file, const struct availability *availability, const char *error) {
        Rm__AvailabilityStatus status = RM__AVAILABILITY_STATUS__INIT;
        struct command c;
        Rm__CmdAvailability *body = command_availability(&c);
        struct cores_list list = make_list(availability);

        status.path = file->files->rmd->config->availability_file;
        status.error = (char *) error;
        body->status = &status;
        body->content = availability != NULL;
        body->nodes = list.pointers;
        body->n_nodes = list.n;
        cluster_decide(file->files->rmd->cluster, &c.command);
        free_list(&list);
}

static struct user *user_get(struct leader_files *files, uint32_t uid) {
        struct user *user;

        for (user = files->users; user; user = user->next)
                if (user->uid == uid)
                        return user;
        user = xcalloc(1, sizeof(*user));
        user->uid = uid;
        user->next = files->users;
        return files->users = user;
}

static void forget_late(struct file *file) {
        if (file->late)
                rm__command__free_unpacked(take_ptr(file->late), NULL);
}

/* How long the user of the job has to wait. */
static uint64_t wait_of(struct leader_files *files, const Rm__Job *job) {
        return job->spec->uid == 0 ? 0 : rate_wait_usec(&user_get(files, job->spec->uid)->changes, &user_changes, now_usec());
}

static void decide(struct leader_files *files, const Rm__Job *job, const Rm__Command *command) {
        rate_take(&user_get(files, job->spec->uid)->changes, &user_changes, now_usec(), 1);
        cluster_decide(files->rmd->cluster, command);
}

/* Now, or when its user may change something again; then only what his file said last. */
static void decide_in_time(struct file *file, const Rm__Command *command) {
        struct leader_files *files = file->files;
        const Rm__Job *job = state_job(state_of(files), file->job);

        forget_late(file);
        if (job && wait_of(files, job) > 0) {
                file->late = (Rm__Command *) message_copy(&command->base);
                if (!evtimer_pending(files->late, NULL))
                        timer_arm(files->late, LATE_USEC);
        } else if (job) {
                decide(files, job, command);
        }
}

static void on_late(evutil_socket_t fd, short what, void *userdata) {
        struct leader_files *files = userdata;
        bool more = false;

        for (struct file *file = files->by_job; file; file = file->hh.next) {
                const Rm__Job *job = file->late ? state_job(state_of(files), file->job) : NULL;

                if (job && wait_of(files, job) > 0) {
                        more = true;
                        continue;
                }
                if (job)
                        decide(files, job, file->late);
                forget_late(file);
        }
        if (more)
                timer_arm(files->late, LATE_USEC);
}

static void propose_job(struct file *file, const struct availability *availability, const char *error) {
        struct command c;
        Rm__CmdJobAvailability *body = command_job_availability(&c, file->job);
        struct cores_list list = make_list(availability);

        body->error = (char *) error;
        body->set = true;
        body->nodes = list.pointers;
        body->n_nodes = list.n;
        decide_in_time(file, &c.command);
        free_list(&list);
}

/* The job of this file may have waited for its check. */
static void on_judged(void *userdata) {
        struct file *file = userdata;

        file->judged = true;
        leader_round_soon(file->files->rmd->leader);
}

static void on_content(void *userdata, const struct availability *availability) {
        struct file *file = userdata;

        file->content = true;
        if (file->job)
                propose_job(file, availability, "");
        else
                propose_cluster(file, availability, "");
}

static void on_error(void *userdata, const char *text) {
        struct file *file = userdata;

        if (file->job)
                propose_job(file, NULL, text);
        else
                propose_cluster(file, NULL, text);
}

static const struct availability_watch_ops ops = { find, on_judged, on_content, on_error };

static void add_file(struct leader_files *files, const Rm__Job *job) {
        const struct config *config = files->rmd->config;
        struct availability_watch_config watch = {
                .path = job ? job->spec->availability_path : config->availability_file,
                .poll_usec = config->availability_poll_usec,
                .uid = job ? job->spec->uid : USER_NONE,
                .gid = job ? job->spec->gid : 0,
                .reader = files->reader,
                .was_taken = job ? job->available_set : state_of(files)->availability->path[0] != 0,
        };
        struct file *file = xcalloc(1, sizeof(*file));
        struct rm_error err = { 0 };

        file->files = files;
        file->job = job ? job->id : 0;
        HASH_ADD(hh, files->by_job, job, sizeof(file->job), file);
        if (availability_watch_create(files->rmd->base, &watch, &ops, file, &file->watch, &err) < 0) {
                log_warn("availability: %s", error_text(&err));
                file->judged = true;
                on_error(file, error_text(&err));
        }
}

static bool wants_file(const Rm__Job *job) {
        return job && !job_ended(job) && job->spec->availability_path[0];
}

static const struct file *find_file(const struct leader_files *files, uint64_t job) {
        struct file *file;

        HASH_FIND(hh, files->by_job, &job, sizeof(job), file);
        return file;
}

bool leader_files_unknown(const struct leader_files *files, const Rm__Job *job) {
        const struct file *file;

        if (!files || !wants_file(job) || job->available_set)
                return false;
        file = find_file(files, job->id);
        return !file || !file->judged || file->content;
}

static void file_free(struct leader_files *files, struct file *file) {
        HASH_DEL(files->by_job, file);
        availability_watch_destroy(file->watch);
        forget_late(file);
        free(file);
}

void leader_files_check(struct leader_files *files, bool more_jobs) {
        const Rm__State *state = files ? state_of(files) : NULL;
        struct file *file, *next;

        if (!files)
                return;
        HASH_ITER (hh, files->by_job, file, next)
                if (file->job != 0 && !wants_file(state_job(state, file->job)))
                        file_free(files, file);
        for (size_t i = 0; more_jobs && i < state->n_jobs; i++)
                if (wants_file(state->jobs[i]) && !find_file(files, state->jobs[i]->id))
                        add_file(files, state->jobs[i]);
        if (files->n_nodes != state->n_nodes)
                for (const struct file *f = files->by_job; f; f = f->hh.next)
                        if (f->watch)
                                availability_watch_recheck(f->watch);
        files->n_nodes = state->n_nodes;
}

struct leader_files *leader_files_create(struct rmd *rmd) {
        struct leader_files *files = xcalloc(1, sizeof(*files));

        files->rmd = rmd;
        files->late = evtimer_new(rmd->base, on_late, files);
        if (!files->late)
                abort();
        files->reader = file_reader_create(&(struct file_reader_config) { .base = rmd->base });
        add_file(files, NULL);
        leader_files_check(files, true);
        return files;
}

void leader_files_destroy(struct leader_files *files) {
        struct file *file, *next;

        if (!files)
                return;
        HASH_ITER (hh, files->by_job, file, next)
                file_free(files, file);
        while (files->users) {
                struct user *user = files->users;

                files->users = user->next;
                free(user);
        }
        event_free(files->late);
        file_reader_destroy(files->reader);
        free(files);
}
