#include "daemon/sched/name_index.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"

struct entry {
        const char *name;
        uint32_t i;
};

struct name_index {
        uint32_t n;
        struct entry entries[];
};

static int compare_entries(const void *a, const void *b) {
        return strcmp(((const struct entry *) a)->name, ((const struct entry *) b)->name);
}

struct name_index *name_index_create(uint32_t n, const char *(*name_at)(const void *context, uint32_t i), const void *context) {
        struct name_index *index = xcalloc(1, sizeof(*index) + sizeof(struct entry) * n);

        index->n = n;
        for (uint32_t i = 0; i < n; i++)
                index->entries[i] = (struct entry) { .name = name_at(context, i), .i = i };
        qsort(index->entries, n, sizeof(*index->entries), compare_entries);
        return index;
}

void name_index_destroy(struct name_index *index) {
        free(index);
}

int32_t name_index_find(const struct name_index *index, const char *name) {
        struct entry key = { .name = name };
        const struct entry *found = bsearch(&key, index->entries, index->n, sizeof(*index->entries), compare_entries);

        return found ? (int32_t) found->i : -1;
}

int32_t name_index_duplicate(const struct name_index *index) {
        for (uint32_t i = 1; i < index->n; i++)
                if (strcmp(index->entries[i - 1].name, index->entries[i].name) == 0)
                        return (int32_t) (index->entries[i - 1].i > index->entries[i].i ? index->entries[i - 1].i
                                                                                        : index->entries[i].i);
        return -1;
}
