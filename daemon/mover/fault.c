#include "daemon/mover/fault.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"

#define FILE_MAX_BYTES 65536U

/* The action of the entry [text, end) when it is for `point`; NULL when it is not. */
static const char *entry_action(const char *text, const char *end, const char *point) {
        const char *colon = memchr(text, ':', (size_t) (end - text));
        size_t n = colon ? (size_t) (colon - text) : 0;

        if (n == 0 || strncmp(text, point, n) != 0 || (point[n] != 0 && point[n] != '.'))
                return NULL;
        return colon + 1;
}

/* The entry of RM_FAULT for `point`, or NULL. */
static const char *fixed_action(const char *point) {
        const char *text = getenv("RM_FAULT");

        while (text && *text) {
                const char *end = strchrnul(text, ',');
                const char *action = entry_action(text, end, point);

                if (action)
                        return action;
                text = *end ? end + 1 : end;
        }
        return NULL;
}

/* The line of the file for `point`, which holds once: it is blanked out. `text` keeps the file's contents. */
static const char *file_action(const char *point, char **text) {
        const char *path = getenv("RM_FAULT_FILE");
        size_t n = strlen(point);
        size_t size_bytes = 0;

        if (!path || read_file(path, FILE_MAX_BYTES, text, &size_bytes) < 0)
                return NULL;
        for (char *p = *text; (p = strstr(p, point)); p += n) {
                cleanup_free char *changed = NULL;

                if ((p != *text && !strchr(", \n", p[-1])) || p[n] != ':')
                        continue;
                changed = xstrdup(*text);
                memset(changed + (p - *text), ' ', strcspn(p, ", \n"));
                (void) write_file_atomic(path, changed, size_bytes, 0600, false);
                return p + n + 1;
        }
        return NULL;
}

int fault_point(const char *point, struct rm_error *err) {
        cleanup_free char *text = NULL;
        const char *action = fixed_action(point);

        if (!action)
                action = file_action(point, &text);
        if (!action)
                return 0;
        if (strncmp(action, "kill", 4) == 0)
                (void) raise(SIGKILL);
        if (strncmp(action, "hang", 4) == 0)
                for (;;)
                        (void) pause();
        return error_set(err, -EIO, "fault point %s", point);
}
