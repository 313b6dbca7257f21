#include "daemon/capsule/init/ranks/rank_ends.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"

static bool has_begun(const struct rank_end_record *records, size_t n, int32_t pid) {
        for (size_t i = 0; i < n; i++)
                if (records[i].kind == RANK_BEGUN && records[i].pid == pid)
                        return true;
        return false;
}

/* The first of its kind, in the order in which the daemon has seen them. */
static void take_end(const struct rank_end_record *record, Capsule__RankEnds *ret) {
        if (WIFSIGNALED(record->status) && ret->signal_usec == 0) {
                ret->signal = WTERMSIG(record->status);
                ret->signal_usec = record->real_usec;
        } else if (WIFEXITED(record->status) && WEXITSTATUS(record->status) != 0 && ret->exit_usec == 0) {
                ret->exit_code = WEXITSTATUS(record->status);
                ret->exit_usec = record->real_usec;
        }
}

void rank_ends_sum(const struct rank_end_record *records, size_t n, Capsule__RankEnds *ret) {
        size_t begun = 0, ended = 0, well = 0;

        capsule__rank_ends__init(ret);
        for (size_t i = 0; i < n; i++) {
                if (records[i].kind == RANK_BEGUN)
                        begun++;
                else if (!has_begun(records, i, records[i].pid))
                        continue; /* another child of the daemon */
                else if (++ended && records[i].kind == RANK_ENDED)
                        take_end(&records[i], ret);
                well += records[i].kind == RANK_ENDED && records[i].status == 0;
        }
        ret->all_well = begun > 0 && well == begun && ended == begun;
}

void rank_ends_read(const char *path, Capsule__RankEnds *ret) {
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        cleanup_free struct rank_end_record *records = NULL;
        struct stat st;
        ssize_t n = 0;

        capsule__rank_ends__init(ret);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > RANK_END_MAX_BYTES)
                return;
        records = xcalloc((size_t) st.st_size / sizeof(*records) + 1, sizeof(*records));
        n = pread(fd, records, (size_t) st.st_size / sizeof(*records) * sizeof(*records), 0);
        if (n > 0)
                rank_ends_sum(records, (size_t) n / sizeof(*records), ret);
}
