#include "daemon/pages/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/openat.h"
#include "common/util.h"

/* The name comes last. It is the kernel's own word only in brackets and without an inode: names of
 * files begin with '/', and those that a program gives its memory with "[anon". */
static enum map_kind kind_of(const char *access, uint64_t inode, const char *name) {
        if (inode == 0 && strcmp(name, "[vdso]") == 0)
                return access[2] == 'x' ? MAP_KIND_VDSO : MAP_KIND_KERNEL;
        if (inode == 0 && (strncmp(name, "[v", 2) == 0 || strcmp(name, "[uprobes]") == 0))
                return MAP_KIND_KERNEL;
        if (access[3] != 'p')
                return MAP_KIND_SHARED;
        return inode == 0 && name[0] != '/' ? MAP_KIND_LAZY : MAP_KIND_PRIVATE_FILE;
}

int map_parse(const char *line, struct map *ret) {
        char access[5];
        char name[16] = ""; /* enough to tell the kernel's */
        uint64_t start, end, inode;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %" SCNu64 " %15[^\n]", &start, &end, access, &inode, name) < 4 ||
            strlen(access) != 4 || start >= end || start % PAGES_PAGE_BYTES != 0 || end % PAGES_PAGE_BYTES != 0)
                return -EBADMSG;
        *ret = (struct map) { .start = start, .end = end, .kind = kind_of(access, inode, name) };
        return 0;
}

static int add(struct maps *maps, const char *line) {
        maps->items = xgrow(maps->items, maps->n, sizeof(*maps->items));
        return map_parse(line, &maps->items[maps->n++]);
}

int maps_read(int proc_fd, struct maps *ret) {
        cleanup_file FILE *f = fopen_at(proc_fd, "maps");
        cleanup_free char *line = NULL;
        struct maps maps = { 0 };
        size_t space = 0;
        int r = 0;

        if (!f)
                return errno == ENOENT ? -ESRCH : -errno;
        while (r == 0 && getline(&line, &space, f) > 0)
                r = add(&maps, line);
        if (r == 0 && ferror(f))
                r = -EIO;
        if (r == 0 && maps.n == 0)
                r = -ESRCH;
        if (r < 0) {
                maps_finish(&maps);
                return r;
        }
        *ret = maps;
        return 0;
}

void maps_finish(struct maps *maps) {
        free(maps->items);
        *maps = (struct maps) { 0 };
}

uint64_t maps_end(const struct maps *maps, enum map_kind kind) {
        for (size_t i = maps->n; i-- > 0;)
                if (maps->items[i].kind == kind)
                        return maps->items[i].end;
        return 0;
}
