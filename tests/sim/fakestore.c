#include "tests/sim/fakestore.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/util.h"
#include "daemon/store/directory.h"
#include "tests/sim/files.h"
#include "tests/sim/kept.h"

#define PACKS_MAX 8U
#define PACK_MAX_BYTES 400U

struct manifest {
        uint64_t n_packs;
        uint64_t packs[PACKS_MAX];
        struct saved saved;
};

char *fakestore_dir(uint64_t job, int32_t index) {
        cleanup_free char *dir = xasprintf("%s/%" PRIu64, FILES_ROOT, job);

        return directory_of_capsule(dir, index);
}

static char *pack_path(const char *dir, uint64_t number) {
        char name[DIRECTORY_NAME_BYTES];

        directory_pack_name(number, name);
        return xasprintf("%s/%s", dir, name);
}

static char *manifest_path(const char *dir, uint64_t number) {
        char name[DIRECTORY_NAME_BYTES];

        directory_manifest_name(number, name);
        return xasprintf("%s/%s", dir, name);
}

/* With its checksum, which is also of its name: what lies under another one is damaged. */
static void put(const struct host *host, const char *path, const void *data, size_t n) {
        uint64_t sum = XXH3_64bits_withSeed(data, n, XXH3_64bits(strrchr(path, '/'), strlen(strrchr(path, '/'))));
        cleanup_free uint8_t *file = xcalloc(1, n + sizeof(sum));

        memcpy(file, data, n);
        memcpy(file + n, &sum, sizeof(sum));
        files_write(host, path, file, n + sizeof(sum));
}

/* -ENOENT, or -EBADMSG. */
static int get(const struct host *host, const char *path, bool safe, const void **ret, size_t *ret_n) {
        size_t n;
        const uint8_t *data = files_read(host, path, safe, &n);
        uint64_t sum;

        if (!data)
                return -ENOENT;
        if (n < sizeof(sum))
                return -EBADMSG;
        n -= sizeof(sum);
        memcpy(&sum, data + n, sizeof(sum));
        if (sum != XXH3_64bits_withSeed(data, n, XXH3_64bits(strrchr(path, '/'), strlen(strrchr(path, '/')))))
                return -EBADMSG;
        *ret = data;
        *ret_n = n;
        return 0;
}

static int read_manifest(const struct host *host, const char *dir, uint64_t checkpoint, bool safe, struct manifest *ret) {
        cleanup_free char *path = manifest_path(dir, checkpoint);
        const void *data;
        size_t n;
        int r = get(host, path, safe, &data, &n);

        if (r == 0 && n != sizeof(*ret))
                r = -EBADMSG;
        if (r == 0)
                memcpy(ret, data, sizeof(*ret));
        return r;
}

/* ---- saving ---- */

void fakestore_put_pack(const struct host *host, const char *dir, uint64_t checkpoint) {
        uint8_t data[PACK_MAX_BYTES] = { 0 };
        cleanup_free char *path = pack_path(dir, checkpoint);
        size_t n = 16 + timeline_random(host_timeline(host), PACK_MAX_BYTES - 16);

        memcpy(data, &checkpoint, sizeof(checkpoint));
        data[8] = (uint8_t) timeline_random(host_timeline(host), 256);
        put(host, path, data, n);
}

/* Adds blocks of the last checkpoint before it, of which many are still as they were. */
static void add_older(const struct host *host, const char *dir, uint64_t checkpoint, struct manifest *manifest) {
        size_t n;
        cleanup_free uint64_t *numbers = fakestore_list(host, dir, &n);
        struct manifest last;

        for (; n > 0; n--)
                if (numbers[n - 1] < checkpoint && fakestore_load(host, dir, numbers[n - 1], false, NULL) == 0)
                        break;
        if (n == 0 || read_manifest(host, dir, numbers[n - 1], false, &last) < 0)
                return;
        for (uint64_t i = 0; i < last.n_packs && manifest->n_packs < PACKS_MAX; i++)
                if (timeline_random(host_timeline(host), 2))
                        manifest->packs[manifest->n_packs++] = last.packs[i];
}

