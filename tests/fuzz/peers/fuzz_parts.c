/* Feeds the code that puts together a state, or a job's environment, with parts in any order. Each
 * record of the input is one part: total and offset (two bytes each, little endian, read as
 * negative from 0xff00 on), its length (one byte), and its bytes. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/peers/parts.h"

#define MAX_BYTES 1000U
#define RECORD_BYTES 5U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static uint64_t number(const uint8_t *data) {
        uint16_t value = (uint16_t) (data[0] | data[1] << 8);

        return value >= 0xff00 ? UINT64_MAX - (uint64_t) (0xffff - value) : value;
}

/* Bytes that were taken, at their places. */
struct model {
        uint8_t bytes[MAX_BYTES];
        uint64_t received;
        uint64_t total;
};

static int expect(struct model *model, uint64_t total, uint64_t offset, const uint8_t *bytes, size_t n) {
        if (offset == 0)
                *model = (struct model) { .total = total };
        if (offset == 0 && total > MAX_BYTES) {
                model->total = 0;
                return -EMSGSIZE;
        }
        if (total != model->total || offset != model->received || n == 0 || n > model->total - model->received) {
                *model = (struct model) { 0 };
                return -EPROTO;
        }
        memcpy(model->bytes + model->received, bytes, n);
        model->received += n;
        return model->received == model->total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        struct parts parts = { 0 };
        struct model model = { 0 };

        while (size_bytes >= RECORD_BYTES) {
                uint64_t total = number(data), offset = number(data + 2);
                size_t n = data[4];

                data += RECORD_BYTES;
                size_bytes -= RECORD_BYTES;
                if (n > size_bytes)
                        n = size_bytes;
                if (parts_add(&parts, total, offset, data, n, MAX_BYTES) != expect(&model, total, offset, data, n))
                        abort();
                if (parts.received_bytes != model.received || parts.received_bytes > MAX_BYTES || parts.space_bytes > MAX_BYTES ||
                    (parts.data && memcmp(parts.data, model.bytes, parts.received_bytes) != 0))
                        abort();
                data += n;
                size_bytes -= n;
        }
        parts_reset(&parts);
        return 0;
}
