/* The pages of its own memory that a program has written, as rmd finds those of others
 * (daemon/pages/track.h): by asynchronous write protection, of Linux 6.7 and later. */
#ifndef RM_BENCH_RTLIB_WRITTEN_H
#define RM_BENCH_RTLIB_WRITTEN_H

#include <stddef.h>
#include <stdint.h>

enum { WRITTEN_PAGE_BYTES = 4096 };

struct written {
        int uffd, pagemap;
        uint8_t *memory;
        size_t bytes;
        uint8_t *pages; /* 1: it was written before the last call of written_take() */
};

/* Maps `bytes` of zeros, in small pages: protection of a huge one goes with its first write. Ends
 * the program if the kernel has no such protection. */
void written_begin(struct written *w, size_t bytes);
/* Begins to protect. The program pays for the first write to each page from then on. */
void written_protect(struct written *w);
/* Sets `pages` to those written since the call before, or since written_protect(), and protects
 * these again. */
void written_take(struct written *w);
void written_end(struct written *w);

#endif
