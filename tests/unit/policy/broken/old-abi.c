#define BROKEN_ABI 77
#include "tests/unit/policy/broken/broken.h"

BROKEN_POLICY("old-abi", place_nothing);
