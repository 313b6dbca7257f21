/* A child with the owner's rights looks at what lies where his paths lead. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/criu/link_remap.h"
#include "daemon/capsule/init/verify/blocker_scan_internal.h"

enum { OWNER_USEC = 5000000, NAMELESS_MAX = 1024 };

/* ---- files that he may not be able to read ---- */

static void suspect_path(const struct suspect *suspect, char path[64]) {
        (void) snprintf(path, 64, "%d/fd/%d", (int) suspect->pid, suspect->fd);
}

/* As the owner, the same files. What was closed meanwhile is nobody's. */
static void open_suspects(int error, int report_fd, const void *arg) {
        const struct scan *scan = arg;
        size_t i = error < 0 ? 0 : scan->n_suspects;

        for (size_t k = 0; error == 0 && k < scan->n_suspects && i == scan->n_suspects; k++) {
                char path[64];
                int fd;

                suspect_path(&scan->suspects[k], path);
                fd = openat(scan->scope->proc, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (fd < 0 && errno != ENOENT)
                        i = k;
                cleanup_close_fd(&fd);
        }
        (void) write_all(report_fd, &i, sizeof(i));
}

void scan_suspects(struct scan *scan) {
        size_t i = 0;
        char path[64], link[PATH_MAX];
        ssize_t n;

        if (scan->n_suspects == 0)
                return;
        (void) identity_ask(scan->scope->spec, 0, open_suspects, scan, OWNER_USEC, &i, sizeof(i));
        if (i >= scan->n_suspects)
                return;
        suspect_path(&scan->suspects[i], path);
        n = readlinkat(scan->scope->proc, path, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = '\0';
        scan->pid = scan->suspects[i].pid;
        scan_note(scan, BLOCKER_UNREADABLE, link);
}

/* ---- files that may have lost the names that they were opened by ---- */

/* CRIU finds the file by a link that it makes. */
static void note_lost(struct scan *scan, dev_t dev, const char *link) {
        scan->needs->remap = true;
        if (!scan->needs->linked && !scan_is_own(scan, dev))
                scan->needs->linked = xstrdup(link);
}

/* Where there are too many to ask for, the others have lost their names. */
void scan_name(struct scan *scan, int fds, const char *number, const char *link) {
        struct nameless *nameless;
        struct stat st;

        if (!scan->needs || !link_remap_lost_name(link) || scan_stat(fds, number, &st) < 0 || !link_remap_applies(&st))
                return;
        if (scan->n_nameless >= NAMELESS_MAX) {
                note_lost(scan, st.st_dev, link);
                return;
        }
        scan->nameless = xgrow(scan->nameless, scan->n_nameless, sizeof(*scan->nameless));
        nameless = &scan->nameless[scan->n_nameless++];
        *nameless = (struct nameless) { xstrdup(link), st.st_dev, st.st_ino, st.st_nlink };
}

/* The names, and links that they lead through, are the owner's. */
static void look_for_names(int error, int report_fd, const void *arg) {
        const struct scan *scan = arg;
        cleanup_free bool *named = xcalloc(scan->n_nameless, sizeof(*named));

        for (size_t i = 0; error == 0 && i < scan->n_nameless; i++) {
                const struct nameless *file = &scan->nameless[i];
                const struct stat st = { .st_dev = file->dev, .st_ino = file->ino, .st_nlink = file->n_links };

                named[i] = link_remap_has_name(file->link, &st);
        }
        (void) write_all(report_fd, named, scan->n_nameless * sizeof(*named));
}

/* A file of which the child does not tell has no name. */
void scan_nameless(struct scan *scan) {
        cleanup_free bool *named = xcalloc(scan->n_nameless + 1, sizeof(*named));

        if (scan->n_nameless == 0)
                return;
        (void) identity_ask(scan->scope->spec, 0, look_for_names, scan, OWNER_USEC, named, scan->n_nameless * sizeof(*named));
        for (size_t i = 0; i < scan->n_nameless; i++)
                if (!named[i])
                        note_lost(scan, scan->nameless[i].dev, scan->nameless[i].link);
}

void scan_owner_finish(struct scan *scan) {
        for (size_t i = 0; i < scan->n_nameless; i++)
                free(scan->nameless[i].link);
        free(scan->nameless);
        free(scan->suspects);
}
