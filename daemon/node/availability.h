/* Availability files: how many cores of which node may be used now. The text, without any file or
 * clock.
 *
 *      # comment
 *      n1:4            # four cores
 *      n2:0            # none: leave it
 *
 * One `hostname:numCores` a line; nodes that are not named are not restricted. Blank lines, blanks
 * around the words and CRLF are fine, and the last line need not end in a newline. Anything else
 * makes the whole text an error, so that a text is taken as a whole or not at all: no or a strange
 * number (0 to 1000000 is allowed), a node that is not known or named twice, control characters, a
 * line over 4096 bytes, more than 1 MiB. */
#ifndef RM_NODE_AVAILABILITY_H
#define RM_NODE_AVAILABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define AVAILABILITY_MAX_BYTES (1U << 20)
#define AVAILABILITY_LINE_MAX_BYTES 4096U
#define AVAILABILITY_CORES_MAX 1000000U

struct availability_entry {
        char *host;
        uint32_t cores;
};

struct availability {
        struct availability_entry *entries; /* in the order of the file; owned */
        size_t n_entries;
        bool open_end; /* the last line has no newline: perhaps it is still being written */
        bool blank;    /* no entry and no comment either: perhaps it has just been begun */
};

/* The node's own name for what stands in the file; NULL = no such node. Valid until the next
 * call. */
typedef const char *(*availability_find_fn)(void *userdata, const char *host);

/* -EINVAL with one message, "NAME:LINE: what", for the first bad line. `find` NULL: every host is
 * taken as it stands. `data` need not end in NUL. Free with availability_finish(). */
int availability_parse(const char *name, const char *data, size_t size_bytes, availability_find_fn find, void *userdata,
                       struct availability *ret_availability, struct rm_error *err);
void availability_finish(struct availability *availability);
/* The same hosts with the same cores in the same order. */
bool availability_equal(const struct availability *a, const struct availability *b);

/* Finds a node by a name, for find functions: returns the index among `n` names sorted by strcmp(),
 * or -ENOENT. A name is meant when it is the same, or, where there is no such, when one of both is
 * the short name (up to the first dot) of the other and no second node fits as well. */
int64_t availability_match(const char *host, const char *(*name_at)(const void *names, size_t i), const void *names, size_t n);

#endif
