/* The reader of rmd.conf against arbitrary bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        cleanup_close int fd = memfd_create("rmd.conf", MFD_CLOEXEC);
        struct config config;
        struct rm_error err = { 0 };
        char path[64];

        if (fd < 0 || write_all(fd, data, size_bytes) < 0)
                abort();
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (config_load(path, &config, &err) < 0) {
                if (!err.code || !strstr(err.text, path))
                        abort();
                return 0;
        }
        if (!name_valid(config.node_name) || !name_valid(config.policy) || !config.port || !config.moves_at_once)
                abort();
        config_finish(&config);
        return 0;
}
