#include "daemon/leader/switches_file.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/node/file_stamp.h"
#include "daemon/node/user_file.h"

struct switches_file {
        const struct config *config;
        struct file_stamp seen; /* at the last call */
        struct file_stamp read; /* when it was read last */
        struct switches list;
        char *error;
};

/* Opening, rather than stat(), makes network file systems ask the server. */
static struct file_stamp scan_now(const struct switches_file *file) {
        struct stat st;
        int fd = -1;
        int r = user_file_open(file->config->topology, USER_NONE, 0, &fd, &st);

        if (r == 0)
                (void) close(fd);
        return file_stamp_of(r, &st);
}

static void read_now(struct switches_file *file) {
        struct switches list = { 0 };
        struct rm_error err = { 0 };
        int r;

        file->read = file->seen;
        if (file->seen.error < 0)
                r = error_sys(&err, file->seen.error, "[cluster] topology: cannot read %s", file->config->topology);
        else
                r = config_load_switches(file->config, &list, &err);
        free(file->error);
        file->error = r < 0 ? xstrdup(error_text(&err)) : NULL;
        if (r < 0)
                return;
        switches_finish(&file->list);
        file->list = list;
}

bool switches_file_scan(struct switches_file *file) {
        struct file_stamp now;
        bool same;

        if (!file->config->topology[0])
                return false;
        now = scan_now(file);
        same = file_stamp_equal(&now, &file->seen);
        file->seen = now;
        if (!same || file_stamp_equal(&now, &file->read))
                return false;
        read_now(file);
        return true;
}

const struct switches *switches_file_list(const struct switches_file *file) {
        return &file->list;
}

const char *switches_file_error(const struct switches_file *file) {
        return file->error;
}

struct switches_file *switches_file_create(const struct config *config) {
        struct switches_file *file = xcalloc(1, sizeof(*file));

        file->config = config;
        if (config->topology[0]) {
                file->seen = scan_now(file);
                read_now(file);
        }
        return file;
}

void switches_file_destroy(struct switches_file *file) {
        if (!file)
                return;
        switches_finish(&file->list);
        free(file->error);
        free(file);
}
