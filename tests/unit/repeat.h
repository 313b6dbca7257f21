/* How often tests repeat what is drawn by chance. */
#ifndef RM_TESTS_REPEAT_H
#define RM_TESTS_REPEAT_H

#include <stdlib.h>

/* `most` times in a thorough run (RM_TEST_THOROUGH is set, as `tools/check --thorough` does), else
 * a quarter of that. The same are drawn first in both. */
static inline unsigned repetitions(unsigned most) {
        return getenv("RM_TEST_THOROUGH") || most < 4 ? most : most / 4;
}

#endif
