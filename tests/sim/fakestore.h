/* Stores of checkpoints (daemon/store/store.h) as rm-mover makes and reads them, on the disk of a
 * virtual host: packs, which later checkpoints of the same capsule need as well, and manifests,
 * each with a checksum. */
#ifndef RM_TESTS_SIM_FAKESTORE_H
#define RM_TESTS_SIM_FAKESTORE_H

#include <stddef.h>

#include "tests/sim/host.h"
#include "tests/sim/saved.h"

/* The directory of one capsule, malloc'ed: like stores_dir() of daemon/checkpoint. */
char *fakestore_dir(uint64_t job, int32_t index);

/* The new pack of a checkpoint; then its manifest, which needs also some packs of the one before.
 * Nothing is synced. */
void fakestore_put_pack(const struct host *host, const char *dir, uint64_t checkpoint);
void fakestore_put_manifest(const struct host *host, const char *dir, const struct saved *saved);
/* -ENOENT: there is no such checkpoint; -EBADMSG: its manifest or a pack is damaged; -ENODATA: a
 * pack is missing. `safe`: after a loss of power; `ret` NULL ok. */
int fakestore_load(const struct host *host, const char *dir, uint64_t checkpoint, bool safe, struct saved *ret);
/* Numbers of the manifests, ascending, malloc'ed. */
uint64_t *fakestore_list(const struct host *host, const char *dir, size_t *ret_n);
/* Names of the files of a checkpoint that can be loaded, the manifest last; malloc'ed as those of
 * files_list(). */
char **fakestore_files(const struct host *host, const char *dir, uint64_t checkpoint, size_t *ret_n);
/* Removes the checkpoint's manifest; its packs may be needed by others. */
void fakestore_remove(const struct host *host, const char *dir, uint64_t checkpoint);
/* Removes packs that no manifest needs; all stay if a manifest cannot be read. */
void fakestore_sweep(const struct host *host, const char *dir);

#endif
