#include "rm/plugin.h"

extern const int rm_not_the_symbol;
RM_PLUGIN_EXPORT const int rm_not_the_symbol = 1;
