#include "tests/sim/files.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/sim/storage.h"

/* A record: the length of the path, the path, and what is in the file. */
struct record {
        uint64_t number;
        const char *path; /* not terminated; one of a record that is damaged is no path of ours */
        size_t path_bytes;
        const uint8_t *data;
        size_t data_bytes;
};

static struct disk *disk_of(const struct host *host) {
        return host_part(host, HOST_DISK);
}

/* The first one that is not below `number`. */
static bool next(const struct host *host, bool safe, uint64_t number, struct record *ret) {
        uint16_t path_bytes = 0;
        size_t n;
        const uint8_t *data = disk_next(disk_of(host), FILE_STORES, safe, &number, &n);

        if (!data)
                return false;
        memcpy(&path_bytes, data, sizeof(path_bytes));
        if (sizeof(path_bytes) + path_bytes > n)
                path_bytes = 0;
        *ret = (struct record) { .number = number,
                                 .path = (const char *) data + sizeof(path_bytes),
                                 .path_bytes = path_bytes,
                                 .data = data + sizeof(path_bytes) + path_bytes,
                                 .data_bytes = n - sizeof(path_bytes) - path_bytes };
        return true;
}

static bool is_at(const struct record *record, const char *path) {
        return record->path_bytes == strlen(path) && memcmp(record->path, path, record->path_bytes) == 0;
}

/* The name behind "DIR/"; NULL: the record is not below DIR. */
static const char *name_below(const struct record *record, const char *dir, size_t *ret_bytes) {
        size_t n = strlen(dir);

        if (record->path_bytes <= n + 1 || memcmp(record->path, dir, n) != 0 || record->path[n] != '/')
                return NULL;
        *ret_bytes = record->path_bytes - n - 1;
        return record->path + n + 1;
}

static bool find(const struct host *host, bool safe, const char *path, struct record *ret) {
        for (uint64_t number = 0; next(host, safe, number, ret); number = ret->number + 1)
                if (is_at(ret, path))
                        return true;
        return false;
}

static void write_record(const struct host *host, uint64_t number, const char *path, const void *data, size_t size_bytes) {
        uint16_t path_bytes = (uint16_t) strlen(path);
        size_t n = sizeof(path_bytes) + path_bytes + size_bytes;
        cleanup_free uint8_t *record = xcalloc(1, n);

        memcpy(record, &path_bytes, sizeof(path_bytes));
        memcpy(record + sizeof(path_bytes), path, path_bytes);
        if (size_bytes > 0)
                memcpy(record + sizeof(path_bytes) + path_bytes, data, size_bytes);
        disk_write(disk_of(host), FILE_STORES, number, record, n);
}

void files_write(const struct host *host, const char *path, const void *data, size_t size_bytes) {
        uint64_t first, last = 0;
        struct record record;

        if (find(host, false, path, &record))
                write_record(host, record.number, path, data, size_bytes);
        else if (disk_range(disk_of(host), FILE_STORES, &first, &last))
                write_record(host, last + 1, path, data, size_bytes);
        else
                write_record(host, 1, path, data, size_bytes);
}

const void *files_read(const struct host *host, const char *path, bool safe, size_t *ret_bytes) {
        struct record record;

        if (!find(host, safe, path, &record))
                return NULL;
        *ret_bytes = record.data_bytes;
        return record.data;
}

bool files_remove(const struct host *host, const char *path) {
        struct record record;

        if (!find(host, false, path, &record))
                return false;
        disk_remove(disk_of(host), FILE_STORES, record.number, record.number);
        return true;
}

bool files_rename(const struct host *host, const char *from, const char *to) {
        struct record record;
        bool any = false;

        if (find(host, false, from, &record))
                (void) files_remove(host, to);
        for (uint64_t number = 0; next(host, false, number, &record); number = record.number + 1) {
                size_t n = 0;
                const char *below = name_below(&record, from, &n);
                cleanup_free char *path = NULL;
                cleanup_free uint8_t *data = NULL;

                if (!below && !is_at(&record, from))
                        continue;
                path = below ? xasprintf("%s/%.*s", to, (int) n, below) : xstrdup(to);
                data = xcalloc(1, record.data_bytes + 1);
                memcpy(data, record.data, record.data_bytes);
                write_record(host, record.number, path, data, record.data_bytes);
                any = true;
        }
        return any;
}

void files_remove_tree(const struct host *host, const char *dir) {
        struct record record;
        size_t n;

        for (uint64_t number = 0; next(host, false, number, &record); number = record.number + 1)
                if (name_below(&record, dir, &n))
                        disk_remove(disk_of(host), FILE_STORES, record.number, record.number);
}

bool files_is_dir(const struct host *host, const char *dir) {
        struct record record;
        size_t n;

        for (uint64_t number = 0; next(host, false, number, &record); number = record.number + 1)
                if (name_below(&record, dir, &n))
                        return true;
        return false;
}

char **files_list(const struct host *host, const char *dir, size_t *ret_n) {
        struct record record;
        char **names = NULL;
        size_t n = 0, n_names = 0;

        for (uint64_t number = 0; next(host, false, number, &record); number = record.number + 1) {
                const char *below = name_below(&record, dir, &n);
                const char *slash = below ? memchr(below, '/', n) : NULL;
                char *name = below ? xasprintf("%.*s", slash ? (int) (slash - below) : (int) n, below) : NULL;

                if (!name || names_have(names, n_names, name)) {
                        free(name);
                        continue;
                }
                names = xrealloc(names, (n_names + 1) * sizeof(*names));
                names[n_names++] = name;
        }
        *ret_n = n_names;
        return names;
}

void files_list_free(char **names, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(names[i]);
        free(names);
}

void files_sync(const struct host *host, event_fn done, event_fn drop, void *userdata) {
        disk_sync(disk_of(host), FILE_STORES, done, drop, userdata);
}
