#include "daemon/sched/name_index.h"

#include <stdlib.h>
#include <string.h>

#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"

struct entry {
        int32_t i;
        UT_hash_handle hh;
};

struct name_index {
        struct entry *by_name;
        int32_t duplicate;
        struct entry entries[];
};

struct name_index *name_index_create(uint32_t n, const char *(*name_at)(const void *context, uint32_t i), const void *context) {
        struct name_index *index = xcalloc(1, sizeof(*index) + sizeof(struct entry) * n);

        index->duplicate = -1;
        for (uint32_t i = 0; i < n; i++) {
                const char *name = name_at(context, i);
                struct entry *entry = &index->entries[i];

                entry->i = (int32_t) i;
                if (name_index_find(index, name) < 0)
                        HASH_ADD_KEYPTR(hh, index->by_name, name, strlen(name), entry);
                else if (index->duplicate < 0)
                        index->duplicate = (int32_t) i;
        }
        return index;
}

void name_index_destroy(struct name_index *index) {
        if (index)
                HASH_CLEAR(hh, index->by_name);
        free(index);
}

int32_t name_index_find(const struct name_index *index, const char *name) {
        const struct entry *found;

        HASH_FIND_STR(index->by_name, name, found);
        return found ? found->i : -1;
}

int32_t name_index_duplicate(const struct name_index *index) {
        return index->duplicate;
}
