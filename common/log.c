#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/text.h"

static const char *log_name = "rmd";
static int log_max_level = LOG_INFO;

static uint64_t log_file_bytes;
static bool log_all_lines;

bool log_writes(int level) {
        return level <= log_max_level;
}

void log_write_all(void) {
        log_all_lines = true;
}

bool log_writes_all(void) {
        return log_all_lines;
}

void log_limit_file(uint64_t bytes) {
        log_file_bytes = bytes;
}

static void keep_small(void) {
        struct stat st;

        if (log_file_bytes > 0 && fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t) st.st_size > log_file_bytes)
                (void) !ftruncate(STDERR_FILENO, 0);
}

void log_setup(const char *name, int max_level) {
        if (name)
                log_name = name;
        log_max_level = max_level;
}

static const char *level_name(int level) {
        switch (level) {
        case LOG_ERR:
                return "error";
        case LOG_WARNING:
                return "warning";
        case LOG_DEBUG:
                return "debug";
        default:
                return "info";
        }
}

void log_write(int level, const char *fmt, ...) {
        char text[LOG_TEXT_BYTES];
        char line[3 * sizeof(text)];
        struct timespec now;
        struct tm tm;
        size_t used;
        va_list ap;

        if (!log_writes(level))
                return;
        (void) clock_gettime(CLOCK_REALTIME, &now);
        (void) localtime_r(&now.tv_sec, &tm);
        used = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
        used += (size_t) snprintf(line + used, sizeof(line) - used, ".%03ld %s[%d] %s: ", now.tv_nsec / 1000000, log_name,
                                  (int) getpid(), level_name(level));
        va_start(ap, fmt);
        (void) text_format_va(text, sizeof(text), fmt, ap);
        va_end(ap);
        /* Much of it came from users: whatever they wrote, it is one line, and moves no cursor. */
        used += text_escape(text, line + used, sizeof(line) - used - 1);
        line[used++] = '\n';
        keep_small();
        /* The line is one write, so that lines of several processes do not mix. */
        (void) !write(STDERR_FILENO, line, used);
}
