/* The common part of the hosts of all kinds of plugins, and one function for each kind. */
#ifndef RM_HOST_HOST_H
#define RM_HOST_HOST_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/sched/plugin_descriptor.h"
#include "rm/plugin.h"

enum { NOBODY = 65534 };

/* A run of a plugin. This struct is the first member of what a kind keeps, so that a pointer to
 * either is a pointer to the other. */
struct host {
        const char *plugin, *directory;
        int64_t least_time_usec; /* that --time-usec may say */
        uint64_t time_usec, deadline_usec; /* the budget, and its end */
        struct rm_plugin_host offer; /* what the plugin may call */
        char said[512]; /* the last error that the plugin told */
        int answer_fd; /* the real stdout */
};

/* Reads the options of `own`, whose parser gets `host` as input, and those of all kinds: --dir and
 * --time-usec. Ends the process with status 2 where they are wrong. The budget begins here, and the
 * log can be used. */
void host_parse(struct host *host, const struct argp *own, int argc, char **argv);
/* Keeps stdout for the answer, out of reach of programs that the plugin runs. What the plugin or
 * its libraries print goes to stderr from now on. */
int host_keep_output(struct host *host, struct rm_error *err);
/* Writes why there is no answer in its place, when `r` is an error. Returns the exit status. */
int host_report(const struct host *host, int r, struct rm_error *err);

/* The callback that tells a plugin how much of the budget is left; `data` is a struct host. */
uint64_t host_left(void *data);
/* Keeps what the plugin logs as an error, because that is why it fails. False: it is for the
 * log. */
bool host_keep_error(struct host *host, enum rm_plugin_level level, const char *text);

/* Loads the plugin for the rest of the process, and calls its create(), which it need not have. */
int host_load(struct host *host, const struct plugin_kind *kind, const struct rm_plugin **ret_head, void **ret_self,
              struct rm_error *err);
/* Calls destroy(), after the call of the plugin's kind has returned `r`. 0 if `r` is 0; else an
 * error with what the plugin said. */
int host_unload(const struct host *host, const struct plugin_kind *kind, const struct rm_plugin *head, void *self, int r,
                struct rm_error *err);

/* A run of each kind, from the options after --kind to the exit status. */
int host_run_policy(int argc, char **argv);
int host_run_sensor(int argc, char **argv);
int host_run_fence(int argc, char **argv);

#endif
