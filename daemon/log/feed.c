#include "daemon/log/feed.h"

#include <stdlib.h>

#include "common/util.h"

struct feed_entry {
        uint64_t index;
        uint8_t *data;
        size_t size_bytes;
};

/* A ring, oldest at `first`. `base`: the index of the last entry that is not held any more. */
struct feed {
        struct feed_entry *entries;
        size_t max_entries;
        size_t max_bytes;
        size_t first;
        size_t n;
        size_t bytes;
        uint64_t base;
};

struct feed *feed_create(size_t max_entries, size_t max_bytes) {
        struct feed *feed = xcalloc(1, sizeof(*feed));

        feed->entries = xcalloc(max_entries, sizeof(*feed->entries));
        feed->max_entries = max_entries;
        feed->max_bytes = max_bytes;
        return feed;
}

static void feed_drop_oldest(struct feed *feed) {
        struct feed_entry *entry = &feed->entries[feed->first];

        feed->base = entry->index;
        feed->bytes -= entry->size_bytes;
        free(entry->data);
        entry->data = NULL;
        feed->first = (feed->first + 1) % feed->max_entries;
        feed->n--;
}

void feed_reset(struct feed *feed, uint64_t index) {
        while (feed->n > 0)
                feed_drop_oldest(feed);
        feed->base = index;
}

void feed_destroy(struct feed *feed) {
        if (!feed)
                return;
        feed_reset(feed, 0);
        free(feed->entries);
        free(feed);
}

void feed_push(struct feed *feed, uint64_t index, const Rm__Command *command) {
        struct feed_entry *entry;

        if (feed->n == feed->max_entries)
                feed_drop_oldest(feed);
        entry = &feed->entries[(feed->first + feed->n) % feed->max_entries];
        entry->index = index;
        entry->size_bytes = rm__command__get_packed_size(command);
        entry->data = xcalloc(1, entry->size_bytes);
        (void) rm__command__pack(command, entry->data);
        feed->n++;
        feed->bytes += entry->size_bytes;
        while (feed->n > 0 && feed->bytes > feed->max_bytes)
                feed_drop_oldest(feed);
}

bool feed_covers(const struct feed *feed, uint64_t index) {
        return index >= feed->base;
}

Rm__Command *feed_next(const struct feed *feed, uint64_t after, uint64_t *ret_index) {
        const struct feed_entry *entry;
        Rm__Command *command;
        size_t low = 0, high = feed->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (feed->entries[(feed->first + middle) % feed->max_entries].index <= after)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == feed->n)
                return NULL;
        entry = &feed->entries[(feed->first + low) % feed->max_entries];
        command = rm__command__unpack(NULL, entry->size_bytes, entry->data);
        if (!command)
                abort();
        *ret_index = entry->index;
        return command;
}
