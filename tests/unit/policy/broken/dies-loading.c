#include <stdlib.h>

#include "tests/unit/policy/broken/broken.h"

__attribute__((constructor)) static void die(void) {
        abort();
}

BROKEN_POLICY("dies-loading", place_nothing);
