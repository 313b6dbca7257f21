/* Interferes with a job as its owner, from outside of it on a node, while the job is moved. No MPI.
 *
 * usage: intruder tamper NAME uids|capabilities|securebits SECONDS
 *                                                         in each process NAME of the user:
 *                                                         overwrites what CRIU's parasite has found
 *                                                         out of these, wherever that shows up
 *        intruder swap A B SECONDS                        exchanges two names over and over
 *        intruder watch DIRECTORY PREFIX SECONDS          prints each name with that prefix that
 *                                                         appears in the directory
 * Says at the end what it has done, on standard output. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "common.h"

enum { PROCESSES_MAX = 16, REGION_MAX = 1 << 20, TEXT_MAX = 1 << 18, CREDENTIAL_WORDS = 19, SECUREBITS_BYTES = 80 };

enum what { UIDS, CAPABILITIES, SECUREBITS };

/* ---- tamper ---- */

struct victim {
        int pid;
        int mem_fd;
        char *maps_before;
};

static char *read_text(const char *path) {
        FILE *f = fopen(path, "re");
        char *text = malloc(TEXT_MAX);

        if (!text)
                exit(1);
        text[f ? fread(text, 1, TEXT_MAX - 1, f) : 0] = '\0';
        if (f)
                (void) fclose(f);
        return text;
}

static bool is_named(const char *pid, const char *name) {
        char path[PATH_MAX];
        struct stat st;
        char *text;
        bool same;

        (void) snprintf(path, sizeof(path), "/proc/%s/comm", pid);
        if (stat(path, &st) < 0 || st.st_uid != getuid())
                return false;
        text = read_text(path);
        text[strcspn(text, "\n")] = '\0';
        same = strcmp(text, name) == 0;
        free(text);
        return same;
}

static int find_victims(const char *name, struct victim *victims) {
        DIR *dir = opendir("/proc");
        struct dirent *entry;
        int n = 0;

        while (dir && n < PROCESSES_MAX && (entry = readdir(dir))) {
                char path[PATH_MAX];

                if (!isdigit((unsigned char) entry->d_name[0]) || !is_named(entry->d_name, name))
                        continue;
                (void) snprintf(path, sizeof(path), "/proc/%s/mem", entry->d_name);
                victims[n] = (struct victim) { .pid = atoi(entry->d_name), .mem_fd = open(path, O_RDWR | O_CLOEXEC) };
                (void) snprintf(path, sizeof(path), "/proc/%s/maps", entry->d_name);
                victims[n].maps_before = read_text(path);
                if (victims[n].mem_fd >= 0)
                        n++;
        }
        if (dir)
                (void) closedir(dir);
        return n;
}

/* The last capability, five sets of two words, then four user and four group ids. */
static bool is_credentials(const uint32_t *words) {
        if (words[0] < 30 || words[0] > 63)
                return false;
        for (int i = 0; i < 4; i++)
                if (words[11 + i] != getuid() || words[15 + i] != getgid())
                        return false;
        return true;
}

static unsigned overwrite(const struct victim *v, off_t at, enum what what) {
        static const uint32_t zeros[8];
        static const uint32_t ones[6] = { ~0U, ~0U, ~0U, ~0U, ~0U, ~0U };
        static const uint32_t no_setuid_fixup = 4;

        switch (what) {
        case UIDS:
                return pwrite(v->mem_fd, zeros, sizeof(zeros), at + 44) > 0;
        case CAPABILITIES:
                return pwrite(v->mem_fd, ones, sizeof(ones), at + 4) > 0;
        default:
                return pwrite(v->mem_fd, &no_setuid_fixup, sizeof(no_setuid_fixup), at + SECUREBITS_BYTES) > 0;
        }
}

/* Tampers with the region again and again, until it is gone: the parasite writes what it finds out,
 * and CRIU reads it a moment later. Where that was found once it is each time, so from then on only
 * that place is looked at, which takes no longer than CRIU. */
