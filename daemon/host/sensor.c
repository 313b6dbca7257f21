/*
 * Sensors: the host asks one once, and may also write too much without harm. rmd kills the host,
 * and its process group, when its time is over.
 *
 *      rm-plugin-host --kind sensor --plugin NAME [--dir DIR] [--user USER]
 *                     [--args TEXT] [--root DIR] [--time-usec T]
 *
 * The host tells on stdout, as JSON, what daemon/sensor/answer.h describes, or in one line why
 * there is no answer. Before it loads the plugin it becomes USER, nobody by default.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <math.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/text.h"
#include "common/util.h"
#include "daemon/host/host.h"
#include "rm/sensor.h"

#define READING_MIN_BYTES (offsetof(struct rm_sensor_reading, at_high) + sizeof(((struct rm_sensor_reading *) 0)->at_high))

static const struct plugin_kind kind = { RM_SENSOR_KIND, RM_SENSOR_ABI, "read", offsetof(struct rm_sensor_plugin, read) };

enum { LOG_LINES_MAX = 20, LOG_LINE_BYTES = 400 };

struct context {
        struct host host;
        const char *user;
        struct rm_sensor_request request;
        json_t *readings, *log;
        int status; /* -1: none was told */
        char text[RM_SENSOR_TEXT_BYTES];
};

enum { KEY_ROOT = 256 };

