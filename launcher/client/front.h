/* The front end of a job: standard output, error, input, signals and exit code as if the job ran here. */
#ifndef RM_LAUNCHER_CLIENT_FRONT_H
#define RM_LAUNCHER_CLIENT_FRONT_H

#include "common/error.h"
#include "launcher/client/session.h"

struct front;

/* From here on the signals that the job is to get are kept for front_run(), so that none is lost between submitting and
 * attaching. `signals` false: leave them alone, so that they end the front end and not the job. */
int front_create(bool signals, struct front **ret_front, struct rm_error *err);
void front_destroy(struct front *front); /* NULL ok */

/* True when standard input can give the job anything: it is open and not /dev/null. */
bool front_has_input(void);

/* Serve the job until it has ended and all its output is written; returns what to exit with. */
int front_run(struct front *front, const struct session_config *config);

#endif
