/* Stops the payload's processes, and lets them go on as if they had not been stopped. */
#ifndef RM_DAEMON_CAPSULE_INIT_FREEZER_H
#define RM_DAEMON_CAPSULE_INIT_FREEZER_H

#include <stdbool.h>

struct init;
struct rm_error;

/* Gives the order; they stand still a moment later. What is parked (park.h) still does after the
 * order to go on. */
int freezer_set(const struct init *init, bool frozen, struct rm_error *error);
bool freezer_is_frozen(const struct init *init);
/* Notes in which system calls the threads of a group that stands still wait. */
void freezer_note_calls(const struct init *init);
/* Lets a group whose calls were noted go on where it has stood: no call is interrupted by it. Some
 * threads do so only with freezer_let_go(), which must follow, also a failure, and takes up to half
 * a second. */
int freezer_resume(const struct init *init, struct rm_error *error);
void freezer_let_go(const struct init *init);

#endif
