#include "daemon/job/resident.h"

#include <stdlib.h>

#include "common/util.h"

struct resident *resident_create(uint64_t job, int32_t index, uint64_t incarnation) {
        struct resident *resident = xcalloc(1, sizeof(*resident));

        resident->job = job;
        resident->index = index;
        resident->incarnation = incarnation;
        resident->parts = xcalloc(RESIDENT_PARTS, sizeof(*resident->parts));
        return resident;
}

void resident_destroy(struct resident *resident) {
        if (!resident)
                return;
        for (size_t i = 0; i < RESIDENT_PARTS; i++)
                free(resident->parts[i]);
        free(resident->parts);
        free(resident->making_again);
        free(resident->lost_text);
        free(resident);
}

void *resident_part(const struct resident *resident, enum resident_part part, size_t size_bytes) {
        if (!resident->parts[part])
                resident->parts[part] = xcalloc(1, size_bytes);
        return resident->parts[part];
}
