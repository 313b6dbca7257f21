/* The machine that rmd's own code would read, and change: nothing is there, there is always room,
 * and no file system is mounted. The linker puts these functions in the place of others
 * (--wrap). */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/job/core_report.h"
#include "daemon/job/memory_report.h"
#include "daemon/job/pages_test.h"
#include "daemon/transfer/capacity.h"
#include "tests/sim/host.h"
#include "tests/sim/timeline.h"

int __real_read_file(const char *path, size_t max_bytes, char **ret_data, size_t *ret_size_bytes);
int __wrap_read_file(const char *path, size_t max_bytes, char **ret_data, size_t *ret_size_bytes);
int __real_remove_tree(const char *path);
int __wrap_remove_tree(const char *path);
int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);
int __wrap_mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
void __wrap_capacity_here(const char *images_dir, struct capacity_free *ret);
bool __wrap_pages_test_passed(const struct pages_test *test, const char **ret_why);
bool __wrap_pages_test_runs(const struct pages_test *test);
void __wrap_memory_report_start(struct runner *runner);
void __wrap_memory_report_stop(struct runner *runner);
void __wrap_memory_report_read(const struct resident *resident, size_t most, struct memory_report_use *ret);
void __wrap_core_report_start(struct runner *runner);
void __wrap_core_report_stop(struct runner *runner);

/* Programs of rmd that it copies into capsules are there. */
int __wrap_read_file(const char *path, size_t max_bytes, char **ret_data, size_t *ret_size_bytes) {
        static const char libexec[] = RM_LIBEXEC_DIR "/";

        if (!host_current())
                return __real_read_file(path, max_bytes, ret_data, ret_size_bytes);
        if (strncmp(path, libexec, strlen(libexec)) != 0)
                return -ENOENT;
        *ret_data = xstrdup("");
        if (ret_size_bytes)
                *ret_size_bytes = 0;
        return 0;
}

int __wrap_remove_tree(const char *path) {
        return host_current() ? 0 : __real_remove_tree(path);
}

int __wrap_rmdir(const char *path) {
        return host_current() ? 0 : __real_rmdir(path);
}

int __wrap_mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data) {
        return 0;
}

void __wrap_capacity_here(const char *images_dir, struct capacity_free *ret) {
        *ret = (struct capacity_free) { .memory_bytes = UINT64_MAX, .images_bytes = UINT64_MAX };
}

bool __wrap_pages_test_passed(const struct pages_test *test, const char **ret_why) {
        return true;
}

/* For as long as chance wants. */
bool __wrap_pages_test_runs(const struct pages_test *test) {
        return timeline_random(host_timeline(host_current()), 4) == 0;
}

void __wrap_memory_report_start(struct runner *runner) {
}

void __wrap_memory_report_stop(struct runner *runner) {
}

void __wrap_memory_report_read(const struct resident *resident, size_t most, struct memory_report_use *ret) {
        *ret = (struct memory_report_use) { .memory_bytes = 1000000 };
}

void __wrap_core_report_start(struct runner *runner) {
}

void __wrap_core_report_stop(struct runner *runner) {
}
