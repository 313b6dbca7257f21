/* A client: asks one thing after the other, of any voter, and asks again when it heard nothing. */
#ifndef RM_TESTS_SIM_CLIENT_H
#define RM_TESTS_SIM_CLIENT_H

#include "tests/sim/replica.h"

struct client;

/* Its host has `number`. `voters` is borrowed. */
struct client *client_create(struct timeline *t, struct checks *checks, unsigned number, struct replica *const *voters,
                             unsigned n_voters);
void client_connect(struct client *c, struct network *network);
void client_destroy(struct client *c); /* NULL ok */

struct host *client_host(const struct client *c);
/* When the last operation that was answered had begun; 0: none was. */
uint64_t client_answered_begin_usec(const struct client *c);
/* How many operations were answered. */
uint64_t client_answered(const struct client *c);

#endif
