/* The parser of availability files against arbitrary bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/node/availability.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static const char *name_at(const void *names, size_t i) {
        return ((const char *const *) names)[i];
}

static const char *find(void *userdata, const char *host) {
        static const char *const nodes[] = { "a.x", "a.y", "b", "c.example.org", "n1", "n10", "n2" };
        int64_t i = availability_match(host, name_at, nodes, sizeof(nodes) / sizeof(nodes[0]));

        (void) userdata;
        return i < 0 ? NULL : nodes[i];
}

static void check(const struct availability *availability) {
        for (size_t i = 0; i < availability->n_entries; i++) {
                if (availability->entries[i].cores > AVAILABILITY_CORES_MAX || !availability->entries[i].host[0])
                        abort();
                for (size_t k = 0; k < i && k < 64; k++)
                        if (strcmp(availability->entries[i].host, availability->entries[k].host) == 0)
                                abort();
        }
        if (availability->blank && availability->n_entries > 0)
                abort();
        if (!availability_equal(availability, availability))
                abort();
}

static void try_with(availability_find_fn function, const uint8_t *data, size_t size_bytes) {
        struct availability availability;
        struct rm_error err = { 0 };
        int r = availability_parse("file", (const char *) data, size_bytes, function, NULL, &availability, &err);

        if (r == 0) {
                check(&availability);
                availability_finish(&availability);
        } else if (strncmp(err.text, "file:", 5) != 0 || err.code != r)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        try_with(NULL, data, size_bytes);
        try_with(find, data, size_bytes);
        return 0;
}
