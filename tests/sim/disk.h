/* The disk of a host of the virtual world: a few files of numbered records. What was written is
 * read back at once, survives the end of the process, and is safe from a loss of power once it was
 * synced. Writes to one file reach the disk in their order. */
#ifndef RM_TESTS_SIM_DISK_H
#define RM_TESTS_SIM_DISK_H

#include "tests/sim/host.h"

#define DISK_FILES 6U

struct disk;

struct disk *disk_create(struct host *host);
void disk_destroy(struct disk *disk); /* NULL ok */

/* ---- for the process ---- */

/* Replaces a record of that number. Whether there is room is the caller's to ask: disk_full(). */
void disk_write(struct disk *disk, unsigned file, uint64_t number, const void *data, size_t size_bytes);
void disk_remove(struct disk *disk, unsigned file, uint64_t first, uint64_t last);
/* NULL: there is none. Valid until the file is changed. */
const void *disk_read(const struct disk *disk, unsigned file, uint64_t number, size_t *ret_bytes);
/* false: the file is empty. */
bool disk_range(const struct disk *disk, unsigned file, uint64_t *ret_first, uint64_t *ret_last);
/* The first record that is not below `*number`, which becomes its own. `safe`: of what a loss of
 * power would leave at least. NULL: there is none. Valid until the file is changed. */
const void *disk_next(const struct disk *disk, unsigned file, bool safe, uint64_t *number, size_t *ret_bytes);
/* Makes all that was written to the file safe; then `done` is called, in the order of these calls,
 * unless the process has ended: then `drop`, NULL ok. */
void disk_sync(struct disk *disk, unsigned file, event_fn done, event_fn drop, void *userdata);
/* At once, for the process waits. */
void disk_sync_now(struct disk *disk, unsigned file);
bool disk_full(const struct disk *disk);
/* Reads and writes of the disk fail: the caller is to ask. */
bool disk_broken(const struct disk *disk);
/* Is it broken, or was it after that time (of the timeline)? */
bool disk_was_broken(const struct disk *disk, uint64_t since_usec);

/* ---- for the world ---- */

/* The disk loses its power: only a part of the writes that are not safe, from the beginning, is
 * there afterwards. The process must be dead. */
void disk_power_loss(struct disk *disk);
/* So many times as slow as a good one; 1: good. */
void disk_set_slow(struct disk *disk, unsigned times);
void disk_set_full(struct disk *disk, bool full);
void disk_set_broken(struct disk *disk, bool broken);
/* Another, empty one in its place. The process must be dead. */
void disk_replace(struct disk *disk);
/* A bit of a record is another from now on. false: there are no records. */
bool disk_damage(struct disk *disk);

#endif
