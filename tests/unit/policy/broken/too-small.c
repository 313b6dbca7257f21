#define BROKEN_SIZE sizeof(struct rm_plugin)
#include "tests/unit/policy/broken/broken.h"

BROKEN_POLICY("too-small", place_nothing);
