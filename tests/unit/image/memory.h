/* An image stream in memory, for tests and fuzzing. */
#ifndef RM_TESTS_IMAGE_MEMORY_H
#define RM_TESTS_IMAGE_MEMORY_H

#include "daemon/image/reader.h"
#include "daemon/image/writer.h"

struct memory {
        struct image_sink sink;
        struct image_source source;
        uint8_t *data;
        size_t size_bytes;
        size_t space_bytes;
        size_t at; /* of the source */
};

void memory_init(struct memory *m);
void memory_init_of(struct memory *m, const void *data, size_t size_bytes); /* with these bytes */
void memory_finish(struct memory *m);

/* Every chunk that can be told from its header gets its right checksum. */
void memory_reseal(struct memory *m);

/* A reader over it that throws everything away. Returns what image_reader_run() does. */
int memory_read_nowhere(struct memory *m, struct rm_error *err);
const struct image_target *memory_nowhere(void);

#endif
