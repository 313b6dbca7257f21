#include "daemon/leader/files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/commands.h"
#include "daemon/config/config.h"
#include "daemon/leader/leader.h"
#include "daemon/node/availability_watch.h"

/* One file that is watched. */
struct file {
        struct leader_files *files;
        uint64_t job; /* 0 = the cluster's */
        bool judged;  /* it is known what it says, or that it says nothing */
        bool content; /* it said something, which is in the state or on its way there */
        struct availability_watch *watch;
        struct file *next;
};

struct leader_files {
        uint64_t last_job; /* that was looked at */
        struct rmd *rmd;
        struct file_reader *reader;
        struct file *list;
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

static void propose_job(struct file *file, const struct availability *availability, const char *error) {
        struct command c;
        Rm__CmdJobAvailability *body = command_job_availability(&c, file->job);
        struct cores_list list = make_list(availability);

        body->error = (char *) error;
        body->set = true;
        body->nodes = list.pointers;
        body->n_nodes = list.n;
        cluster_decide(file->files->rmd->cluster, &c.command);
        free_list(&list);
}

/* Its job may have waited for that. */
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
        file->next = files->list;
        files->list = file;
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
        for (const struct file *f = files->list; f; f = f->next)
                if (f->job == job)
                        return f;
        return NULL;
}

bool leader_files_unknown(const struct leader_files *files, const Rm__Job *job) {
        const struct file *file;

        if (!files || !wants_file(job) || job->available_set)
                return false;
        file = find_file(files, job->id);
        return !file || !file->judged || file->content;
}

void leader_files_check(struct leader_files *files) {
        const Rm__State *state = files ? state_of(files) : NULL;
        size_t first;

        if (!files)
                return;
        for (struct file **p = &files->list; *p;) {
                struct file *file = *p;

                if (file->job == 0 || wants_file(state_job(state, file->job))) {
                        p = &file->next;
                        continue;
                }
                *p = file->next;
                availability_watch_destroy(file->watch);
                free(file);
        }
        /* What a job asks for never changes: only those that have come since are new. */
        for (first = state->n_jobs; first > 0 && state->jobs[first - 1]->id > files->last_job;)
                first--;
        for (; first < state->n_jobs; first++) {
                files->last_job = state->jobs[first]->id;
                if (wants_file(state->jobs[first]))
                        add_file(files, state->jobs[first]);
        }
        if (files->n_nodes != state->n_nodes)
                for (struct file *f = files->list; f; f = f->next)
                        if (f->watch)
                                availability_watch_recheck(f->watch);
        files->n_nodes = state->n_nodes;
}

struct leader_files *leader_files_create(struct rmd *rmd) {
        struct leader_files *files = xcalloc(1, sizeof(*files));

        files->rmd = rmd;
        files->reader = file_reader_create(&(struct file_reader_config) { .base = rmd->base });
        add_file(files, NULL);
        leader_files_check(files);
        return files;
}

void leader_files_destroy(struct leader_files *files) {
        if (!files)
                return;
        while (files->list) {
                struct file *file = files->list;

                files->list = file->next;
                availability_watch_destroy(file->watch);
                free(file);
        }
        file_reader_destroy(files->reader);
        free(files);
}
