/* The files that rm-agent leaves in /run/rm/agent for the capsule's PID 1. The user can write
 * there: nothing in it is trusted. */
#ifndef RM_DAEMON_CAPSULE_AGENT_REQUEST_H
#define RM_DAEMON_CAPSULE_AGENT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * rm-agent makes the FIFO "ID.status", then the file "ID.tmp", renames it to "ID.req", writes a
 * byte into the FIFO AGENT_WAKE and reads the other FIFO. PID 1 renames to "ID.done" when it
 * answers, then writes the status and a newline into the FIFO. ID is "PID-NUMBER"; PID is
 * rm-agent's own, watched so that its death is noticed however it comes. Why no inotify: it takes
 * an instance for each capsule, and root has 128 of them by default.
 * The file holds three strings, each ended by a zero byte: AGENT_REQUEST_MAGIC, host, command.
 */
#define AGENT_DIR "/run/rm/agent"
/* The FIFO that wakes PID 1, which makes it and keeps it open. */
#define AGENT_WAKE AGENT_DIR "/wake"
#define AGENT_REQUEST_MAGIC "rm-agent 1"

enum {
        AGENT_ID_MAX = 32,
        AGENT_HOST_MAX = 255,
        AGENT_REQUEST_MAX = 128 * 1024 + 512, /* whole file */
        /* The requests of one capsule at a time: so many, with so many bytes. A command of mpirun
         * has some 800 bytes, so that there is room for as many as there may be. PID 1 and rmd,
         * which keep them, are root's. */
        AGENT_REQUESTS_MAX = 4096,
        AGENT_REQUESTS_BYTES = 4 * 1024 * 1024,
        /* mpirun asks once for each group. A program that asks again and again is heard no more
         * often than this, for the cluster's sake. */
        AGENT_REQUESTS_PER_SEC = 64,
};

/* Pointers go into the parsed text. */
struct agent_request {
        const char *host;
        const char *command;
};

/* False unless it is "ID.req" with a well-formed ID, which is written to `ret_id`, its PID to
 * `ret_pid`. */
bool agent_file_parse(const char *file, char ret_id[static AGENT_ID_MAX], pid_t *ret_pid);
/* `text` must stay as long as `ret` is used. -EBADMSG for anything malformed. */
int agent_request_parse(const char *text, size_t size, struct agent_request *ret);

#endif
