/* A history: the nodes of a cluster, what they propose, and faults, from the first event to the
 * end or the first violation. */
#ifndef RM_TESTS_SIM_HISTORY_H
#define RM_TESTS_SIM_HISTORY_H

#include "tests/sim/capsules.h"

struct history_config {
        uint64_t seed;
        unsigned n_voters; /* that there are to be; 0: drawn */
        int n_faults;      /* negative: drawn */
        unsigned seconds; /* virtual, with faults; as long as it takes to make progress, without, follows */
        FILE *trace; /* NULL: none */
        struct trail *record;       /* NULL: not recorded */
        const struct trail *follow; /* a violation if this history goes another way; NULL ok */
};

struct history_result {
        char *violation; /* NULL: none; free() */
        unsigned n_voters;
        uint64_t events;
        uint64_t virtual_usec;
        uint64_t operations; /* that nodes were answered */
        unsigned changes; /* of the voters, as the log tells */
        uint64_t recovery_usec; /* from the end of the faults until all nodes had something new */
        uint64_t answer_usec; /* within which three of four proposals are answered then, without faults */
        uint64_t jobs_usec; /* from the last request until nothing ran any more */
        struct capsules_counts capsules;
        struct kept_counts kept;
        unsigned repeated; /* operations that are in the log more than once */
        unsigned resubmitted; /* submissions that were sent again with the same token */
};

void history_run(const struct history_config *config, struct history_result *ret);

#endif
