/* The copy of a process's pages where it is to go on: a file in memory whose offsets are the addresses. What is there is to be given to the
 * process; a hole is a page of zeros, or one that it has. The file is the whole state: another store can go on with it. */
#ifndef RM_DAEMON_PAGES_STORE_H
#define RM_DAEMON_PAGES_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/* Addresses and sizes are of whole pages; [start, end) below STORE_END. Others are refused with -EINVAL, so they may come from outside. */
#define STORE_END (UINT64_C(1) << 56)

/* `name` is what it reads as in /proc. 0 or -errno. */
int store_create(const char *name, struct store **ret);
/* Takes over a file that another store made and that nobody else changes any more; looks once for what is there. Owns `fd` on success. */
int store_adopt(int fd, struct store **ret);
void store_destroy(struct store *store); /* NULL ok */

/* The file, which the store keeps. */
int store_fd(const struct store *store);
uint64_t store_bytes(const struct store *store);

/* Pages in place of those that were there. -ENOMEM, -ENOSPC: there is no room; some may have been written. */
int store_write(struct store *store, uint64_t address, const void *data, size_t size_bytes);

/* Pages of zeros in place of those that were there: holes, of which the store remembers that they came. */
int store_zero(struct store *store, uint64_t start, uint64_t end);
/* Has each of these pages come, with store_write() or store_zero()? Not of a store that was adopted. */
bool store_has_come(const struct store *store, uint64_t start, uint64_t end);

/* Keep only what is told: store_keep() for each run that there is, in any order, then store_drop_others(), which returns what was not told. */
int store_keep(struct store *store, uint64_t start, uint64_t end);
int store_drop_others(struct store *store);

/* Holes in place of what is there, if anything is. */
int store_drop(struct store *store, uint64_t start, uint64_t end);

/* The first run at or behind `from`, or its part from there on, of at most `max_bytes`. False: there is none. */
bool store_next(const struct store *store, uint64_t from, uint64_t max_bytes, uint64_t *ret_start, uint64_t *ret_end);
bool store_has(const struct store *store, uint64_t address);

/* Pages that are there. The store keeps them. */
int store_read(const struct store *store, uint64_t address, void *data, size_t size_bytes);

/* What [from, from + size_bytes) has moves to `to`; the two may not overlap. What was at `to` is gone. */
int store_move(struct store *store, uint64_t from, uint64_t to, uint64_t size_bytes);
/* All that is in `from`, into `store` too. */
int store_copy(const struct store *from, struct store *store);

#endif
