#include "daemon/transfer/inflight.h"

#include <stdio.h>
#include <string.h>

#include "common/util.h"

/* 28,000 connections. A program may have any number, those that have ended among them, and the
 * kernel writes a line for each while rmd waits. */
#define TEXT_MAX_BYTES (4U << 20)
#define STATE_SYN_RECV 0x03U
#define STATE_LISTEN 0x0aU

/* Searches the text of /proc/net/tcp or tcp6 for a listening socket with something in its queue, or
 * a connection half made. */
static bool inflight_in(const char *text) {
        for (const char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
                unsigned state = 0;
                unsigned sending = 0;
                unsigned waiting = 0; /* of a listening socket: connections that no program has accepted */

                if (sscanf(line + 1, " %*d: %*[0-9A-F]:%*x %*[0-9A-F]:%*x %x %x:%x", &state, &sending, &waiting) != 3)
                        continue;
                if (state == STATE_SYN_RECV || (state == STATE_LISTEN && waiting > 0))
                        return true;
        }
        return false;
}

static bool inflight_by(pid_t pid, const char *table) {
        cleanup_free char *path = xasprintf("/proc/%d/net/%s", (int) pid, table);
        cleanup_free char *text = NULL;

        return read_file(path, TEXT_MAX_BYTES, &text, NULL) == 0 && inflight_in(text);
}

/* A socket of IPv6 may listen for connections by IPv4. */
bool inflight_connections(pid_t pid) {
        return inflight_by(pid, "tcp") || inflight_by(pid, "tcp6");
}
