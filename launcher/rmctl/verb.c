#include "launcher/rmctl/verb.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"
#include "launcher/client/suggest.h"
#include "launcher/rmctl/human.h"
#include "proto/json.h"

#define KEY_COLUMNS 16
#define PAUSE_USEC 100000U
/* rmd may be restarted while a command waits, on a drained node above all. */
#define AWAY_USEC (60U * 1000000U)
/* A longer line would be wrapped on the narrowest usual terminal, and could not be taken away. */
#define PROGRESS_COLUMNS 79U

const struct verb *const verbs[] = {
        &verb_status,
        &verb_list_nodes,
        &verb_show_node,
        &verb_drain_node,
        &verb_resume_node,
        &verb_report_health,
        &verb_remove_node,
        &verb_list_jobs,
        &verb_show_job,
        &verb_cancel_job,
        &verb_attach_job,
        &verb_migrate_job,
        &verb_resize_job,
        &verb_list_moves,
        &verb_checkpoint_job,
        &verb_drill,
        &verb_restart_job,
        &verb_list_checkpoints,
        &verb_verify_checkpoint,
        &verb_remove_checkpoint,
        &verb_export_checkpoint,
        &verb_import_checkpoint,
        &verb_show_portable,
        &verb_verify_portable,
        &verb_merge_portable,
        &verb_events,
        &verb_snapshot,
        &verb_plan,
        &verb_list_policies,
        &verb_doctor,
        &verb_web,
        &verb_confirm_lost,
        &verb_help,
};
const size_t n_verbs = ARRAY_SIZE(verbs);

const struct verb *verb_find(const char *name) {
        for (size_t i = 0; i < n_verbs; i++)
                if (strcmp(verbs[i]->name, name) == 0)
                        return verbs[i];
        return NULL;
}

const char *verb_guess(const char *name) {
        const char *best = NULL;
        size_t best_distance = strlen(name) / 3 + 2;

        for (size_t i = 0; i < n_verbs; i++) {
                size_t distance = suggest_distance(name, verbs[i]->name);
                size_t n = strlen(name);

                /* "nodes" and "list" are nearer to list-nodes than any count of letters says. */
                if (n >= 4 && strstr(verbs[i]->name, name))
                        distance = 1;
                if (distance >= best_distance)
                        continue;
                best = verbs[i]->name;
                best_distance = distance;
        }
        return best;
}

/* ---- arguments ---- */

const char *call_flag(const struct call *call, const char *name) {
        for (size_t i = 0; i < CALL_MAX_FLAGS && call->verb->flags[i].name; i++)
                if (strcmp(call->verb->flags[i].name, name) == 0)
                        return call->values[i];
        abort(); /* the verb asks for a flag it has not declared */
}

int call_usage(struct call *call, const char *fmt, ...) {
        cleanup_free char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        text = xvasprintf(fmt, ap);
        va_end(ap);
        call->usage = true;
        return error_set(&call->err, -EINVAL, "%s", text);
}

int call_duration(struct call *call, const char *name, uint64_t *ret_usec) {
        const char *value = call_flag(call, name);

        if (!value)
                return 0;
        if (parse_duration_usec(value, ret_usec) < 0 || *ret_usec == 0)
                return call_usage(call, "--%s: '%s' is not a time (as 90, 90s, 5m, 2h)", name, value);
        return 0;
}

int call_hosts(struct call *call, struct hostlist *ret_hosts) {
        struct hostlist hosts = { 0 };

        for (size_t i = 0; i < call->n_args; i++) {
                int r = hostlist_expand(&hosts, call->args[i], &call->err);

                if (r < 0) {
                        hostlist_finish(&hosts);
                        call->usage = true;
                        return r;
                }
        }
        *ret_hosts = hosts;
        return 0;
}

int call_jobs(struct call *call, uint64_t **ret_jobs) {
        cleanup_free uint64_t *jobs = xcalloc(call->n_args, sizeof(*jobs));

        for (size_t i = 0; i < call->n_args; i++) {
                int64_t number = 0;

                if (parse_i64(call->args[i], 1, INT64_MAX, &number) < 0)
                        return call_usage(call, "'%s' is not a job's number (see 'rmctl list-jobs')", call->args[i]);
                jobs[i] = (uint64_t) number;
        }
        *ret_jobs = take_ptr(jobs);
        return 0;
}

