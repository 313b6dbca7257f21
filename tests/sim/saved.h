/* The checkpoint of one capsule in the virtual world: its frozen payload, to go on elsewhere. */
#ifndef RM_TESTS_SIM_SAVED_H
#define RM_TESTS_SIM_SAVED_H

#include <stdbool.h>
#include <stdint.h>

#include "rtlib/resize_state.h"

#define SAVED_GROUPS 8U
#define SAVED_RANKS 16U
#define SAVED_PARKING_BYTES 1024U

/* No pointers: it lies on a disk as it is. */
struct saved {
        uint64_t cut; /* kept.h: the number of the standstill in which it was taken */
        uint64_t job, checkpoint;
        int32_t index;
        uint32_t born; /* the attempt in which the program began */
        uint64_t left_usec; /* until its end; UINT64_MAX: it has none of its own */
        int end_status;
        unsigned n_groups;
        bool asked, failed, forced;
        bool answered[SAVED_GROUPS], over[SAVED_GROUPS];
        uint32_t active;
        uint64_t written_bytes;
        uint32_t n_ranks;
        struct resize ranks[SAVED_RANKS];
        uint32_t parking_bytes; /* 0: there is none */
        uint8_t parking[SAVED_PARKING_BYTES];
};

#endif
