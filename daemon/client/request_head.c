#include "daemon/client/request_head.h"

#include "proto/local.pb-c.h"

/* A name and a version. */
#define HELLO_MAX_BYTES (4U << 10)
/* The longest of the rest name nodes or jobs: 1,000 nodes with names of 63 bytes. */
#define PLAIN_MAX_BYTES (64U << 10)
/* A JobSpec has at most 1 MiB, and so has the input that is under way; what is a little more is
 * told so and not cut off. */
#define LARGE_MAX_BYTES ((1U << 20) + PLAIN_MAX_BYTES)

#define TAG_ID 0x08U /* field 1, a number */
#define WIRE_TYPE_BITS 3U
#define WIRE_TYPE_BYTES 2U /* what has a length in front */

/* The next number of seven bits a byte; false when it is not whole or too large. */
static bool take_varint(const uint8_t **at, const uint8_t *end, uint32_t *ret_value) {
        uint64_t value = 0;

        for (unsigned shift = 0; *at < end && shift < 35; shift += 7) {
                uint8_t byte = *(*at)++;

                value |= (uint64_t) (byte & 0x7fU) << shift;
                if ((byte & 0x80U) == 0) {
                        *ret_value = (uint32_t) value;
                        return value <= UINT32_MAX;
                }
        }
        return false;
}

struct request_head request_head_read(const uint8_t *bytes, size_t n) {
        const uint8_t *at = bytes;
        const uint8_t *end = bytes + n;
        struct request_head head = { 0 };
        uint32_t tag = 0;

        if (n > 0 && *at == TAG_ID) {
                at++;
                if (!take_varint(&at, end, &head.id))
                        return (struct request_head) { 0 };
        }
        if (take_varint(&at, end, &tag) && (tag & ((1U << WIRE_TYPE_BITS) - 1)) == WIRE_TYPE_BYTES)
                head.body = tag >> WIRE_TYPE_BITS;
        return head;
}

uint32_t request_head_max_bytes(const struct request_head *head, bool greeted) {
        if (!greeted)
                return HELLO_MAX_BYTES;
        if (head->body == RM__LOCAL_REQUEST__BODY_SUBMIT_JOB || head->body == RM__LOCAL_REQUEST__BODY_JOB_INPUT)
                return LARGE_MAX_BYTES;
        return PLAIN_MAX_BYTES;
}
