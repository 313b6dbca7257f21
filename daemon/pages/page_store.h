/* The copy of a process's pages where it is to go on: a file in memory whose offsets are the
 * addresses. What is there is to be given to the process; a hole is a page of zeros, or one that it
 * has. The file is the whole state: another store can go on with it. */
#ifndef RM_PAGES_PAGE_STORE_H
#define RM_PAGES_PAGE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_store;

/* Addresses and sizes are of whole pages; [start, end) below STORE_END. Others are refused with
 * -EINVAL, so they may come from outside. */
#define STORE_END (UINT64_C(1) << 56)

/* `name` is what it reads as in /proc. 0 or -errno. */
int page_store_create(const char *name, struct page_store **ret);
/* Takes over a file that another store made and that no other process changes any more; looks once
 * for what is there. Owns `fd` on success. */
int page_store_adopt(int fd, struct page_store **ret);
void page_store_destroy(struct page_store *store); /* NULL ok */

/* The file, which the store keeps. */
int page_store_fd(const struct page_store *store);
uint64_t page_store_bytes(const struct page_store *store);

/* Pages in place of those that were there. -ENOMEM, -ENOSPC: there is no room; some may have been
 * written. */
int page_store_write(struct page_store *store, uint64_t address, const void *data, size_t size_bytes);

/* Pages of zeros in place of those that were there: holes, of which the store remembers that they
 * came. */
int page_store_zero(struct page_store *store, uint64_t start, uint64_t end);
/* The first of these pages that has not come, with page_store_write() or page_store_zero();
 * `end`: each has. Not of a store that was adopted. */
uint64_t page_store_missing(const struct page_store *store, uint64_t start, uint64_t end);
uint64_t page_store_come_bytes(const struct page_store *store);

/* Keep only what is told: page_store_keep() for each run that there is, in any order, then
 * page_store_drop_others(), which returns what was not told. */
int page_store_keep(struct page_store *store, uint64_t start, uint64_t end);
int page_store_drop_others(struct page_store *store);

/* Holes in place of what is there, if anything is. */
int page_store_drop(struct page_store *store, uint64_t start, uint64_t end);

/* The first run at or behind `from`, or its part from there on, of at most `max_bytes`. False:
 * there is none. */
bool page_store_next(const struct page_store *store, uint64_t from, uint64_t max_bytes, uint64_t *ret_start, uint64_t *ret_end);
bool page_store_has(const struct page_store *store, uint64_t address);

/* Pages that are there. The store keeps them. */
int page_store_read(const struct page_store *store, uint64_t address, void *data, size_t size_bytes);

/* Moves the pages of [from, from + size_bytes) to `to`; the two may not overlap. The pages that
 * were at `to` are gone. */
int page_store_move(struct page_store *store, uint64_t from, uint64_t to, uint64_t size_bytes);
/* Copies all pages of `from` into `store`. */
int page_store_copy(const struct page_store *from, struct page_store *store);

#endif
