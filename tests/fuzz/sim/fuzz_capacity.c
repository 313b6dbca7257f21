/* Any bytes are changes of capacity, in order and within what nodes have, or one error with its
 * line. */
#include <string.h>

#include "launcher/sim/capacity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct snapshot *cluster = snapshot_create();
        struct capacity capacity = { 0 };
        struct rm_error err = { 0 };

        (void) snapshot_add_node(cluster, "n1", 4);
        (void) snapshot_add_node(cluster, "n2", 8);
        if (capacity_parse("c", (const char *) data, size, snapshot_view(cluster), &capacity, &err) < 0) {
                if (strncmp(err.text, "c:", 2) != 0 || strchr(err.text, '\n') || capacity.changes)
                        __builtin_trap();
        }
        for (size_t i = 0; i < capacity.n_changes; i++)
                if (capacity.changes[i].node > 1 || capacity.changes[i].cores > 8 ||
                    (i > 0 && capacity.changes[i].time_usec < capacity.changes[i - 1].time_usec))
                        __builtin_trap();
        capacity_finish(&capacity);
        snapshot_destroy(cluster);
        return 0;
}