static const struct argp_option options[] = {
        { "plugin", 'p', "NAME", 0, "Sensor to ask", 0 },
        { "user", 'u', "NAME", 0, "Become this user (default nobody)", 0 },
        { "args", 'a', "TEXT", 0, "What [sensors] NAME_args says", 0 },
        { "root", KEY_ROOT, "DIR", 0, "Read DIR/sys and DIR/proc instead of /sys and /proc", 0 },
        { 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct context *context = state->input;

        switch (key) {
        case 'p':
                context->host.plugin = arg;
                return 0;
        case 'u':
                context->user = arg;
                return 0;
        case 'a':
                context->request.args = arg;
                return 0;
        case KEY_ROOT:
                context->request.root = arg;
                return 0;
        case ARGP_KEY_END:
                if (!context->host.plugin)
                        argp_error(state, "--plugin NAME is needed");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

/* ---- what the plugin may call ---- */

static void on_log(void *data, enum rm_plugin_level level, const char *text) {
        struct context *context = data;
        char line[LOG_LINE_BYTES];

        (void) text_escape(text ? text : "", line, sizeof(line));
        if (!host_keep_error(&context->host, level, line) && json_array_size(context->log) < LOG_LINES_MAX)
                (void) json_array_append_new(context->log, json_pack("{s:i, s:s}", "level", (int) level, "text", line));
}

static bool is_reported(const struct context *context, const char *name) {
        const json_t *reading;
        size_t i;

        json_array_foreach(context->readings, i,
                           reading) if (strcmp(json_string_value(json_object_get(reading, "name")), name) == 0) return true;
        return false;
}

static bool is_bad_status(enum rm_sensor_status status) {
        return status >= RM_SENSOR_WARN && status <= RM_SENSOR_CRITICAL;
}

static int on_reading(void *data, const struct rm_sensor_reading *reading) {
        struct context *context = data;
        char name[RM_SENSOR_NAME_BYTES], unit[RM_SENSOR_UNIT_BYTES];
        json_t *object;

        if (!reading || reading->size < READING_MIN_BYTES || !reading->name || !isfinite(reading->value) ||
            !is_bad_status(reading->at_low) || !is_bad_status(reading->at_high))
                return -EINVAL;
        if (json_array_size(context->readings) >= RM_SENSOR_READINGS_MAX)
                return -E2BIG;
        (void) text_escape(reading->name, name, sizeof(name));
        (void) text_escape(reading->unit ? reading->unit : "", unit, sizeof(unit));
        if (!*name || is_reported(context, name))
                return -EINVAL;
        object = json_pack("{s:s, s:s, s:f, s:i, s:i, s:i}", "name", name, "unit", unit, "value", reading->value, "flags",
                           (int) (reading->flags & (RM_SENSOR_COUNTER | RM_SENSOR_FIXED)), "at_low", (int) reading->at_low,
                           "at_high", (int) reading->at_high);
        if (isfinite(reading->low_threshold))
                (void) json_object_set_new(object, "low", json_real(reading->low_threshold));
        if (isfinite(reading->high_threshold))
                (void) json_object_set_new(object, "high", json_real(reading->high_threshold));
        return json_array_append_new(context->readings, object) < 0 ? -ENOMEM : 0;
}

static int on_status(void *data, enum rm_sensor_status status, const char *text) {
        struct context *context = data;

        if (status > RM_SENSOR_UNKNOWN)
                return -EINVAL;
        context->status = (int) status;
        (void) text_escape(text ? text : "", context->text, sizeof(context->text));
        return 0;
}

/* ---- the run ---- */

static int become(const char *name, struct rm_error *err) {
        uid_t uid = NOBODY;
        gid_t gid = NOBODY;

        if (geteuid() != 0 || strcmp(name, "root") == 0)
                return 0;
        if (strcmp(name, "nobody") == 0) {
                if (setgroups(0, NULL) < 0)
                        return error_sys(err, -errno, "leaving groups");
        } else {
                const struct passwd *user = getpwnam(name);

                if (!user)
                        return error_set(err, -ENOENT, "no user '%s'", name);
                uid = user->pw_uid;
                gid = user->pw_gid;
                if (initgroups(name, gid) < 0)
                        return error_sys(err, -errno, "groups of user '%s'", name);
        }
        if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
                return error_sys(err, -errno, "becoming user '%s'", name);
        return 0;
}

/* The output of a plugin and its libraries is dropped: it could fill the log. */
static int be_silent(struct rm_error *err) {
        cleanup_close int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
                return error_sys(err, -errno, "/dev/null");
        return 0;
}

static int ask(struct context *context, struct rm_error *err) {
        const struct rm_plugin *head = NULL;
        void *self = NULL;
        int r = host_load(&context->host, &kind, &head, &self, err);

        if (r < 0)
                return r;
        r = ((const struct rm_sensor_plugin *) (const void *) head)->read(self, &context->request);
        r = host_unload(&context->host, &kind, head, self, r, err);
        if (r < 0)
                return r;
        if (context->status == RM_SENSOR_UNKNOWN)
                return error_set(err, -ENODATA, "%s", context->text[0] ? context->text : "unknown");
        if (context->status < 0 && json_array_size(context->readings) == 0)
                return error_set(err, -ENODATA, "it tells nothing");
        return 0;
}

static int write_answer(const struct context *context, int fd, struct rm_error *err) {
        json_t *root = json_pack("{s:O, s:O}", "readings", context->readings, "log", context->log);
        cleanup_free char *text = NULL;

        if (root && context->status >= 0) {
                (void) json_object_set_new(root, "status", json_integer(context->status));
                (void) json_object_set_new(root, "text", json_string(context->text));
        }
        text = root ? json_dumps(root, JSON_COMPACT) : NULL;
        json_decref(root);
        if (!text)
                return error_set(err, -ENOMEM, "the answer cannot be written as JSON");
        return write_all(fd, text, strlen(text));
}

/* First what needs root. */
static int run(struct context *context, struct rm_error *err) {
        const struct rlimit no_core = { 0, 0 };
        int r;

        (void) write_text("/proc/self/oom_score_adj", "1000"); /* before anything of the jobs: it is only asked again */
        (void) setrlimit(RLIMIT_CORE, &no_core);
        if ((r = be_silent(err)) < 0 || (r = become(context->user, err)) < 0)
                return r;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* changing the user clears it */
        /* Nor does a set-user-ID program that the plugin runs give it more than its user has: a
         * sensor that needs root is configured so. */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return error_sys(err, -errno, "giving up new privileges");
        return ask(context, err);
}

int host_run_sensor(int argc, char **argv) {
        static const struct argp argp = { .options = options,
                                          .parser = parse_option,
                                          .doc = "Ask one sensor how healthy this node is." };
        struct context context = {
                .host = { .directory = RM_SENSOR_DIR,
                          .least_time_usec = 1,
                          .time_usec = UINT64_C(10000000),
                          .offer = { .size = sizeof(context.host.offer), .context = &context, .log = on_log } },
                .user = "nobody",
                .request = { .size = sizeof(context.request),
                             .root = "",
                             .args = "",
                             .context = &context,
                             .left_usec = host_left,
                             .reading = on_reading,
                             .status = on_status },
                .readings = json_array(),
                .log = json_array(),
                .status = -1,
        };
        struct rm_error err = { 0 };
        int r;

        host_parse(&context.host, &argp, argc, argv);
        r = host_keep_output(&context.host, &err);
        if (r == 0)
                r = run(&context, &err);
        if (r == 0)
                r = write_answer(&context, context.host.answer_fd, &err);
        json_decref(context.readings);
        json_decref(context.log);
        return host_report(&context.host, r, &err);
}
