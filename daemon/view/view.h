/* Views are what people and programs are shown of the cluster: messages of the local protocol, made
 * of the state, its index and a few figures that are in no log. Pure: a view knows no client, no
 * socket and no clock, so that a request, a page and the metrics show the same. */
#ifndef RM_VIEW_VIEW_H
#define RM_VIEW_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/state/state_index.h"

/* A page of a list is full with so much, and has one entry more than that at most. */
#define VIEW_PAGE_BYTES (64U << 10)
/* A job takes so much at most in a list, and in an answer about this job alone. A JobSpec has at
 * most 1 MiB. */
#define VIEW_LISTED_BYTES (32U << 10)
#define VIEW_WHOLE_BYTES (2U << 20)

/* All views are made from these. The pointers are borrowed. */
struct view_source {
        const struct state_index *index;
        const char *leader; /* NULL: none is known */
        uint32_t network; /* of the capsules' addresses: the state has them without it */
        uint64_t lease_usec; /* [cluster] lease */
        uint64_t checkpoint_mtbf_usec; /* [checkpoint] mtbf */
        uint64_t now_real_usec;
};

/* The user to whom the view is shown. */
struct view_reader {
        uint32_t uid;
        bool admin; /* sees what all users may see */
};

/* True if the reader may see what is this user's. */
bool view_may(const struct view_reader *reader, uint32_t owner);

#endif