void fakestore_put_manifest(const struct host *host, const char *dir, const struct saved *saved) {
        cleanup_free char *path = manifest_path(dir, saved->checkpoint);
        struct manifest manifest;

        memset(&manifest, 0, sizeof(manifest));
        manifest.packs[manifest.n_packs++] = saved->checkpoint;
        add_older(host, dir, saved->checkpoint, &manifest);
        manifest.saved = *saved;
        put(host, path, &manifest, sizeof(manifest));
}

/* ---- loading ---- */

int fakestore_load(const struct host *host, const char *dir, uint64_t checkpoint, bool safe, struct saved *ret) {
        struct manifest manifest;
        int r = read_manifest(host, dir, checkpoint, safe, &manifest);

        for (uint64_t i = 0; r == 0 && i < manifest.n_packs; i++) {
                cleanup_free char *path = pack_path(dir, manifest.packs[i]);
                const void *data;
                size_t n;

                r = get(host, path, safe, &data, &n);
                if (r == -ENOENT)
                        r = -ENODATA;
        }
        if (r == 0 && ret)
                *ret = manifest.saved;
        return r;
}

static int compare_numbers(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

uint64_t *fakestore_list(const struct host *host, const char *dir, size_t *ret_n) {
        size_t n_names, n = 0;
        char **names = files_list(host, dir, &n_names);
        uint64_t *numbers = xcalloc(n_names + 1, sizeof(*numbers));

        for (size_t i = 0; i < n_names; i++)
                if (directory_manifest_number(names[i]) > 0)
                        numbers[n++] = directory_manifest_number(names[i]);
        files_list_free(names, n_names);
        qsort(numbers, n, sizeof(*numbers), compare_numbers);
        *ret_n = n;
        return numbers;
}

char **fakestore_files(const struct host *host, const char *dir, uint64_t checkpoint, size_t *ret_n) {
        struct manifest manifest;
        char **names;

        if (read_manifest(host, dir, checkpoint, false, &manifest) < 0)
                manifest.n_packs = 0;
        names = xcalloc(manifest.n_packs + 1, sizeof(*names));
        for (uint64_t i = 0; i <= manifest.n_packs; i++)
                names[i] = xcalloc(1, DIRECTORY_NAME_BYTES);
        for (uint64_t i = 0; i < manifest.n_packs; i++)
                directory_pack_name(manifest.packs[i], names[i]);
        directory_manifest_name(checkpoint, names[manifest.n_packs]);
        *ret_n = manifest.n_packs + 1;
        return names;
}

/* ---- what goes ---- */

void fakestore_remove(const struct host *host, const char *dir, uint64_t checkpoint) {
        cleanup_free char *path = manifest_path(dir, checkpoint);

        kept_before(host);
        (void) files_remove(host, path);
        kept_after(host, path);
}

/* False: a manifest cannot be read, and may need any. */
static bool is_needed(const struct host *host, const char *dir, uint64_t pack, bool *ret) {
        size_t n;
        cleanup_free uint64_t *numbers = fakestore_list(host, dir, &n);
        struct manifest manifest;

        *ret = false;
        for (size_t i = 0; i < n; i++) {
                if (read_manifest(host, dir, numbers[i], false, &manifest) < 0)
                        return false;
                for (uint64_t k = 0; k < manifest.n_packs; k++)
                        *ret |= manifest.packs[k] == pack;
        }
        return true;
}

void fakestore_sweep(const struct host *host, const char *dir) {
        size_t n;
        char **names = files_list(host, dir, &n);

        for (size_t i = 0; i < n; i++) {
                uint64_t pack = directory_pack_number(names[i]);
                cleanup_free char *path = xasprintf("%s/%s", dir, names[i]);
                bool needed;

                if (pack == 0 || !is_needed(host, dir, pack, &needed) || needed)
                        continue;
                kept_before(host);
                (void) files_remove(host, path);
                kept_after(host, path);
        }
        files_list_free(names, n);
}
