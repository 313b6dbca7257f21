#include "daemon/image/zero.h"

#include <stdint.h>
#include <string.h>

#define STRIDE_WORDS 32U

bool image_block_is_zero(const void *data, size_t size_bytes) {
        const uint8_t *p = data;
        uint64_t words[STRIDE_WORDS];

        /* Strides that the compiler turns into wide ORs; most blocks with contents are known by the
         * first. */
        for (; size_bytes >= sizeof(words); p += sizeof(words), size_bytes -= sizeof(words)) {
                uint64_t any = 0;

                memcpy(words, p, sizeof(words));
                for (size_t i = 0; i < STRIDE_WORDS; i++)
                        any |= words[i];
                if (any)
                        return false;
        }
        for (; size_bytes > 0; p++, size_bytes--)
                if (*p)
                        return false;
        return true;
}
