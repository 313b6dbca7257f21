#include "daemon/sched/name_index.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"

struct entry {
        const char *name; /* NULL: free */
        uint32_t i;
};

/* Open addressing, at most half full. */
struct name_index {
        uint32_t mask;
        int32_t duplicate;
        struct entry entries[];
};

/* FNV-1a. Names are short and at most some hundred thousand. */
static uint32_t hash(const char *name) {
        uint32_t value = 2166136261u;

        for (; *name; name++)
                value = (value ^ (unsigned char) *name) * 16777619u;
        return value ^ (value >> 15);
}

/* Where the name is, or would be. */
static uint32_t place_of(const struct name_index *index, const char *name) {
        uint32_t at = hash(name) & index->mask;

        while (index->entries[at].name && strcmp(index->entries[at].name, name) != 0)
                at = (at + 1) & index->mask;
        return at;
}

struct name_index *name_index_create(uint32_t n, const char *(*name_at)(const void *context, uint32_t i), const void *context) {
        struct name_index *index;
        uint32_t size = 16;

        while (size / 2 < n)
                size *= 2;
        index = xcalloc(1, sizeof(*index) + sizeof(struct entry) * size);
        index->mask = size - 1;
        index->duplicate = -1;
        for (uint32_t i = 0; i < n; i++) {
                const char *name = name_at(context, i);
                struct entry *entry = &index->entries[place_of(index, name)];

                if (entry->name && index->duplicate < 0)
                        index->duplicate = (int32_t) i;
                else if (!entry->name)
                        *entry = (struct entry) { .name = name, .i = i };
        }
        return index;
}

void name_index_destroy(struct name_index *index) {
        free(index);
}

int32_t name_index_find(const struct name_index *index, const char *name) {
        const struct entry *found = &index->entries[place_of(index, name)];

        return found->name ? (int32_t) found->i : -1;
}

int32_t name_index_duplicate(const struct name_index *index) {
        return index->duplicate;
}
