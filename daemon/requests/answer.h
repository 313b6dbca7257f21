/* A request that is answered later, when the client may have gone. */
#ifndef RM_REQUESTS_ANSWER_H
#define RM_REQUESTS_ANSWER_H

#include "daemon/client/client.h"

struct request_answer {
        struct client *client; /* held */
        uint32_t request_id;
};

struct request_answer *request_answer_begin(struct client *client, uint32_t request_id);
/* The request has been answered. */
void request_answer_end(struct request_answer *answer);

#endif
