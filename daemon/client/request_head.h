/* The head of a client's request: how large the request may be, by its first bytes, before the rest
 * is read. */
#ifndef RM_CLIENT_REQUEST_HEAD_H
#define RM_CLIENT_REQUEST_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request_head {
        uint32_t id;   /* the caller's; 0 when it cannot be told */
        uint32_t body; /* the field of LocalRequest's body; 0 when it cannot be told */
};

/* Reads the head from the first bytes of a packed LocalRequest, which may be anything. It is known
 * only of a request that has its fields in the order of their numbers, as every encoder that we
 * know writes them. */
struct request_head request_head_read(const uint8_t *bytes, size_t n);
/* How large a request may be that begins so; `greeted`: the client has said hello. */
uint32_t request_head_max_bytes(const struct request_head *head, bool greeted);

#endif
