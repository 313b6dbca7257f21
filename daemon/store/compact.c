#include <string.h>

#include "common/util.h"
#include "daemon/store/internal.h"

/* More would take as many files to open, and to copy, however little each of them has. */
#define PACKS_REQUESTED 64U

struct use {
        struct pack *pack;
        uint64_t bytes; /* in use, compressed */
};

static uint64_t block_bytes(const struct index *ix, uint32_t block) {
        const struct index_frame *f = &ix->frames[ix->blocks[block].frame];

        return (uint64_t) ix->blocks[block].size_bytes * f->payload_bytes / f->raw_bytes + PACK_ENTRY_BYTES;
}

static int use_compare(const void *a, const void *b) {
        const struct use *x = a, *y = b;

        if (x->bytes != y->bytes)
                return x->bytes < y->bytes ? -1 : 1;
        return (x->pack->number > y->pack->number) - (x->pack->number < y->pack->number);
}

/* Older packs of which something is in use, those with least first. malloc'ed. */
static struct use *uses_count(const struct packs *p, const uint8_t *used, size_t *ret_n, uint64_t *ret_all_bytes) {
        struct use *uses = xcalloc(p->n + 1, sizeof(*uses));
        size_t n = 0;

        *ret_all_bytes = 0;
        for (size_t i = 0; i < p->n; i++)
                uses[i].pack = p->list[i];
        for (uint32_t k = 0; k < p->index.n_frames; k++) {
                const struct index_frame *f = &p->index.frames[k];
                struct use *use = uses;

                while (use->pack != f->pack)
                        use++;
                for (uint8_t i = 0; i < f->n && f->pack != packs_built(p); i++)
                        if (compact_bit(used, f->blocks[i]) && p->index.blocks[f->blocks[i]].frame == k)
                                use->bytes += block_bytes(&p->index, f->blocks[i]);
        }
        for (size_t i = 0; i < p->n; i++) {
                *ret_all_bytes += uses[i].bytes;
                if (uses[i].bytes > 0)
                        uses[n++] = uses[i];
        }
        qsort(uses, n, sizeof(*uses), use_compare);
        *ret_n = n;
        return uses;
}

/* Takes over blocks of the pack as far as `*left_bytes` goes; the rest is taken the next time. A
 * damaged block stays where it is, and is found when it is read. */
static int pack_take_over(struct packs *p, const struct pack *pack, const uint8_t *used, uint64_t *left_bytes, uint64_t *moved,
                          struct rm_error *err) {
        uint32_t n_frames = p->index.n_frames;

        for (uint32_t k = 0; k < n_frames; k++)
                for (uint8_t i = 0; p->index.frames[k].pack == pack && i < p->index.frames[k].n; i++) {
                        uint32_t block = p->index.frames[k].blocks[i];
                        uint64_t bytes = block_bytes(&p->index, block);
                        int r;

                        if (!compact_bit(used, block) || p->index.blocks[block].frame != k)
                                continue;
                        if (bytes > *left_bytes)
                                return 0;
                        r = packs_take_over(p, block, err);
                        if (r == -EBADMSG)
                                continue;
                        if (r < 0)
                                return r;
                        *left_bytes -= bytes;
                        ++*moved;
                }
        return 0;
}

int compact(struct packs *p, const uint8_t *used, uint64_t *ret_moved_blocks, struct rm_error *err) {
        uint64_t all_bytes = 0, left_bytes = packs_built(p)->size_bytes;
        size_t n = 0;
        cleanup_free struct use *uses = uses_count(p, used, &n, &all_bytes);
        int r = 0;

        if (left_bytes < all_bytes / 4)
                left_bytes = all_bytes / 4;
        for (size_t i = 0; r == 0 && i < n; i++)
                if (uses[i].bytes < uses[i].pack->size_bytes / 2 || n - i > PACKS_REQUESTED)
                        r = pack_take_over(p, uses[i].pack, used, &left_bytes, ret_moved_blocks, err);
        return r;
}
