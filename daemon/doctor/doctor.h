/* Facts about this node for `rmctl doctor`: those that rmd has itself, and those that rm-node-facts
 * finds. Nothing here blocks. */
#ifndef RM_DOCTOR_DOCTOR_H
#define RM_DOCTOR_DOCTOR_H

#include <stddef.h>

#include "common/error.h"
#include "daemon/context.h"
#include "proto/local.pb-c.h"

struct doctor;

/* `facts` are valid during the call; NULL: rmd ends. When they could not be collected they say
 * why. */
typedef void (*doctor_fn)(void *userdata, const Rm__NodeFacts *facts);

struct doctor *doctor_create(struct rmd *rmd);
/* Requests that still wait are answered with an error. NULL ok. */
void doctor_destroy(struct doctor *doctor);

/* `done` is called once, perhaps before this returns: however many ask, the facts are collected
 * once in a few seconds. */
void doctor_ask(struct doctor *doctor, doctor_fn done, void *userdata);

/* Pure. What rm-node-facts has written; -EBADMSG with a text when that is none. The caller frees it
 * with rm__node_facts__free_unpacked(). */
int doctor_parse(const void *output, size_t output_bytes, Rm__NodeFacts **ret, struct rm_error *err);

#endif
