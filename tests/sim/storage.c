#include "tests/sim/storage.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/util.h"

struct storage {
        void *log;
        bool damaged;
};

static struct storage *storage_of(const struct host *host) {
        return host_part(host, HOST_STORAGE);
}

/* Each ends with its checksum, as what raft_uv writes begins with one. */
void storage_put(const struct host *host, enum storage_file file, uint64_t number, const void *data, size_t n) {
        uint64_t sum = XXH3_64bits(data, n);
        uint8_t *record = xcalloc(1, n + sizeof(sum));

        memcpy(record, data, n);
        memcpy(record + n, &sum, sizeof(sum));
        disk_write(host_part(host, HOST_DISK), file, number, record, n + sizeof(sum));
        free(record);
}

const void *storage_get(const struct host *host, enum storage_file file, uint64_t number, size_t *ret_n) {
        const uint8_t *data = disk_read(host_part(host, HOST_DISK), file, number, ret_n);
        uint64_t sum;

        if (!data)
                return NULL;
        *ret_n -= sizeof(sum);
        memcpy(&sum, data + *ret_n, sizeof(sum));
        if (sum == XXH3_64bits(data, *ret_n))
                return data;
        storage_of(host)->damaged = true;
        return NULL;
}

void storage_clear(const struct host *host) {
        for (unsigned i = 0; i < FILE_STORES; i++) {
                disk_remove(host_part(host, HOST_DISK), i, 0, UINT64_MAX);
                disk_sync_now(host_part(host, HOST_DISK), i);
        }
}

void storage_begin(struct host *host) {
        host_set_part(host, HOST_STORAGE, xcalloc(1, sizeof(struct storage)));
}

void storage_end(struct host *host) {
        free(host_part(host, HOST_STORAGE));
}

bool storage_damaged(const struct host *host) {
        return storage_of(host)->damaged;
}

void storage_repair(struct host *host) {
        disk_replace(host_part(host, HOST_DISK));
        storage_of(host)->damaged = false;
}

void *storage_log(const struct host *host) {
        return storage_of(host)->log;
}

void storage_set_log(struct host *host, void *log) {
        storage_of(host)->log = log;
}
