/* A long message arrives in parts, in order: they are put together, and refused where they are not
 * what was announced. Pure. */
#ifndef RM_PEERS_PARTS_H
#define RM_PEERS_PARTS_H

#include <stddef.h>
#include <stdint.h>

/* So much goes into one message: small beside what a connection takes, so that heartbeats behind it
 * are not late. */
#define PART_BYTES ((size_t) 256 << 10)

/* All zero: nothing yet. The members are only to be read. */
struct parts {
        uint8_t *data;
        size_t received_bytes;
        size_t total_bytes;
        size_t space_bytes; /* of data */
};

/* Take in the part that begins at `offset`; one at 0 begins again, whatever was there. Memory grows
 * with what has arrived, not with what is announced. 1: now it is whole. 0: more is to come. After
 * an error nothing is held:
 * -EMSGSIZE: more than `max_bytes` are announced; -EPROTO: out of order, of another total, empty,
 * or beyond the total. */
int parts_add(struct parts *parts, uint64_t total_bytes, uint64_t offset, const void *data, size_t size_bytes, size_t max_bytes);
/* Hold nothing any more. */
void parts_reset(struct parts *parts);

#endif
