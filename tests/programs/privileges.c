/* Watches the processes that rmd and the capsules' PID 1s start, and says at its end what each kind
 * of them was allowed to do: a line "NAME USER CAPABILITIES CORE" for each that differs, with the
 * effective user id, all capabilities (hexadecimal) that it had or could pass on, and the largest
 * core that it may leave, in bytes. No MPI.
 *
 * usage: privileges STOP-FILE   until the file is there, a minute at most */
#include <ctype.h>
#include <dirent.h>

#include "common.h"

enum { PROCESSES_MAX = 4096, SEEN_MAX = 256, PAUSE_USEC = 1000, MOST_USEC = 60000000 };

struct process {
        int pid, parent;
        char name[16];
        unsigned real_user, user;
        unsigned long long capabilities;
        char core[24];
        bool has_memory;
};

static struct process processes[PROCESSES_MAX], seen[SEEN_MAX];
static int n_processes, n_seen;

static bool read_process(const char *pid, struct process *p) {
        char path[300], line[256];
        unsigned long long set;
        FILE *f;

        (void) snprintf(path, sizeof(path), "/proc/%s/status", pid);
        f = fopen(path, "re");
        if (!f)
                return false;
        *p = (struct process) { .pid = atoi(pid) };
        while (fgets(line, sizeof(line), f)) {
                (void) sscanf(line, "Name: %15s", p->name);
                (void) sscanf(line, "PPid: %d", &p->parent);
                (void) sscanf(line, "Uid: %u %u", &p->real_user, &p->user);
                p->has_memory |= strncmp(line, "VmSize:", 7) == 0;
                if (sscanf(line, "CapInh: %llx", &set) == 1 || sscanf(line, "CapPrm: %llx", &set) == 1 ||
                    sscanf(line, "CapAmb: %llx", &set) == 1)
                        p->capabilities |= set;
        }
        (void) fclose(f);
        return p->has_memory;
}

/* A process that has ended leaves no core, nor does one that its user cannot send a signal; root's
 * are root's to read. */
static void read_core_limit(struct process *p) {
        char path[64], line[256];
        FILE *f;

        (void) strcpy(p->core, "0");
        (void) snprintf(path, sizeof(path), "/proc/%d/limits", p->pid);
        f = p->user != 0 && p->real_user == p->user ? fopen(path, "re") : NULL;
        while (f && fgets(line, sizeof(line), f))
                (void) sscanf(line, "Max core file size %23s", p->core);
        if (f)
                (void) fclose(f);
}

static void read_all_processes(void) {
        DIR *dir = opendir("/proc");
        struct dirent *entry;

        n_processes = 0;
        while (dir && n_processes < PROCESSES_MAX && (entry = readdir(dir)))
                if (isdigit((unsigned char) entry->d_name[0]))
                        n_processes += read_process(entry->d_name, &processes[n_processes]);
        if (dir)
                (void) closedir(dir);
}

static const struct process *find(int pid) {
        for (int i = 0; i < n_processes; i++)
                if (processes[i].pid == pid)
                        return &processes[i];
        return NULL;
}

static bool is_of_rmd(const struct process *p) {
        for (int depth = 0; p && depth < 32; depth++, p = find(p->parent))
                if (strcmp(p->name, "rmd") == 0 || strcmp(p->name, "rm-capsule") == 0)
                        return true;
        return false;
}

static void note(struct process *p) {
        read_core_limit(p);
        for (int i = 0; i < n_seen; i++)
                if (strcmp(seen[i].name, p->name) == 0 && seen[i].user == p->user && seen[i].capabilities == p->capabilities &&
                    strcmp(seen[i].core, p->core) == 0)
                        return;
        if (n_seen < SEEN_MAX)
                seen[n_seen++] = *p;
}

int main(int argc, char **argv) {
        int64_t end_usec = now_usec() + MOST_USEC;

        if (argc != 2)
                return 2;
        while (access(argv[1], F_OK) != 0 && now_usec() < end_usec) {
                read_all_processes();
                for (int i = 0; i < n_processes; i++)
                        if (is_of_rmd(&processes[i]))
                                note(&processes[i]);
                pause_usec(PAUSE_USEC);
        }
        for (int i = 0; i < n_seen; i++)
                printf("%s %u %llx %s\n", seen[i].name, seen[i].user, seen[i].capabilities, seen[i].core);
        return 0;
}
