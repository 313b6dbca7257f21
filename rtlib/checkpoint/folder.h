/* The folder of a program's portable checkpoints: rmrt-N.manifest, and rmrt-N.rank-R of each
 * rank. */
#ifndef RM_RTLIB_CHECKPOINT_FOLDER_H
#define RM_RTLIB_CHECKPOINT_FOLDER_H

#include "rtlib/checkpoint/manifest.h"

/* The folder's descriptor. `create`: with its parents, for the user alone. */
int folder_open(const char *path, bool create, struct rm_error *err);

/* Numbers of manifests, the newest first; malloc'ed. `ret_last`, NULL ok: the largest number of any
 * file. */
int folder_list(int dir, uint64_t **ret, size_t *ret_n, uint64_t *ret_last, struct rm_error *err);

/* -EBADMSG: also if it is not there, or the one of another number. */
int folder_read_manifest(int dir, uint64_t number, Portable__Manifest **ret, uint8_t *ret_digest, struct rm_error *err);
/* At once, and on the disk. */
int folder_write_manifest(int dir, const Portable__Manifest *m, uint8_t *ret_digest, struct rm_error *err);

/* Descriptors. Never of what is there already; -EBADMSG: it is missing. */
int folder_create_rank(int dir, uint64_t number, size_t rank, struct rm_error *err);
int folder_open_rank(int dir, uint64_t number, size_t rank, struct rm_error *err);
/* -ENOENT: this node does not see it. */
int folder_rank_bytes(int dir, uint64_t number, size_t rank, uint64_t *ret, struct rm_error *err);
void folder_remove_rank(int dir, uint64_t number, size_t rank);

/* All but the newest `keep` checkpoints, those that they build on, and what is newer. None, if one
 * of these cannot be read: what it builds on might be lost. What cannot be removed now will be
 * later. */
void folder_keep(int dir, size_t keep);

#endif
