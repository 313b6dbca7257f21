/* Sums up, a hundred times a second, the memory of all processes of a node and of the files of its
 * moves.
 *
 * usage: footprint STOP-FILE
 *   Says "running", and once the file is there: "BEFORE AFTER PEAK SAMPLES WHAT...", in MiB: the
 *   anonymous memory of all processes at the beginning and at the end; the most that it and the
 *   files took at a time; how often that was looked at; what had how much of the most.
 *   Memory that is filled from the files into a process while both are read would be counted
 *   twice, or not at all: the files are looked at before and afterwards, and the lesser counts, so
 *   a sample never has more than there was. */
#include <ctype.h>
#include <dirent.h>
#include <sys/statvfs.h>

#include "common.h"

#define MOVES "/run/rmd/moves"
#define KINDS_MAX 64

struct kind {
        char name[32];
        unsigned processes;
        uint64_t bytes;
};

struct sample {
        uint64_t files_bytes;
        uint64_t processes_bytes;
        unsigned n_kinds;
        struct kind kinds[KINDS_MAX];
};

static uint64_t files_bytes(void) {
        struct statvfs fs;

        return statvfs(MOVES, &fs) < 0 ? 0 : (uint64_t) (fs.f_blocks - fs.f_bfree) * fs.f_frsize;
}

static bool read_line(const char *pid, const char *name, char *line, int size) {
        char path[300];
        FILE *f;
        bool ok;

        (void) snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
        f = fopen(path, "re");
        if (!f)
                return false;
        ok = fgets(line, size, f);
        (void) fclose(f);
        return ok;
}

/* A process that ends meanwhile has nothing. */
static void add_process(struct sample *s, const char *pid, uint64_t page_bytes) {
        unsigned long long resident, shared;
        char line[256];
        unsigned i = 0;

        if (!read_line(pid, "statm", line, sizeof(line)) || sscanf(line, "%*u %llu %llu", &resident, &shared) != 2 ||
            resident <= shared || !read_line(pid, "comm", line, sizeof(s->kinds[0].name)))
                return;
        line[strcspn(line, "\n")] = '\0';
        while (i < s->n_kinds && strcmp(s->kinds[i].name, line) != 0)
                i++;
        if (i == s->n_kinds && i < KINDS_MAX)
                (void) snprintf(s->kinds[s->n_kinds++].name, sizeof(s->kinds[0].name), "%.31s", line);
        if (i < KINDS_MAX) {
                s->kinds[i].processes++;
                s->kinds[i].bytes += (resident - shared) * page_bytes;
        }
        s->processes_bytes += (resident - shared) * page_bytes;
}

static void take(struct sample *s) {
        const uint64_t page_bytes = (uint64_t) sysconf(_SC_PAGESIZE);
        uint64_t files_after_bytes;
        struct dirent *entry;
        DIR *dir = opendir("/proc");

        if (!dir)
                abort();
        memset(s, 0, sizeof(*s));
        s->files_bytes = files_bytes();
        while ((entry = readdir(dir)))
                if (isdigit((unsigned char) entry->d_name[0]))
                        add_process(s, entry->d_name, page_bytes);
        (void) closedir(dir);
        files_after_bytes = files_bytes();
        if (files_after_bytes < s->files_bytes)
                s->files_bytes = files_after_bytes;
}

int main(int argc, char **argv) {
        struct sample s, peak = { 0 };
        uint64_t before = 0;
        unsigned samples = 0;

        if (argc != 2)
                return 2;
        do {
                take(&s);
                if (samples++ == 0) {
                        before = s.processes_bytes;
                        printf("running\n");
                        (void) fflush(stdout);
                }
                if (s.files_bytes + s.processes_bytes > peak.files_bytes + peak.processes_bytes)
                        peak = s;
                pause_usec(10000);
        } while (access(argv[1], F_OK) != 0);
        printf("%llu %llu %llu %u files %llu", (unsigned long long) before >> 20, (unsigned long long) s.processes_bytes >> 20,
               (unsigned long long) (peak.files_bytes + peak.processes_bytes) >> 20, samples,
               (unsigned long long) peak.files_bytes >> 20);
        for (unsigned i = 0; i < peak.n_kinds; i++)
                if (peak.kinds[i].bytes >> 20)
                        printf(", %u %s %llu", peak.kinds[i].processes, peak.kinds[i].name,
                               (unsigned long long) peak.kinds[i].bytes >> 20);
        printf("\n");
        return 0;
}
