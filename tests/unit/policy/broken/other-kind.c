#define BROKEN_KIND "sensor"
#include "tests/unit/policy/broken/broken.h"

BROKEN_POLICY("other-kind", place_nothing);
