/* The records that rmd keeps on the disk of a virtual host: with checksums, as raft_uv's. */
#ifndef RM_TESTS_SIM_STORAGE_H
#define RM_TESTS_SIM_STORAGE_H

#include "tests/sim/disk.h"

/* Records of the log and of snapshots have their index as number. Those of FILE_STORES are files
 * (files.h), and none of the log's. */
enum storage_file { FILE_VOTE, FILE_LOG, FILE_SNAPSHOTS, FILE_IDENTITY, FILE_KNOWN, FILE_STORES };

/* For all lives of the host's process. */
void storage_begin(struct host *host);
void storage_end(struct host *host);

void storage_put(const struct host *host, enum storage_file file, uint64_t number, const void *data, size_t n);
/* NULL: there is none, or it is another than was written. Valid until the file is changed. */
const void *storage_get(const struct host *host, enum storage_file file, uint64_t number, size_t *ret_n);
/* Nothing of the log is there, whatever happens. */
void storage_clear(const struct host *host);

/* A record was not read as it was written. */
bool storage_damaged(const struct host *host);
/* As an administrator does: another, empty disk. */
void storage_repair(struct host *host);

/* The data of raftio.c while the log is open; NULL: it is not. */
void *storage_log(const struct host *host);
void storage_set_log(struct host *host, void *log);

#endif
