/* A local client attached to a job: follows the job wherever its head goes, so that the front end
 * need not know. */
#ifndef RM_REQUESTS_ATTACHMENT_H
#define RM_REQUESTS_ATTACHMENT_H

#include "daemon/client/client.h"

/* The local client follows the job of the request, in the place of the one that it followed
 * before. */
void attachment_begin(struct client *client, uint32_t request_id, const Rm__AttachJob *in);
/* The client does not follow a job any more. It may never have. */
void attachment_leave(struct client *client);

/* NULL ok: false. */
bool attachment_is_of(const struct attachment *attachment, uint64_t job);
/* Sends input to the job's head. The client keeps what was not confirmed, and is asked to send it
 * again wherever the head is next. */
void attachment_put_input(struct attachment *attachment, const Rm__LocalRequest *request);

/* The state has changed, or the client has read what was sent. It may follow no job. */
void attachment_state_changed(struct client *client);
void attachment_drained(struct client *client);

#endif
