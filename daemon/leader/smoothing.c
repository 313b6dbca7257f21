#include "daemon/leader/smoothing.h"

#include <math.h>

double smoothing_weight(uint64_t *seen_usec, uint64_t usec, uint64_t memory_usec) {
        *seen_usec += usec;
        return fmax(1 - exp(-(double) usec / (double) memory_usec), (double) usec / (double) *seen_usec);
}
