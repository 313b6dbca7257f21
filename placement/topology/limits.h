/* How long there is. */
#ifndef RM_PLACEMENT_LIMITS_H
#define RM_PLACEMENT_LIMITS_H

#include <stdbool.h>

struct limits {
        bool (*over)(void *context); /* asked now and then; true: answer with what there is. NULL: it never is */
        void *context;
};

static inline bool limits_over(const struct limits *limits) {
        return limits->over && limits->over(limits->context);
}

#endif
