/* The rm-agents in the capsule: their requests go to rmd, its answers to them. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_AGENTS_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_AGENTS_H

#include <stdbool.h>
#include <stdint.h>

struct agents;
struct core;
struct rm_error;

int agents_create(struct core *core, struct agents **ret, struct rm_error *error);
/* Looks at the directory; reports new requests, or with `all` every one that is not answered. */
void agents_scan(struct agents *agents, bool all);
/* Returns when agents_timeout() is to be called (now_usec()); UINT64_MAX: not. */
uint64_t agents_deadline(const struct agents *agents);
void agents_timeout(struct agents *agents);
/* -ENOENT: no such request; -EPIPE: its rm-agent is gone. */
int agents_reply(struct agents *agents, const char *id, int status);

#endif
