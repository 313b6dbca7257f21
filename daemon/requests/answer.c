#include "daemon/requests/answer.h"

#include <stdlib.h>

#include "common/util.h"

struct request_answer *request_answer_begin(struct client *client, uint32_t request_id) {
        struct request_answer *answer = xcalloc(1, sizeof(*answer));

        *answer = (struct request_answer) { .client = client_hold(client), .request_id = request_id };
        return answer;
}

void request_answer_end(struct request_answer *answer) {
        client_release(answer->client);
        free(answer);
}
