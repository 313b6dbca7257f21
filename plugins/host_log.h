/* For plugins that keep nothing but their host, and log to it; linked into each. */
#ifndef RM_PLUGINS_HOST_LOG_H
#define RM_PLUGINS_HOST_LOG_H

#include "rm/plugin.h"

/* The create() of such a plugin: its calls get the host as `self`. */
int host_keep(const struct rm_plugin_host *host, void **ret_self);

/* A line of at most 799 bytes; the rest is cut. */
void host_log(const struct rm_plugin_host *host, enum rm_plugin_level level, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The same as an error, the reason for `code`, which is returned. */
int host_fail(const struct rm_plugin_host *host, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
