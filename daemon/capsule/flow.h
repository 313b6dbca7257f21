/* A flow is what goes over the TCP connections of a capsule; the same struct is used at both ends
 * of its ctl.sock. */
#ifndef RM_CAPSULE_FLOW_H
#define RM_CAPSULE_FLOW_H

#include <stdint.h>

struct capsule_flow {
        uint32_t address;    /* at the other end: IPv4, network byte order */
        uint64_t sent_bytes; /* acknowledged by the other end */
};

#endif
