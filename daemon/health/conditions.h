/* The conditions that this node's own sources, its sensors, report: kept until the log has them. */
#ifndef RM_HEALTH_CONDITIONS_H
#define RM_HEALTH_CONDITIONS_H

#include "daemon/context.h"
#include "proto/state.pb-c.h"

struct conditions;

/* `rmd`: its cluster and base are used. */
struct conditions *conditions_create(struct rmd *rmd);
/* After cluster_destroy(), which answers what was proposed. NULL ok. What the log does not have yet
 * is lost. */
void conditions_destroy(struct conditions *conditions);

/* There is such a source here, which has said nothing yet. -EINVAL: its name is not valid; -ENOSPC:
 * STATE_CONDITION_SOURCES_MAX others are known. */
int conditions_expect(struct conditions *conditions, const char *source);
/* All sources of this node have been named: what it said under other names, before it was
 * configured again, is taken back. */
void conditions_expected(struct conditions *conditions);

/*
 * A source of this node has come to another opinion of it; the same again changes nothing. Any text
 * may be the reason: it is made one line, and cut. It is proposed until the log has it, however
 * long there is no leader, and only then the next word of that source, if it has another by then.
 * If an administrator says otherwise in its name, that counts until the source changes its mind.
 * Errors as those of conditions_expect(), and -EINVAL for a condition that is none.
 */
int conditions_report(struct conditions *conditions, const char *source, Rm__Condition condition, const char *reason);

/* The state has changed, or the leader. */
void conditions_wake(struct conditions *conditions);

#endif
