/* Contents of one object as they come, in pieces of any size, into blocks. */
#ifndef RM_STORE_CONTENTS_H
#define RM_STORE_CONTENTS_H

#include "daemon/store/checkpoint.h"
#include "daemon/store/pack.h"

/* The contents of an object that is open. */
struct contents {
        struct packs *packs;
        struct store_figures *figures;
        struct blockmap *map;
        uint8_t *partial; /* a block that has not come whole; NULL: none ever was */
        uint64_t place;   /* of that one */
        size_t partial_bytes;
        bool has_partial;
};

void contents_finish(struct contents *c);

/* Writes data, or zeros, in place of the contents that are there. Errors as of packs_put();
 * -EBADMSG: a block that is replaced in part is damaged. */
int contents_write(struct contents *c, uint64_t offset, const void *data, size_t size_bytes, struct rm_error *err);
int contents_zero(struct contents *c, uint64_t offset, uint64_t size_bytes, struct rm_error *err);
/* The object ends at this size, whatever was written behind it. The same errors. */
int contents_end(struct contents *c, uint64_t size_bytes, struct rm_error *err);

#endif
