/* Output and input of jobs whose head is on this node: serves front ends, which may sit on any
 * node. */
#ifndef RM_JOB_OUTPUTS_H
#define RM_JOB_OUTPUTS_H

#include <stdint.h>

#include "daemon/client/client.h"
#include "daemon/context.h"
#include "proto/local.pb-c.h"

struct outputs *outputs_create(struct rmd *rmd);
void outputs_destroy(struct outputs *outputs);

/* From now on send the job's output to `client`, as replies to `request_id`. Ends with the client
 * or outputs_detach(). -EAGAIN is sent, here and for input, when this node does not have the head,
 * or does not know it yet: the front end's node attaches again, and repeats what was not
 * confirmed. */
void outputs_attach(struct outputs *outputs, struct client *client, uint32_t request_id, const Rm__AttachJob *attach);
void outputs_detach(struct outputs *outputs, struct client *client);
/* The front end took all before these offsets: more may be sent, and the spool may drop it. */
void outputs_ack(struct outputs *outputs, struct client *client, const Rm__OutputAck *ack);
void outputs_input(struct outputs *outputs, struct client *client, uint32_t request_id, const Rm__JobInput *input);

/* There may be more of this job's output, or its head has ended. */
void outputs_pump(struct outputs *outputs, uint64_t job);
/* Remove the spools of jobs that are forgotten or fully delivered. */
void outputs_clean(struct outputs *outputs);

#endif
