#include "daemon/doctor/doctor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/log.h"
#include "common/util.h"
#include "common/version.h"
#include "daemon/config/config.h"
#include "daemon/job/limits.h"
#include "daemon/job/pages_test.h"
#include "daemon/node/child_run.h"
#include "daemon/state/state.h"
#include "daemon/wire/tls.h"

#define PROGRAM "rm-node-facts"
#define CRIU_PATH "/usr/sbin/criu"
/* The collection takes 2 s, mostly CRIU's check the first time; more on a node where ranks have all
 * cores. */
#define COLLECT_USEC UINT64_C(12000000)
/* Facts this fresh are not collected again, so that users cannot keep the node busy. */
#define FRESH_USEC UINT64_C(5000000)
#define OUTPUT_MAX_BYTES (256U << 10)

struct waiter {
        doctor_fn done;
        void *userdata;
        STAILQ_ENTRY(waiter) next;
};

struct doctor {
        struct rmd *rmd;
        struct child_run *run; /* NULL: none */
        bool reported; /* requests that wait for the run in hand have been, though it has not ended */
        Rm__NodeFacts *facts; /* of the last run; NULL: none yet */
        uint64_t collected_usec;
        STAILQ_HEAD(, waiter) waiters;
};

struct doctor *doctor_create(struct rmd *rmd) {
        struct doctor *doctor = xcalloc(1, sizeof(*doctor));

        doctor->rmd = rmd;
        STAILQ_INIT(&doctor->waiters);
        return doctor;
}

static void report(struct doctor *doctor, const Rm__NodeFacts *facts) {
        while (!STAILQ_EMPTY(&doctor->waiters)) {
                struct waiter *waiter = STAILQ_FIRST(&doctor->waiters);

                STAILQ_REMOVE_HEAD(&doctor->waiters, next);
                waiter->done(waiter->userdata, facts);
                free(waiter);
        }
}

void doctor_destroy(struct doctor *doctor) {
        if (!doctor)
                return;
        child_run_abandon(doctor->run);
        report(doctor, NULL);
        if (doctor->facts)
                rm__node_facts__free_unpacked(doctor->facts, NULL);
        free(doctor);
}

/* Adds the facts that rmd knows by itself. */
static void add_own(const struct rmd *rmd, Rm__NodeFacts *facts) {
        const struct config *config = rmd->config;
        cleanup_free char *missing = limits_missing(rmd);
        const char *fingerprint = tls_fingerprint(rmd->tls, false);
        const char *why = "";

        message_set_string(&facts->node, config->node_name);
        message_set_string(&facts->rmd_version, RM_VERSION);
        facts->tracking_off = !config->move_tracking;
        facts->tracking = config->move_tracking && pages_test_passed(rmd->pages_test, &why);
        message_set_string(&facts->untracked, why);
        facts->tested = !pages_test_runs(rmd->pages_test);
        message_set_string(&facts->limits_missing, missing ? missing : "");
        facts->moves_at_once = config->moves_at_once;
        facts->key_current = strcmp(facts->key_fingerprint, fingerprint) == 0;
        message_set_string(&facts->key_fingerprint, fingerprint);
}

static void finish(struct doctor *doctor, Rm__NodeFacts *facts, const char *why_not) {
        if (!facts) {
                facts = xcalloc(1, sizeof(*facts));
                rm__node_facts__init(facts);
                message_set_string(&facts->no_collection, why_not);
                log_warn("doctor: %s", why_not);
        }
        add_own(doctor->rmd, facts);
        if (doctor->facts)
                rm__node_facts__free_unpacked(doctor->facts, NULL);
        doctor->facts = facts;
        doctor->collected_usec = now_usec();
        report(doctor, facts);
}

/* The process may not end yet, or never, when it waits for a disk. Until then no other is begun. */
static void on_killed(void *context, const struct child_end *end) {
        struct doctor *doctor = context;
        struct rm_error err = { 0 };

        (void) child_end_error(end, PROGRAM, COLLECT_USEC, &err);
        doctor->reported = true;
        finish(doctor, NULL, error_text(&err));
}

static void on_done(void *context, const struct child_end *end) {
        struct doctor *doctor = context;
        Rm__NodeFacts *facts = NULL;
        struct rm_error err = { 0 };

        doctor->run = NULL;
        if (doctor->reported)
                return;
        if (child_end_error(end, PROGRAM, COLLECT_USEC, &err) == 0)
                (void) doctor_parse(end->output, end->output_bytes, &facts, &err);
        error_clean(&err);
        finish(doctor, facts, error_text(&err));
}

static int start(struct doctor *doctor) {
        const struct config *config = doctor->rmd->config;
        cleanup_free char *ports = xasprintf("%u-%u", config->move_port_first, config->move_port_last);
        char *const argv[] = { (char *) PROGRAM,
                               (char *) "--cluster",
                               config->cluster_name,
                               (char *) "--key",
                               config->key_file,
                               (char *) "--second-key",
                               config->second_key_file,
                               (char *) "--state-dir",
                               config->state_dir,
                               (char *) "--runtime-dir",
                               config->runtime_dir,
                               (char *) "--uplink",
                               config->uplink,
                               (char *) "--address",
                               config->address,
                               (char *) "--ports",
                               ports,
                               (char *) "--criu",
                               (char *) CRIU_PATH,
                               NULL };
        const struct child_run_spec spec = { .program = RM_LIBEXEC_DIR "/" PROGRAM,
                                             .argv = argv,
                                             .timeout_usec = COLLECT_USEC,
                                             .output_most_bytes = OUTPUT_MAX_BYTES,
                                             .ends_group = true,
                                             .done = on_done,
                                             .on_killed = on_killed,
                                             .context = doctor };

        doctor->reported = false;
        return child_run_start(doctor->rmd->base, &spec, &doctor->run);
}

/* The last run was killed and has not ended: its disk still hangs. */
static bool still_hangs(const struct doctor *doctor) {
        return doctor->run && doctor->reported;
}

void doctor_ask(struct doctor *doctor, doctor_fn done, void *userdata) {
        struct waiter *waiter;
        int r;

        if (doctor->facts && (still_hangs(doctor) || (!doctor->run && now_usec() - doctor->collected_usec < FRESH_USEC))) {
                done(userdata, doctor->facts);
                return;
        }
        waiter = xcalloc(1, sizeof(*waiter));
        *waiter = (struct waiter) { .done = done, .userdata = userdata };
        STAILQ_INSERT_TAIL(&doctor->waiters, waiter, next);
        if (doctor->run)
                return;
        r = start(doctor);
        if (r < 0) {
                cleanup_free char *why = xasprintf("cannot start " PROGRAM ": %s", strerror(-r));

                finish(doctor, NULL, why);
        }
}