static unsigned long long tamper_region(const struct victim *v, unsigned long start, unsigned long end, enum what what) {
        static uint32_t words[REGION_MAX / 4];
        static unsigned long known; /* offset of the credentials; 0: not yet */
        unsigned long long hits = 0;
        ssize_t bytes;

        while ((bytes = pread(v->mem_fd, words, known ? CREDENTIAL_WORDS * 4 : end - start, (off_t) (start + known))) > 0)
                for (long i = 0; i + CREDENTIAL_WORDS <= bytes / 4; i++)
                        if (is_credentials(words + i)) {
                                known += (unsigned long) i * 4;
                                hits += overwrite(v, (off_t) (start + known), what);
                                break;
                        }
        return hits;
}

/* A shared mapping that was not there at first may be the parasite's. */
static unsigned long long tamper_once(const struct victim *v, enum what what) {
        char path[64];
        unsigned long long hits = 0;
        char *maps, *line, *rest;

        (void) snprintf(path, sizeof(path), "/proc/%d/maps", v->pid);
        rest = maps = read_text(path);
        while ((line = strsep(&rest, "\n"))) {
                unsigned long start, end;
                char protection[5];

                if (sscanf(line, "%lx-%lx %4s", &start, &end, protection) == 3 && protection[1] == 'w' && protection[3] == 's' &&
                    end - start <= REGION_MAX && !strstr(v->maps_before, line))
                        hits += tamper_region(v, start, end, what);
        }
        free(maps);
        return hits;
}

static void forget_victims(struct victim *victims, int n) {
        for (int i = 0; i < n; i++) {
                (void) close(victims[i].mem_fd);
                free(victims[i].maps_before);
        }
}

static int tamper(const char *name, enum what what, int seconds) {
        struct victim victims[PROCESSES_MAX];
        int64_t end = now_usec() + seconds * 1000000;
        unsigned long long hits = 0;
        bool reported = false;

        while (now_usec() < end) {
                int n = find_victims(name, victims);

                if (n > 0 && !reported) {
                        printf("intruder: watches %d processes\n", n);
                        (void) fflush(stdout);
                        reported = true;
                }
                while (n > 0 && now_usec() < end && kill(victims[0].pid, 0) == 0)
                        for (int i = 0; i < n; i++)
                                hits += tamper_once(&victims[i], what);
                forget_victims(victims, n);
                if (n == 0)
                        pause_usec(20000);
        }
        printf("intruder: wrote %llu times\n", hits);
        return 0;
}

/* ---- the others ---- */

static int swap(const char *a, const char *b, int seconds) {
        int64_t end = now_usec() + seconds * 1000000;
        unsigned long long n = 0;

        while (now_usec() < end) {
                n += renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0;
                pause_usec(500);
        }
        printf("intruder: exchanged %llu times\n", n);
        return 0;
}

static int watch(const char *directory, const char *prefix, int seconds) {
        int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        int64_t end = now_usec() + seconds * 1000000;
        union {
                struct inotify_event event;
                char bytes[4096];
        } buffer;

        if (fd < 0 || inotify_add_watch(fd, directory, IN_CREATE | IN_MOVED_TO) < 0)
                return 1;
        printf("intruder: watches %s\n", directory);
        (void) fflush(stdout);
        while (now_usec() < end) {
                ssize_t n = read(fd, buffer.bytes, sizeof(buffer.bytes));

                for (char *p = buffer.bytes; n > 0 && p < buffer.bytes + n;) {
                        struct inotify_event event;

                        memcpy(&event, p, sizeof(event));
                        if (strncmp(p + sizeof(event), prefix, strlen(prefix)) == 0)
                                printf("intruder: saw %s\n", p + sizeof(event));
                        p += sizeof(event) + event.len;
                }
                (void) fflush(stdout);
                pause_usec(1000);
        }
        return 0;
}

int main(int argc, char **argv) {
        int seconds = argc == 5 ? atoi(argv[4]) : 0;

        if (argc == 5 && strcmp(argv[1], "tamper") == 0)
                return tamper(argv[2], *argv[3] == 'u' ? UIDS : *argv[3] == 'c' ? CAPABILITIES : SECUREBITS, seconds);
        if (argc == 5 && strcmp(argv[1], "swap") == 0)
                return swap(argv[2], argv[3], seconds);
        if (argc == 5 && strcmp(argv[1], "watch") == 0)
                return watch(argv[2], argv[3], seconds);
        (void) fprintf(
                stderr,
                "usage: intruder tamper NAME uids|capabilities|securebits SECONDS | swap A B SECONDS | watch DIR PREFIX SECONDS\n");
        return 2;
}
