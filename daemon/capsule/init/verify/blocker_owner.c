/* A child with the owner's rights looks at what lies where his paths lead. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH_FUNCTION HASH_SAX /* the usual one falls through cases where the length is not known */
#include <uthash.h>

#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/criu/link_remap.h"
#include "daemon/capsule/init/verify/blocker_scan_internal.h"

/* A file server that does not answer keeps nobody longer. */
enum { OWNER_USEC = 5000000, NAMELESS_MAX = 1024 };

/* A directory in which something is open. */
struct searched {
        UT_hash_handle hh;
        pid_t pid;
        char path[];
};

/* The findings of a child: numbers of a suspect and of a directory; how many there are: none. */
struct verdict {
        size_t suspect;
        size_t searched;
};

/* ---- files that he may not be able to read, and directories ---- */

void scan_contents(struct scan *scan, int fds, const char *number, unsigned flags) {
        struct stat st;

        if (!(flags & O_PATH) && (flags & O_ACCMODE) != O_WRONLY)
                return;
        /* The owner of a file may give himself the right. */
        if (scan_stat(fds, number, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid == scan->scope->spec->uid)
                return;
        scan->suspects = xgrow(scan->suspects, scan->n_suspects, sizeof(*scan->suspects));
        scan->suspects[scan->n_suspects++] = (struct suspect) { scan->pid, atoi(number) };
}

/* All may search what is installed, and what the kernel shows. */
static bool is_open_to_all(const char *path) {
        static const char *const places[] = { "/usr/", "/proc/", "/sys/" };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                if (strncmp(path, places[i], strlen(places[i])) == 0)
                        return true;
        return path[0] != '/';
}

void scan_place(struct scan *scan, const char *link, bool of_file) {
        size_t n = of_file && strrchr(link, '/') ? (size_t) (strrchr(link, '/') - link) : strlen(link);
        struct searched *place = NULL;

        if (scan->scope->frozen || scan->scope->spec->uid == 0 || n <= 1 || is_open_to_all(link))
                return;
        HASH_FIND(hh, scan->searched, link, n, place);
        if (place)
                return;
        place = xcalloc(1, sizeof(*place) + n + 1);
        place->pid = scan->pid;
        memcpy(place->path, link, n);
        HASH_ADD(hh, scan->searched, path, n, place);
}

static void suspect_path(const struct suspect *suspect, char path[64]) {
        (void) snprintf(path, 64, "%d/fd/%d", (int) suspect->pid, suspect->fd);
}

/* A file that was closed meanwhile is no obstacle. */
static bool may_read(const struct scan *scan, const struct suspect *suspect) {
        char path[64];
        cleanup_close int fd = -1;

        suspect_path(suspect, path);
        fd = openat(scan->scope->proc, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return fd >= 0 || errno == ENOENT;
}

/* A directory that was removed is no obstacle. */
static bool may_search(const struct searched *place) {
        return faccessat(AT_FDCWD, place->path, X_OK, AT_EACCESS) == 0 || errno != EACCES;
}

static void look_as_owner(int error, int report_fd, const void *arg) {
        const struct scan *scan = arg;
        struct verdict verdict = { error < 0 ? 0 : scan->n_suspects, HASH_COUNT(scan->searched) };
        const struct searched *place = error < 0 ? NULL : scan->searched;

        for (size_t i = 0; error == 0 && i < scan->n_suspects && verdict.suspect == scan->n_suspects; i++)
                if (!may_read(scan, &scan->suspects[i]))
                        verdict.suspect = i;
        for (size_t i = 0; place; place = place->hh.next, i++)
                if (!may_search(place)) {
                        verdict.searched = i;
                        break;
                }
        (void) write_all(report_fd, &verdict, sizeof(verdict));
}

static void note_suspect(struct scan *scan, const struct suspect *suspect) {
        char path[64], link[PATH_MAX];
        ssize_t n;

        suspect_path(suspect, path);
        n = readlinkat(scan->scope->proc, path, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = '\0';
        scan->pid = suspect->pid;
        scan_note(scan, BLOCKER_UNREADABLE, link);
}

static void note_place(struct scan *scan, size_t number) {
        const struct searched *place = scan->searched;

        while (place && number-- > 0)
                place = place->hh.next;
        if (!place)
                return;
        scan->pid = place->pid;
        scan_note(scan, BLOCKER_UNSEARCHABLE, place->path);
}

/* A file that the child does not tell of may be one that its owner cannot read. CRIU finds out by
 * itself about directories, as it has no more rights there than the owner. */
void scan_owner(struct scan *scan) {
        struct verdict verdict = { 0, HASH_COUNT(scan->searched) };

        if (scan->n_suspects == 0 && !scan->searched)
                return;
        (void) identity_ask(scan->scope->spec, 0, look_as_owner, scan, OWNER_USEC, &verdict, sizeof(verdict));
        if (verdict.suspect < scan->n_suspects)
                note_suspect(scan, &scan->suspects[verdict.suspect]);
        else
                note_place(scan, verdict.searched);
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
        struct searched *place, *next_place;

        HASH_ITER (hh, scan->searched, place, next_place) {
                HASH_DEL(scan->searched, place);
                free(place);
        }
        for (size_t i = 0; i < scan->n_nameless; i++)
                free(scan->nameless[i].link);
        free(scan->nameless);
        free(scan->suspects);
}
