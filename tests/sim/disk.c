#include "tests/sim/disk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/util.h"

/* The time of one sync, as on an SSD. */
#define SYNC_MIN_USEC 100
#define SYNC_MAX_USEC 600

/* Shared by the records and the writes that have it. */
struct blob {
        unsigned refs;
        size_t size_bytes;
        uint8_t data[];
};

struct record {
        uint64_t number;
        struct blob *blob;
};

/* The records by their numbers. */
struct records {
        struct record *list;
        size_t n, allocated;
};

/* A change that is not safe yet. */
struct change {
        uint64_t first, last;
        struct blob *blob; /* of record `first`; NULL: those from first to last are removed */
        STAILQ_ENTRY(change) entry;
};

struct file {
        struct records seen, safe;
        STAILQ_HEAD(, change) changes; /* from `safe` to `seen` */
        uint64_t n_made_safe, n_changes; /* since the beginning */
};

struct disk {
        struct host *host;
        struct file files[DISK_FILES];
        STAILQ_HEAD(, sync) syncs; /* in their order; the first is under way */
        unsigned slow;
        bool full, broken;
        uint64_t mended_usec; /* since when it is not broken any more; 0: it never was */
};

struct sync {
        unsigned file;
        uint64_t n_changes; /* these are made safe */
        uint64_t life;
        event_fn done, drop;
        void *userdata;
        STAILQ_ENTRY(sync) entry;
};

/* ---- records ---- */

static struct blob *blob_ref(struct blob *blob) {
        blob->refs++;
        return blob;
}

static void blob_unref(struct blob *blob) {
        if (blob && --blob->refs == 0)
                free(blob);
}

