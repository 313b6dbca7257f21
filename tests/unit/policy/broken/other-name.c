#include "tests/unit/policy/broken/broken.h"

BROKEN_POLICY("somebody-else", place_nothing);
