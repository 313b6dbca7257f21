#include "daemon/mover/fault.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The action of the entry [text, end) when it is for `point`; NULL when it is not. */
static const char *entry_action(const char *text, const char *end, const char *point) {
        const char *colon = memchr(text, ':', (size_t) (end - text));
        size_t n = colon ? (size_t) (colon - text) : 0;

        if (n == 0 || strncmp(text, point, n) != 0 || (point[n] != 0 && point[n] != '.'))
                return NULL;
        return colon + 1;
}

int fault_point(const char *point, struct rm_error *err) {
        const char *text = getenv("RM_FAULT");

        while (text && *text) {
                const char *end = strchrnul(text, ',');
                const char *action = entry_action(text, end, point);

                if (action && strncmp(action, "kill", 4) == 0)
                        (void) raise(SIGKILL);
                if (action && strncmp(action, "hang", 4) == 0)
                        for (;;)
                                (void) pause();
                if (action && strncmp(action, "fail", 4) == 0)
                        return error_set(err, -EIO, "RM_FAULT asked for a failure at %s", point);
                text = *end ? end + 1 : end;
        }
        return 0;
}
