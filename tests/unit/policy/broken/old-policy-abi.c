#define BROKEN_KIND_ABI 78
#include "tests/unit/policy/broken/broken.h"

BROKEN_POLICY("old-policy-abi", place_nothing);
