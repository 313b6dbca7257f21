/* How often tests repeat what is drawn by chance. */
#ifndef RM_TESTS_REPEAT_H
#define RM_TESTS_REPEAT_H

#include <stdlib.h>

/* `most` times in a thorough run (RM_TEST_THOROUGH is set, as `tools/check --thorough` does), else
 * a quarter of that, and an eighth with sanitizers, which make each take several times as long:
 * results are judged without them, and a fault in memory does not need many cases of one kind. The
 * same are drawn first in all. */
static inline unsigned repetitions(unsigned most) {
#if defined(__SANITIZE_ADDRESS__)
        const unsigned part = 8;
#else
        const unsigned part = 4;
#endif

        if (getenv("RM_TEST_THOROUGH") || most < 4)
                return most;
        return most < part ? 1 : most / part;
}

#endif
