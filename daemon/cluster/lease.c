#include "daemon/cluster/lease.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define DRIFT_PART 100U /* clocks differ in speed by one part in so many at most */
#define TEXT_MAX_BYTES 32U

static uint64_t add(uint64_t a, uint64_t b) {
        return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

uint64_t lease_end_usec(uint64_t sent_usec, uint64_t lease_usec) {
        return add(sent_usec, lease_usec);
}

uint64_t lease_safe_usec(uint64_t heard_usec, uint64_t lease_usec) {
        uint64_t drift_usec = lease_usec / DRIFT_PART + 1;

        return add(heard_usec, add(lease_usec, add(drift_usec, LEASE_FENCE_USEC)));
}

struct leases {
        char *path;
        uint64_t lease_usec;
        uint64_t end_usec;
        uint64_t since_usec;  /* when this node began to lead */
        uint64_t before_usec; /* no lease that was given before was longer */
};

struct leases *leases_create(const char *state_dir, uint64_t lease_usec) {
        struct leases *leases = xcalloc(1, sizeof(*leases));

        leases->path = xasprintf("%s/lease", state_dir);
        leases->lease_usec = lease_usec;
        return leases;
}

void leases_destroy(struct leases *leases) {
        if (!leases)
                return;
        free(leases->path);
        free(leases);
}

/* ---- that it holds ---- */

bool leases_take(struct leases *leases, uint64_t end_boot_usec) {
        if (end_boot_usec <= leases->end_usec)
                return false;
        leases->end_usec = end_boot_usec;
        return true;
}

uint64_t leases_end_usec(const struct leases *leases) {
        return leases->end_usec;
}

/* ---- that it gives ---- */

static int store(const struct leases *leases) {
        cleanup_free char *text = xasprintf("%" PRIu64 "\n", leases->lease_usec);

        return write_file_atomic(leases->path, text, strlen(text), 0600, true);
}

/* 0 when there is none: nobody has led here. */
static int load(const struct leases *leases, uint64_t *ret_usec) {
        cleanup_free char *text = NULL;
        size_t size = 0;
        int r = read_file(leases->path, TEXT_MAX_BYTES, &text, &size);

        *ret_usec = 0;
        if (r == -ENOENT)
                return 0;
        if (r == 0 && sscanf(text, "%" SCNu64, ret_usec) != 1)
                r = -EBADMSG;
        return r;
}

int leases_load(struct leases *leases, struct rm_error *err) {
        int r = load(leases, &leases->before_usec);

        if (r == 0 && leases->lease_usec > leases->before_usec) {
                r = store(leases);
                leases->before_usec = leases->lease_usec;
        }
        return r < 0 ? error_sys(err, r, "%s: cannot tell how long the leases are that were given", leases->path) : 0;
}

void leases_lead(struct leases *leases, uint64_t now_usec) {
        leases->since_usec = now_usec;
}

void leases_beat(struct leases *leases, uint64_t now_usec) {
        if (leases->before_usec > leases->lease_usec && now_usec > lease_safe_usec(leases->since_usec, leases->before_usec) &&
            store(leases) == 0)
                leases->before_usec = leases->lease_usec;
}

uint64_t leases_safe_usec(const struct leases *leases, uint64_t heard_usec) {
        uint64_t given = lease_safe_usec(heard_usec, leases->lease_usec);
        uint64_t before = lease_safe_usec(leases->since_usec, leases->before_usec);

        return given > before ? given : before;
}
