/* Names to indices, for tables that do not change while they are read. */
#ifndef RM_SCHED_NAME_INDEX_H
#define RM_SCHED_NAME_INDEX_H

#include <stdint.h>

struct name_index;

/* `name_at` is called during create only; the names must outlive the index. */
struct name_index *name_index_create(uint32_t n, const char *(*name_at)(const void *context, uint32_t i), const void *context);
void name_index_destroy(struct name_index *index);
static inline void name_index_destroyp(struct name_index **index) {
        name_index_destroy(*index);
}
#define cleanup_name_index __attribute__((cleanup(name_index_destroyp)))

int32_t name_index_find(const struct name_index *index, const char *name); /* -1: not there */
/* Returns one of two elements with the same name, or -1. */
int32_t name_index_duplicate(const struct name_index *index);

#endif
