/* This node's capsules: makes, launches and removes them so that they match the cluster's state.
 * Everything here is a reconciliation: it may be called at any time, after any loss, and does what
 * is still to be done. */
#ifndef RM_JOB_RUNNER_H
#define RM_JOB_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/capsule/capsule.h"
#include "daemon/context.h"
#include "daemon/job/resident.h"
#include "daemon/state/state.h"
#include "proto/peer.pb-c.h"

/* The runner tells these things to the code that moves capsules, or asks it about them. */
struct runner_ops {
        /* A local capsule answers (error 0), or does not or no more (error < 0). */
        void (*on_capsule)(void *userdata, struct resident *resident, int error, const char *text);
        /* Is this copy, which the state does not name as the capsule, needed all the same? */
        bool (*keeps_copy)(void *userdata, const struct resident *resident);
        /* Is a move about to open this copy, or to end it? Otherwise the runner opens it if it is
         * frozen. */
        bool (*holds)(void *userdata, const struct resident *resident);
        /* A capsule lacks memory (every second), or has all of it now. */
        void (*on_filling)(void *userdata, struct resident *resident);
        /* A capsule that could not be opened for want of a lease can be. */
        void (*on_unfenced)(void *userdata);
};

/* `ops` is borrowed. */
int runner_create(struct rmd *rmd, const struct runner_ops *ops, void *userdata, struct runner **ret, struct rm_error *err);
void runner_destroy(struct runner *runner); /* leaves the capsules running */

/* Look at everything again, soon (from the loop). Cheap to call often. */
void runner_wake(struct runner *runner);
/* Look again in half a second, since something could not be done now. */
void runner_retry(struct runner *runner);

/* The node's lease has grown: tell PID 1 of each fenced capsule, see leases.c. */
void runner_renew_leases(struct runner *runner);

/* The copy that the state says is the capsule, or NULL when that is not here. */
struct resident *runner_current(struct runner *runner, uint64_t job, int32_t index);
/* The copy of this incarnation, or NULL. */
struct resident *runner_copy(struct runner *runner, uint64_t job, int32_t index, uint64_t incarnation);

/* Make the destination's copy for a move; on_capsule() is told when it answers. It may use at least
 * `kept`, what it could at the source. */
int runner_make_copy(struct runner *runner, const Rm__Job *job, const Rm__Move *move, const struct capsule_limits *kept,
                     struct resident **ret, struct rm_error *err);
/* Make a copy to try a restore in (capsule_spec.drill); on_capsule() is told when it answers.
 * `incarnation`: one that the state does not give. */
int runner_make_drill(struct runner *runner, const Rm__Job *job, int32_t index, uint64_t incarnation, struct rm_error *err);
/* Kill and forget one copy. `spool`: its output too. */
void runner_drop(struct runner *runner, struct resident *resident, bool spool);

/* The capsule's PID 1 has got another state: what it was told of its ranks is to be told again. */
void runner_order_again(struct resident *resident);

/* rm-agent's traffic between nodes; `node` has sent it. */
void runner_agent_run(struct runner *runner, const Rm__AgentRun *run);
void runner_agent_done(struct runner *runner, const char *node, const Rm__AgentDone *done);
void runner_agent_kill(struct runner *runner, const Rm__AgentKill *kill);
/* A head's node and that of a group, about the end of its ranks: that they are to end; how they
 * have ended. */
void runner_ranks_end(struct runner *runner, const Rm__RanksEnd *order);
void runner_ranks_ended(struct runner *runner, const Rm__RanksEnded *answer);
void runner_ends_get(struct runner *runner, const Rm__EndsGet *get);
void runner_ends(struct runner *runner, const Rm__Ends *ends);
/* Keep the connections to groups whose daemons heads here wait for: if their rmd is started again,
 * they are to be asked again. */
void runner_keep_peers(struct runner *runner);
void runner_peer_connected(struct runner *runner, const char *node);

/* Reports what memory there is on this node, and what its groups take, soon and not at its next
 * time. */
void runner_report_memory(struct runner *runner);

/* A signal from the job's front end, to mpirun; one that ends the job first to its ranks. -ESRCH
 * when the head does not run here; `done` gets -EBUSY while it is frozen. */
int runner_signal_head(struct runner *runner, uint64_t job, int signo, capsule_done_fn done, void *arg);

#endif
