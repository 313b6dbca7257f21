/* Pages of a process by their addresses, as bits. */
#ifndef RM_DAEMON_PAGES_PAGESET_H
#define RM_DAEMON_PAGES_PAGESET_H

#include <stdbool.h>
#include <stdint.h>

struct pageset;

struct pageset *pageset_create(void); /* never NULL */
void pageset_destroy(struct pageset *set); /* NULL ok */

/* Whole pages, below STORE_END (store.h): -EINVAL otherwise, so that they may come from outside. 32
 * MiB of addresses take 1 KiB, however few pages of them are in the set: a caller that adds ranges
 * from outside must limit their width. */
int pageset_add(struct pageset *set, uint64_t start, uint64_t end);
/* Any range; also wider than all there is. */
void pageset_remove(struct pageset *set, uint64_t start, uint64_t end);

/* Adds what `from` has of [start, end). */
void pageset_add_common(struct pageset *set, const struct pageset *from, uint64_t start, uint64_t end);

bool pageset_has(const struct pageset *set, uint64_t address);
uint64_t pageset_bytes(const struct pageset *set);
/* The first run at or behind `from`, or its part from there on, of at most `max_bytes`, and not
 * over a multiple of 32 MiB. False: there is none. */
bool pageset_next(const struct pageset *set, uint64_t from, uint64_t max_bytes, uint64_t *ret_start, uint64_t *ret_end);

/* Writes the set to where `fd` stands: runs by address, each of two numbers of 8 bytes, little
 * endian: its start and end, in a part of 32 MiB. 0 or -errno. */
int pageset_save(const struct pageset *set, int fd);
/* Reads a set from where `fd` stands to its end. -EBADMSG: pageset_save() has not written that, or
 * not to its end; of a file of n bytes at most 64 n bytes of memory are used. */
int pageset_load(int fd, struct pageset **ret);

#endif