int call_job(struct call *call, uint64_t *ret_job) {
        cleanup_free uint64_t *jobs = NULL;
        int r = call_jobs(call, &jobs);

        if (r == 0)
                *ret_job = jobs[0];
        return r;
}

/* ---- asking ---- */

int call_connect(struct call *call) {
        return call->client ? 0 : client_open("rmctl", &call->client, &call->err);
}

void call_disconnect(struct call *call) {
        client_close(call->client);
        call->client = NULL;
}

int call_request(struct call *call, const ProtobufCMessage *body, Rm__LocalReply__BodyCase kind, Rm__LocalReply **ret_reply) {
        int r = call_connect(call);

        if (r == 0)
                r = client_request(call->client, body, kind, ret_reply, &call->err);
        if (r == CLIENT_NO_DAEMON)
                call_disconnect(call);
        return r;
}

int call_request_ok(struct call *call, const ProtobufCMessage *body, uint64_t *ret_id) {
        Rm__LocalReply *reply = NULL;
        int r = call_request(call, body, RM__LOCAL_REPLY__BODY_OK, &reply);

        if (r < 0)
                return r;
        if (*reply->ok->text && !call->json)
                (void) puts(reply->ok->text);
        if (ret_id)
                *ret_id = reply->ok->id;
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

bool call_pause(uint64_t deadline_usec) {
        struct timespec pause = { .tv_nsec = PAUSE_USEC * 1000L };

        if (deadline_usec > 0 && now_usec() >= deadline_usec)
                return false;
        (void) nanosleep(&pause, NULL);
        return true;
}

int call_await(struct call *call, call_scan_fn *scan, void *arg, uint64_t timeout_usec) {
        uint64_t seen_usec = now_usec(), deadline_usec = timeout_usec ? seen_usec + timeout_usec : 0;
        int r;

        do {
                r = scan(call, arg);
                if (r == 0)
                        seen_usec = now_usec();
                else if (r != CLIENT_NO_DAEMON || now_usec() > seen_usec + AWAY_USEC)
                        break;
        } while (call_pause(deadline_usec));
        call_progress("");
        return r;
}

void call_progress(const char *text) {
        cleanup_free char *clean = NULL, *cut = NULL;

        if (isatty(STDERR_FILENO) != 1)
                return;
        clean = human_clean(text);
        cut = human_cut(clean, PROGRESS_COLUMNS);
        (void) fprintf(stderr, "\r\033[K%s", cut);
        (void) fflush(stderr);
}

/* ---- answering ---- */

void call_print_json(const char *name, json_t *value) {
        json_t *root = json_object();

        (void) json_object_set_new(root, "version", json_integer(1));
        if (name) {
                (void) json_object_set_new(root, name, value);
        } else {
                (void) json_object_update(root, value);
                json_decref(value);
        }
        (void) json_dumpf(root, stdout, JSON_INDENT(2));
        (void) putchar('\n');
        json_decref(root);
}

void call_print_list(const char *name, ProtobufCMessage *const *messages, size_t n) {
        json_t *array = json_array();

        for (size_t i = 0; i < n; i++)
                (void) json_array_append_new(array, json_from_message(messages[i]));
        call_print_json(name, array);
}

void call_print_table(struct call *call, struct table *table) {
        table_print(table, stdout, call->width, call->header, call->colours);
        table_destroy(table);
}

void call_print_key(const char *key, const char *text) {
        cleanup_free char *clean = human_clean(text && *text ? text : "-");

        (void) printf("%s:%*s%s\n", key, (int) (KEY_COLUMNS > strlen(key) ? KEY_COLUMNS - strlen(key) : 1), "", clean);
}

void call_take_key(const char *key, char *text) {
        call_print_key(key, text);
        free(text);
}

void call_state_key(const struct call *call, const char *key, const char *state) {
        enum colour colour = call->colours ? colour_of_state(state) : COLOUR_NONE;

        (void) printf("%s:%*s%s%s%s\n", key, (int) (KEY_COLUMNS - strlen(key)), "", colour_begin(colour), state,
                      colour_end(colour));
}
