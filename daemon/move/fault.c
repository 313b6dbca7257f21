#include "daemon/move/fault.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"

struct fault {
        char *fixed; /* RM_FAULT */
        char *path;  /* RM_FAULT_FILE */
};

struct fault *fault_create(void) {
        struct fault *fault = xcalloc(1, sizeof(*fault));

        fault->fixed = xstrdup(getenv("RM_FAULT"));
        fault->path = xstrdup(getenv("RM_FAULT_FILE"));
        return fault;
}

void fault_destroy(struct fault *fault) {
        if (!fault)
                return;
        free(fault->fixed);
        free(fault->path);
        free(fault);
}

/* Find "name:action" among words set apart by commas, blanks and newlines; cut it out when `once`. */
static bool find_word(char *text, const char *name, bool once, char *ret_action, size_t action_bytes) {
        size_t n = strlen(name);

        for (char *p = text; (p = strstr(p, name)); p += n) {
                size_t length = strcspn(p, ", \n");

                if ((p != text && !strchr(", \n", p[-1])) || p[n] != ':')
                        continue;
                (void) snprintf(ret_action, action_bytes, "%.*s", (int) (length - n - 1), p + n + 1);
                if (once)
                        memset(p, ' ', length);
                return true;
        }
        return false;
}

static bool take_from_file(const char *path, const char *name, char *ret_action, size_t action_bytes) {
        cleanup_free char *text = NULL;
        size_t size = 0;

        if (read_file(path, 65536, &text, &size) < 0 || !find_word(text, name, true, ret_action, action_bytes))
                return false;
        if (strcmp(ret_action, "hold") == 0)
                return true; /* until the test takes it away */
        (void) write_file_atomic(path, text, size, 0600, false);
        return true;
}

int fault_point(struct fault *fault, const char *role, const char *state, struct rm_error *err) {
        cleanup_free char *name = NULL;
        char action[32] = "";

        if (!fault->fixed && !fault->path)
                return 0;
        name = xasprintf("move.%s.%s", role, state);
        if (!(fault->fixed && find_word(fault->fixed, name, false, action, sizeof(action))) &&
            !(fault->path && take_from_file(fault->path, name, action, sizeof(action))))
                return 0;
        if (strcmp(action, "hold") == 0)
                return error_set(err, -EAGAIN, "fault point %s", name);
        log_warn("fault point %s: %s", name, action);
        if (strcmp(action, "kill") == 0)
                (void) kill(getpid(), SIGKILL);
        return error_set(err, strcmp(action, "hang") == 0 ? -EINPROGRESS : -EIO, "fault point %s", name);
}
