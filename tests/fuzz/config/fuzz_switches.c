/* The reader of the switches' file against arbitrary bytes: an error names the file, and what is
 * taken is a forest. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/config/switches.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        cleanup_free char *text = xcalloc(1, size_bytes + 1);
        struct switches switches;
        struct rm_error err = { 0 };

        memcpy(text, data, size_bytes);
        if (switches_parse("topology.conf", text, size_bytes, &switches, &err) < 0) {
                if (!err.code || strncmp(err.text, "topology.conf:", strlen("topology.conf:")) != 0)
                        abort();
                return 0;
        }
        for (size_t i = 0; i < switches.n; i++) {
                size_t steps = 0;

                if (!name_valid(switches.list[i].name) || switches.list[i].line == 0)
                        abort();
                for (size_t at = i; at != SIZE_MAX; at = switches.list[at].parent)
                        if (at >= switches.n || ++steps > SWITCHES_DEPTH_MAX)
                                abort();
        }
        switches_finish(&switches);
        return 0;
}
