#include "daemon/cluster/lease.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/util.h"

#define DRIFT_PART 100U /* clocks differ in speed by one part in so many at most */

static uint64_t add(uint64_t a, uint64_t b) {
        return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

uint64_t lease_end_usec(uint64_t sent_usec, uint64_t lease_usec) {
        return add(sent_usec, lease_usec);
}

uint64_t lease_safe_usec(uint64_t received_usec, uint64_t lease_usec) {
        uint64_t drift_usec = lease_usec / DRIFT_PART + 1;

        return add(received_usec, add(lease_usec, add(drift_usec, LEASE_FENCE_USEC)));
}

/* The last confirmation of one voter. */
struct confirmed {
        char *voter;
        uint64_t sent_usec;
        LIST_ENTRY(confirmed) entry;
};

struct leases {
        uint64_t lease_usec;
        uint64_t end_usec;
        uint64_t offered_usec; /* the end of one that waits for an index; 0: none */
        uint64_t offered_index;
        uint64_t since_usec;  /* when this node began to lead */
        uint64_t before_usec; /* no lease that was given before was longer */
        LIST_HEAD(, confirmed) confirmed;
};

struct leases *leases_create(uint64_t lease_usec) {
        struct leases *leases = xcalloc(1, sizeof(*leases));

        leases->lease_usec = lease_usec;
        LIST_INIT(&leases->confirmed);
        return leases;
}

static void forget_confirmed(struct leases *leases) {
        struct confirmed *confirmed;

        while ((confirmed = LIST_FIRST(&leases->confirmed))) {
                LIST_REMOVE(confirmed, entry);
                free(confirmed->voter);
                free(confirmed);
        }
}

void leases_destroy(struct leases *leases) {
        if (!leases)
                return;
        forget_confirmed(leases);
        free(leases);
}

/* ---- that it holds ---- */

bool leases_take(struct leases *leases, uint64_t end_boot_usec) {
        if (end_boot_usec <= leases->end_usec)
                return false;
        leases->end_usec = end_boot_usec;
        return true;
}

void leases_offer(struct leases *leases, uint64_t end_boot_usec, uint64_t index) {
        if (leases->offered_usec > 0 && index > leases->offered_index)
                return;
        leases->offered_usec = end_boot_usec;
        leases->offered_index = index;
}

bool leases_reach(struct leases *leases, uint64_t index) {
        uint64_t end_usec = leases->offered_usec;

        if (end_usec == 0 || index < leases->offered_index)
                return false;
        leases->offered_usec = 0;
        return leases_take(leases, end_usec);
}

uint64_t leases_end_usec(const struct leases *leases) {
        return leases->end_usec;
}

/* ---- that it gives ---- */

void leases_lead(struct leases *leases, uint64_t now_usec, uint64_t longest_usec) {
        forget_confirmed(leases);
        leases->since_usec = now_usec;
        leases->before_usec = longest_usec > leases->lease_usec ? longest_usec : leases->lease_usec;
}

static struct confirmed *find(const struct leases *leases, const char *voter) {
        struct confirmed *confirmed;

        LIST_FOREACH (confirmed, &leases->confirmed, entry)
                if (strcmp(confirmed->voter, voter) == 0)
                        return confirmed;
        return NULL;
}

void leases_confirm(struct leases *leases, const char *voter, uint64_t sent_boot_usec) {
        struct confirmed *confirmed = find(leases, voter);

        if (!confirmed) {
                confirmed = xcalloc(1, sizeof(*confirmed));
                confirmed->voter = xstrdup(voter);
                LIST_INSERT_HEAD(&leases->confirmed, confirmed, entry);
        }
        if (sent_boot_usec > confirmed->sent_usec)
                confirmed->sent_usec = sent_boot_usec;
}

static int compare_latest_first(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return x < y ? 1 : x > y ? -1 : 0;
}

uint64_t leases_quorum_usec(const struct leases *leases, const char *const *others, size_t n_others, uint64_t now_boot_usec) {
        size_t needed = (n_others + 1) / 2; /* of the others, for more than half of all */
        cleanup_free uint64_t *sent = xcalloc(n_others + 1, sizeof(*sent));

        if (needed == 0)
                return now_boot_usec;
        for (size_t i = 0; i < n_others; i++) {
                const struct confirmed *confirmed = find(leases, others[i]);

                sent[i] = confirmed ? confirmed->sent_usec : 0;
        }
        qsort(sent, n_others, sizeof(*sent), compare_latest_first);
        return sent[needed - 1];
}

/* A lease that is longer than the log says could end after the next leader believes that it has. */
uint64_t leases_given_end_usec(const struct leases *leases, uint64_t quorum_usec, uint64_t longest_usec) {
        bool known = longest_usec > 0 && longest_usec < leases->lease_usec;

        return quorum_usec > 0 ? add(quorum_usec, known ? longest_usec : leases->lease_usec) : 0;
}

uint64_t leases_to_log_usec(const struct leases *leases, uint64_t now_usec, uint64_t longest_usec) {
        bool ended = now_usec > lease_safe_usec(leases->since_usec, leases->before_usec);

        if (longest_usec == leases->lease_usec || (longest_usec > leases->lease_usec && !ended))
                return 0;
        return leases->lease_usec;
}

uint64_t leases_safe_usec(const struct leases *leases, uint64_t received_usec) {
        uint64_t given = lease_safe_usec(received_usec, leases->lease_usec);
        uint64_t before = lease_safe_usec(leases->since_usec, leases->before_usec);

        return given > before ? given : before;
}
