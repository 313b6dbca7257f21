#include "tests/unit/policy/broken/broken.h"

BROKEN_POLICY("no-call", NULL);
