/* The front end of a job: standard output, error, input, signals and exit code as if the job ran
 * here. */
#ifndef RM_LAUNCHER_CLIENT_FRONTEND_H
#define RM_LAUNCHER_CLIENT_FRONTEND_H

#include "common/error.h"
#include "launcher/client/attachment.h"

struct frontend;

/* From here on the signals that the job is to get are kept for frontend_run(), so that none is lost
 * between submitting and attaching. `signals` false: leave them alone, so that they end the front
 * end and not the job. */
int frontend_create(bool signals, struct frontend **ret_frontend, struct rm_error *err);
void frontend_destroy(struct frontend *frontend); /* NULL ok */

/* Can be read when a signal was kept that asks for the end (SIGINT, SIGTERM, SIGHUP, SIGQUIT);
 * nothing is to be read from it. -1 without `signals`. */
int frontend_end_fd(const struct frontend *frontend);

/* True when standard input can give the job anything: it is open and not /dev/null. */
bool frontend_has_input(void);

/* Serve the job until it has ended and all its output is written; returns what to exit with. The
 * time of day and the directory for temporary files are filled in here. */
int frontend_run(struct frontend *frontend, const struct attachment_config *requested);

#endif
