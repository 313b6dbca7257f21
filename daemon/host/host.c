#include "daemon/host/host.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/text.h"
#include "common/util.h"

enum { KEY_TIME = 256 };

static const struct argp_option options[] = {
        { "dir", 'd', "DIR", 0, "Where plugins of this kind are", 0 },
        { "time-usec", KEY_TIME, "N", 0, "Time budget, from the start of this program", 0 },
        { 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct host *host = state->input;
        int64_t value = 0;

        switch (key) {
        case ARGP_KEY_INIT:
                state->child_inputs[0] = host;
                return 0;
        case 'd':
                host->directory = arg;
                return 0;
        case KEY_TIME:
                if (parse_i64(arg, host->least_time_usec, INT64_MAX / 2, &value) < 0)
                        argp_error(state, "--time-usec: '%s' is no number from %d on", arg, (int) host->least_time_usec);
                host->time_usec = (uint64_t) value;
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

void host_parse(struct host *host, const struct argp *own, int argc, char **argv) {
        const struct argp_child children[] = { { .argp = own }, { 0 } };
        const struct argp all = { .options = options, .parser = parse_option, .children = children };

        argp_err_exit_status = 2;
        (void) argp_parse(&all, argc, argv, 0, NULL, host);
        host->deadline_usec = now_usec() + host->time_usec;
        log_setup("rm-plugin-host", LOG_INFO);
}

int host_keep_output(struct host *host, struct rm_error *err) {
        host->answer_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        if (host->answer_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
                return error_sys(err, -errno, "standard output");
        return 0;
}

int host_report(const struct host *host, int r, struct rm_error *err) {
        error_clean(err);
        if (r < 0)
                (void) write_all(host->answer_fd, error_text(err), strlen(error_text(err)));
        return r < 0;
}

uint64_t host_left(void *data) {
        const struct host *host = data;
        uint64_t now = now_usec();

        return now < host->deadline_usec ? host->deadline_usec - now : 0;
}

bool host_keep_error(struct host *host, enum rm_plugin_level level, const char *text) {
        if (level != RM_PLUGIN_ERROR || !text)
                return false;
        (void) text_format(host->said, sizeof(host->said), "%s", text);
        return true;
}

static const char *reason(const struct host *host, int r) {
        return host->said[0] ? host->said : strerror(-r);
}

int host_load(struct host *host, const struct plugin_kind *kind, const struct rm_plugin **ret_head, void **ret_self,
              struct rm_error *err) {
        const struct rm_plugin *head = NULL;
        void *self = NULL;
        int r = descriptor_load(host->directory, host->plugin, kind, &head, err);

        if (r < 0)
                return r;
        if (head->create && (r = head->create(&host->offer, &self)) < 0)
                return error_set(err, r, "cannot start: %s", reason(host, r));
        *ret_head = head;
        *ret_self = self;
        return 0;
}

int host_unload(const struct host *host, const struct plugin_kind *kind, const struct rm_plugin *head, void *self, int r,
                struct rm_error *err) {
        if (head->destroy)
                head->destroy(self);
        if (r < 0)
                return error_set(err, r, "%s", reason(host, r));
        return r > 0 ? error_set(err, -EPROTO, "%s() returned %d, not 0 or a negative errno", kind->call, r) : 0;
}
