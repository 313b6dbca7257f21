#include "host_log.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT_BYTES = 800 };

int host_keep(const struct rm_plugin_host *host, void **ret_self) {
        *ret_self = (void *) host;
        return 0;
}

static void log_va(const struct rm_plugin_host *host, enum rm_plugin_level level, const char *fmt, va_list ap) {
        char text[TEXT_BYTES];

        (void) vsnprintf(text, sizeof(text), fmt, ap);
        host->log(host->context, level, text);
}

void host_log(const struct rm_plugin_host *host, enum rm_plugin_level level, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        log_va(host, level, fmt, ap);
        va_end(ap);
}

int host_fail(const struct rm_plugin_host *host, int code, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        log_va(host, RM_PLUGIN_ERROR, fmt, ap);
        va_end(ap);
        return code;
}
