/* The verbs of rmctl: one table, and what a verb gets to work with. */
#ifndef RM_LAUNCHER_RMCTL_VERB_H
#define RM_LAUNCHER_RMCTL_VERB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/hostlist.h"
#include "launcher/client/client.h"
#include "launcher/rmctl/table.h"

#define CALL_MAX_FLAGS 8

enum role {
        ROLE_ANYONE,
        ROLE_OWNER, /* of the job, or an administrator */
        ROLE_ADMIN,
};

/* An option of a verb. */
struct flag {
        const char *name;  /* without dashes; NULL ends a list */
        const char *value; /* how help calls its value, NULL: it has none */
        const char *help;
};

struct call;

struct verb {
        const char *name;
        const char *args; /* how help calls the arguments, "" for none */
        size_t min_args;
        size_t max_args;
        enum role role;
        const char *help; /* the first line is the summary */
        struct flag flags[CALL_MAX_FLAGS];
        int (*run)(struct call *call);
};

/* A use of a verb. */
struct call {
        const struct verb *verb;
        char **args;
        size_t n_args;
        const char *values[CALL_MAX_FLAGS]; /* of the verb's flags: NULL not given, "" given without a value */
        bool json;
        bool header;
        bool colours;
        size_t width; /* of the terminal, 0: not one */
        struct client *client; /* opened by call_request() */
        bool usage;            /* the error is how it was called */
        struct rm_error err;
};

/* All verbs, in the order of the help. */
extern const struct verb *const verbs[];
extern const size_t n_verbs;
/* NULL when there is none of that name. */
const struct verb *verb_find(const char *name);
/* The nearest name, or NULL when nothing is near. */
const char *verb_guess(const char *name);

/* A verb returns 0, a positive exit code, or a negative errno with call->err set. */

/* The value of a flag, NULL when it was not given. */
const char *call_flag(const struct call *call, const char *name);
/* The value of a flag that is a time; `ret` is left alone when it was not given. */
int call_duration(struct call *call, const char *name, uint64_t *ret_usec);
/* Refuse the way it was called. Returns a negative errno. */
int call_usage(struct call *call, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The arguments as host lists, as job numbers. `ret_jobs` is malloc'ed, n_args long. */
int call_hosts(struct call *call, struct hostlist *ret_hosts);
int call_jobs(struct call *call, uint64_t **ret_jobs);
int call_job(struct call *call, uint64_t *ret_job);

/* Asks rmd by the request with this body for a reply of that kind; opens the connection first when
 * there is none. */
int call_connect(struct call *call);
int call_request(struct call *call, const ProtobufCMessage *body, Rm__LocalReply__BodyCase kind, Rm__LocalReply **ret_reply);
/* As call_request() for an Ok, whose text, if any, is printed. */
int call_request_ok(struct call *call, const ProtobufCMessage *body, uint64_t *ret_id);
/* rmd may be restarted while we wait for something; drop the connection, so that the next request
 * makes a new one. */
void call_disconnect(struct call *call);

/* Print `value` with "version": 1 in front; takes it over. An object is extended, anything else
 * stands under `name`. */
void call_print_json(const char *name, json_t *value);
/* A repeated field as JSON under `name`. */
void call_print_list(const char *name, ProtobufCMessage *const *messages, size_t n);
/* Prints and destroys. */
void call_print_table(struct call *call, struct table *table);
/* Prints a "key: value" line, in step with its like. `text` NULL or "": "-". */
void call_print_key(const char *key, const char *text);
/* Takes over a malloc'ed text. */
void call_take_key(const char *key, char *text);
/* A state, coloured. */
void call_state_key(const struct call *call, const char *key, const char *state);

/* Sleep between two looks at something that is waited for; false when `deadline_usec` (0: none) has
 * passed. */
bool call_pause(uint64_t deadline_usec);
/* Looks whether a thing has come: 1 it has, 0 it has not yet, or a negative errno. */
typedef int call_scan_fn(struct call *call, void *arg);
/* Looks until it has come, or `timeout_usec` (0: none) has passed; returns what the last look has.
 * rmd may be restarted meanwhile, and is missed for a minute. */
int call_await(struct call *call, call_scan_fn *scan, void *arg, uint64_t timeout_usec);
/* A line of progress on a terminal, which the next one replaces; "" takes it away. */
void call_progress(const char *text);

extern const struct verb verb_list_nodes, verb_show_node, verb_drain_node, verb_resume_node, verb_remove_node, verb_report_health;
extern const struct verb verb_list_jobs, verb_show_job, verb_cancel_job, verb_attach_job, verb_migrate_job, verb_resize_job;
extern const struct verb verb_list_moves, verb_status, verb_events, verb_snapshot, verb_plan, verb_list_policies, verb_confirm_lost,
        verb_help, verb_doctor, verb_web;
extern const struct verb verb_drill, verb_checkpoint_job, verb_restart_job, verb_list_checkpoints, verb_verify_checkpoint,
        verb_remove_checkpoint, verb_export_checkpoint, verb_import_checkpoint;
extern const struct verb verb_show_portable, verb_verify_portable, verb_merge_portable;

#endif
