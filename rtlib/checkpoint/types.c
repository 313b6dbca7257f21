#include "rtlib/checkpoint/types.h"

#include <stdio.h>

#include "common/util.h"

static const char *const names[] = {
        [RMRT_BYTES] = "bytes",
        [RMRT_INTEGER] = "int",
        [RMRT_UNSIGNED] = "uint",
        [RMRT_FLOAT] = "float",
        [RMRT_LONG_DOUBLE] = "longdouble",
        [RMRT_LOGICAL] = "logical",
};

bool type_valid(const struct rmrt_type *type) {
        uint32_t n = type->unit_bytes;

        return (size_t) type->kind < ARRAY_SIZE(names) && type->units > 0 &&
               (n == 1 || n == 2 || n == 4 || n == 8 || n == 12 || n == 16);
}

bool type_equal(const struct rmrt_type *a, const struct rmrt_type *b) {
        return a->kind == b->kind && a->unit_bytes == b->unit_bytes && a->units == b->units;
}

uint64_t type_element_bytes(const struct rmrt_type *type) {
        return (uint64_t) type->unit_bytes * type->units;
}

/* Long doubles have as many formats as there are processors. */
bool type_converts(const struct rmrt_type *type) {
        return type->kind != RMRT_LONG_DOUBLE;
}

void type_text(const struct rmrt_type *type, char *ret, size_t size) {
        char many[16] = "";

        if (type->units > 1)
                (void) snprintf(many, sizeof(many), "%u x ", type->units);
        if (type->kind == RMRT_BYTES && type->unit_bytes == 1)
                (void) snprintf(ret, size, "%s%s", many, type->units > 1 ? "bytes" : "byte");
        else
                (void) snprintf(ret, size, "%s%s%u", many, names[type->kind], type->unit_bytes * 8);
}

static void swap_unit(uint8_t *unit, uint32_t n) {
        for (uint32_t i = 0; i < n / 2; i++) {
                uint8_t byte = unit[i];

                unit[i] = unit[n - 1 - i];
                unit[n - 1 - i] = byte;
        }
}

void type_swap(const struct rmrt_type *type, void *data, uint64_t size_bytes) {
        if (type->kind == RMRT_BYTES || type->unit_bytes == 1)
                return;
        for (uint64_t at = 0; at + type->unit_bytes <= size_bytes; at += type->unit_bytes)
                swap_unit((uint8_t *) data + at, type->unit_bytes);
}

bool host_is_big_endian(void) {
        const uint16_t one = 1;

        return *(const uint8_t *) &one == 0;
}
