/* A checkpoint in memory: its objects, and the numbers of their blocks. */
#ifndef RM_STORE_CHECKPOINT_H
#define RM_STORE_CHECKPOINT_H

#include "daemon/image/attributes.h"
#include "daemon/pages/pageset.h"
#include "daemon/store/blockmap.h"
#include "daemon/store/store.h"

#define CHECKPOINT_METAS_MAX 8U

struct checkpoint_object {
        struct image_object o; /* owns its strings */
        struct image_attributes attributes; /* to which o refers */
        uint64_t size_bytes;
        struct blockmap *map;    /* NULL: a kind without contents */
        struct pageset *present; /* of PAGES: those that there are */
        bool dropped;            /* not part of it after all */
};

struct checkpoint_meta {
        char *name;
        uint8_t *data;
        size_t size_bytes;
};

/* A pack that it needs. */
struct checkpoint_pack {
        uint64_t number;
        uint64_t size_bytes;
};

struct checkpoint {
        uint64_t number;
        uint64_t raw_bytes;
        struct store_origin origin;
        struct checkpoint_object **objects; /* in the order in which they are placed */
        size_t n_objects;
        size_t space;
        struct checkpoint_meta metas[CHECKPOINT_METAS_MAX];
        size_t n_metas;
        struct checkpoint_pack *packs; /* ascending */
        size_t n_packs;
};

struct checkpoint *checkpoint_create(uint64_t number);
void checkpoint_destroy(struct checkpoint *c); /* NULL ok */

struct checkpoint_object *checkpoint_object_create(const struct image_object *o); /* copies */
void checkpoint_object_destroy(struct checkpoint_object *object); /* NULL ok */

/* Takes it. -EFBIG: over IMAGE_OBJECTS_MAX. */
int checkpoint_add(struct checkpoint *c, struct checkpoint_object *object, struct rm_error *err);
/* Copies. -EINVAL, -EFBIG. */
int checkpoint_add_meta(struct checkpoint *c, const char *name, const void *data, size_t size_bytes, struct rm_error *err);
/* Removes the objects that were dropped. */
void checkpoint_close_up(struct checkpoint *c);
void checkpoint_add_pack(struct checkpoint *c, uint64_t number, uint64_t size_bytes);

/* The object's name for messages, malloc'ed. */
char *checkpoint_object_label(const struct checkpoint_object *object);

#endif
