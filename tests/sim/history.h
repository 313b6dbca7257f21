/* One history: a cluster of voters, its clients and its faults, from the first event to the end or the first violation. */
#ifndef RM_TESTS_SIM_HISTORY_H
#define RM_TESTS_SIM_HISTORY_H

#include "tests/sim/checks.h"

struct history_config {
        uint64_t seed;
        unsigned n_voters; /* 0: drawn */
        int n_faults;      /* negative: drawn */
        unsigned seconds; /* virtual, with faults; as long as it takes to make progress, without, follows */
        bool strict; /* see checks_create() */
        FILE *trace; /* NULL: none */
};

struct history_result {
        char *violation; /* NULL: none; free() */
        unsigned n_voters;
        uint64_t events;
        uint64_t virtual_usec;
        uint64_t operations; /* that clients were answered */
        uint64_t recovery_usec; /* from the end of the faults until all voters had something new */
        struct checks_repeats repeats;
};

void history_run(const struct history_config *config, struct history_result *ret);

#endif
