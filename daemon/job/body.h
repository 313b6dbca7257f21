/* The two halves of a job: what the cluster's state holds, and its LaunchBody, which is kept beside
 * the state by its digest. Pure. */
#ifndef RM_JOB_BODY_H
#define RM_JOB_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/state/state.h"

/* The beginnings of a command line and of a directory that stay in the state, for people, have at
 * most so many bytes. */
#define BODY_ARGV_SHOWN_BYTES 1024U
#define BODY_CWD_SHOWN_BYTES 512U

void body_digest(const uint8_t *data, size_t size_bytes, uint8_t ret[static STATE_DIGEST_BYTES]);

/* Take out of `spec` what is long: the environment, and a command line and directory over the sizes
 * above, of which a beginning stays. Returns the packed LaunchBody, malloc'ed, and its digest
 * stands in the spec; NULL with size 0: there is nothing to take out. */
uint8_t *body_split(Rm__JobSpec *spec, size_t *ret_size_bytes);

/* The spec as it was before body_split(); the caller's. NULL: `data` is no LaunchBody. */
Rm__JobSpec *body_join(const Rm__JobSpec *spec, const uint8_t *data, size_t size_bytes);

#endif