/* The first that is not below `number`. */
static size_t position(const struct records *records, uint64_t number) {
        size_t low = 0, high = records->n;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (records->list[middle].number < number)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static void records_set(struct records *records, uint64_t number, struct blob *blob) {
        size_t at = position(records, number);

        if (at < records->n && records->list[at].number == number) {
                blob_unref(records->list[at].blob);
                records->list[at].blob = blob_ref(blob);
                return;
        }
        if (records->n == records->allocated) {
                records->allocated = records->allocated ? 2 * records->allocated : 64;
                records->list = xrealloc(records->list, records->allocated * sizeof(*records->list));
        }
        memmove(records->list + at + 1, records->list + at, (records->n - at) * sizeof(*records->list));
        records->list[at] = (struct record) { number, blob_ref(blob) };
        records->n++;
}

static void records_remove(struct records *records, uint64_t first, uint64_t last) {
        size_t from = position(records, first), to = from;

        while (to < records->n && records->list[to].number <= last)
                blob_unref(records->list[to++].blob);
        if (to > from)
                memmove(records->list + from, records->list + to, (records->n - to) * sizeof(*records->list));
        records->n -= to - from;
}

static void records_change(struct records *records, const struct change *change) {
        if (change->blob)
                records_set(records, change->first, change->blob);
        else
                records_remove(records, change->first, change->last);
}

static void records_finish(struct records *records) {
        records_remove(records, 0, UINT64_MAX);
        free(records->list);
        memset(records, 0, sizeof(*records));
}

/* ---- files ---- */

static void change_file(struct file *file, uint64_t first, uint64_t last, struct blob *blob) {
        struct change *change = xcalloc(1, sizeof(*change));

        *change = (struct change) { .first = first, .last = last, .blob = blob };
        records_change(&file->seen, change);
        STAILQ_INSERT_TAIL(&file->changes, change, entry);
        file->n_changes++;
}

/* The first change: it is safe now, or lost. */
static void take_change(struct file *file, bool safe) {
        struct change *change = STAILQ_FIRST(&file->changes);

        STAILQ_REMOVE_HEAD(&file->changes, entry);
        if (safe)
                records_change(&file->safe, change);
        blob_unref(change->blob);
        free(change);
        file->n_made_safe++;
}

static void make_safe(struct file *file, uint64_t n_changes) {
        while (file->n_made_safe < n_changes)
                take_change(file, true);
}

struct disk *disk_create(struct host *host) {
        struct disk *disk = xcalloc(1, sizeof(*disk));

        disk->host = host;
        disk->slow = 1;
        host_set_part(host, HOST_DISK, disk);
        STAILQ_INIT(&disk->syncs);
        for (unsigned i = 0; i < DISK_FILES; i++)
                STAILQ_INIT(&disk->files[i].changes);
        return disk;
}

static void sync_drop(void *userdata);

void disk_destroy(struct disk *disk) {
        if (!disk)
                return;
        while (!STAILQ_EMPTY(&disk->syncs)) {
                struct sync *sync = STAILQ_FIRST(&disk->syncs);

                STAILQ_REMOVE_HEAD(&disk->syncs, entry);
                sync_drop(sync);
        }
        for (unsigned i = 0; i < DISK_FILES; i++) {
                struct file *file = &disk->files[i];

                while (!STAILQ_EMPTY(&file->changes))
                        take_change(file, false);
                records_finish(&file->seen);
                records_finish(&file->safe);
        }
        free(disk);
}

void disk_write(struct disk *disk, unsigned file, uint64_t number, const void *data, size_t size_bytes) {
        struct blob *blob = xcalloc(1, sizeof(*blob) + size_bytes);

        blob->refs = 1; /* the change's */
        blob->size_bytes = size_bytes;
        memcpy(blob->data, data, size_bytes);
        timeline_note(host_timeline(disk->host), data, size_bytes);
        change_file(&disk->files[file], number, number, blob);
}

void disk_remove(struct disk *disk, unsigned file, uint64_t first, uint64_t last) {
        const struct records *seen = &disk->files[file].seen;
        size_t at = position(seen, first);

        if (at < seen->n && seen->list[at].number <= last)
                change_file(&disk->files[file], first, last, NULL);
}

const void *disk_read(const struct disk *disk, unsigned file, uint64_t number, size_t *ret_bytes) {
        const struct records *seen = &disk->files[file].seen;
        size_t at = position(seen, number);

        if (at == seen->n || seen->list[at].number != number)
                return NULL;
        *ret_bytes = seen->list[at].blob->size_bytes;
        return seen->list[at].blob->data;
}

bool disk_range(const struct disk *disk, unsigned file, uint64_t *ret_first, uint64_t *ret_last) {
        const struct records *seen = &disk->files[file].seen;

        if (seen->n == 0)
                return false;
        *ret_first = seen->list[0].number;
        *ret_last = seen->list[seen->n - 1].number;
        return true;
}

const void *disk_next(const struct disk *disk, unsigned file, bool safe, uint64_t *number, size_t *ret_bytes) {
        const struct records *records = safe ? &disk->files[file].safe : &disk->files[file].seen;
        size_t at = position(records, *number);

        if (at == records->n)
                return NULL;
        *number = records->list[at].number;
        *ret_bytes = records->list[at].blob->size_bytes;
        return records->list[at].blob->data;
}

/* ---- syncs ---- */

static void sync_drop(void *userdata) {
        struct sync *sync = userdata;

        if (sync->drop)
                sync->drop(sync->userdata);
        free(sync);
}

static void sync_report(void *userdata) {
        struct sync *sync = userdata;
        struct sync copy = *sync;

        free(sync);
        copy.done(copy.userdata);
}

static void sync_begin(struct disk *disk);

/* The disk does its work, whatever has become of the process. After a loss of power there are fewer
 * changes than asked for. */
static void sync_end(void *userdata) {
        struct disk *disk = userdata;
        struct sync *sync = STAILQ_FIRST(&disk->syncs);
        struct file *file = &disk->files[sync->file];

        make_safe(file, sync->n_changes < file->n_changes ? sync->n_changes : file->n_changes);
        STAILQ_REMOVE_HEAD(&disk->syncs, entry);
        sync_begin(disk);
        host_deliver(disk->host, sync->life, sync_report, sync_drop, sync);
}

/* Syncs run one at a time, so that those that wait go on at the pace that the disk has then. */
static void sync_begin(struct disk *disk) {
        struct timeline *t = host_timeline(disk->host);

        if (!STAILQ_EMPTY(&disk->syncs))
                timeline_at(t, timeline_now_usec(t) + disk->slow * timeline_between(t, SYNC_MIN_USEC, SYNC_MAX_USEC), sync_end,
                            NULL, disk);
}

void disk_sync(struct disk *disk, unsigned file, event_fn done, event_fn drop, void *userdata) {
        struct sync *sync = xcalloc(1, sizeof(*sync));
        bool idle = STAILQ_EMPTY(&disk->syncs);

        *sync = (struct sync) { .file = file,
                                .n_changes = disk->files[file].n_changes,
                                .life = host_life(disk->host),
                                .done = done,
                                .drop = drop,
                                .userdata = userdata };
        STAILQ_INSERT_TAIL(&disk->syncs, sync, entry);
        if (idle)
                sync_begin(disk);
}

void disk_sync_now(struct disk *disk, unsigned file) {
        make_safe(&disk->files[file], disk->files[file].n_changes);
}

/* ---- faults ---- */

bool disk_full(const struct disk *disk) {
        return disk->full;
}

bool disk_broken(const struct disk *disk) {
        return disk->broken;
}

bool disk_was_broken(const struct disk *disk, uint64_t since_usec) {
        return disk->broken || (disk->mended_usec > 0 && disk->mended_usec >= since_usec);
}

static uint64_t file_power_loss(struct timeline *t, struct file *file) {
        uint64_t n = file->n_changes - file->n_made_safe;
        uint64_t kept = timeline_random(t, n + 1);

        make_safe(file, file->n_made_safe + kept);
        while (!STAILQ_EMPTY(&file->changes))
                take_change(file, false);
        records_finish(&file->seen);
        for (size_t i = 0; i < file->safe.n; i++)
                records_set(&file->seen, file->safe.list[i].number, file->safe.list[i].blob);
        return n - kept;
}

void disk_power_loss(struct disk *disk) {
        struct timeline *t = host_timeline(disk->host);
        uint64_t lost = 0;

        for (unsigned i = 0; i < DISK_FILES; i++)
                lost += file_power_loss(t, &disk->files[i]);
        timeline_trace(t, host_name(disk->host), "loses power, and %" PRIu64 " writes that were not synced", lost);
}

void disk_replace(struct disk *disk) {
        timeline_trace(host_timeline(disk->host), host_name(disk->host), "has a new disk");
        for (unsigned i = 0; i < DISK_FILES; i++) {
                while (!STAILQ_EMPTY(&disk->files[i].changes))
                        take_change(&disk->files[i], false);
                records_remove(&disk->files[i].seen, 0, UINT64_MAX);
                records_remove(&disk->files[i].safe, 0, UINT64_MAX);
        }
}

void disk_set_slow(struct disk *disk, unsigned times) {
        timeline_trace(host_timeline(disk->host), host_name(disk->host), "has a disk that is %u times as slow", times);
        disk->slow = times;
}

void disk_set_broken(struct disk *disk, bool broken) {
        timeline_trace(host_timeline(disk->host), host_name(disk->host), "has a disk %s errors", broken ? "with" : "without");
        if (disk->broken && !broken)
                disk->mended_usec = timeline_now_usec(host_timeline(disk->host));
        disk->broken = broken;
}

bool disk_damage(struct disk *disk) {
        struct timeline *t = host_timeline(disk->host);
        const struct records *records = &disk->files[timeline_random(t, DISK_FILES)].seen;
        const struct record *record;

        for (unsigned i = 0; i < DISK_FILES && records->n == 0; i++)
                records = &disk->files[i].seen;
        if (records->n == 0)
                return false;
        record = &records->list[timeline_random(t, records->n)];
        record->blob->data[timeline_random(t, record->blob->size_bytes)] ^= (uint8_t) (1U << timeline_random(t, 8));
        timeline_trace(t, host_name(disk->host), "has record %" PRIu64 " damaged on its disk", record->number);
        return true;
}

void disk_set_full(struct disk *disk, bool full) {
        timeline_trace(host_timeline(disk->host), host_name(disk->host), "has a disk %s", full ? "that is full" : "with room");
        disk->full = full;
}
