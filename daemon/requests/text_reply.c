/* Answers that are a JSON document. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/requests/requests.h"

/* The size of the parts of a document that comes in several replies. */
#define TEXT_PART_BYTES (512U << 10)

static void reply_text(struct client *client, uint32_t request_id, char *text, bool more) {
        Rm__Text body = RM__TEXT__INIT;

        body.text = text;
        body.more = more;
        client_answer(client, request_id, &body.base);
}

void request_reply_json(struct client *client, uint32_t request_id, const json_t *json, bool paged) {
        cleanup_free char *text = json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        char *at = text;

        if (!text) {
                client_error(client, request_id, -ENOMEM, "the answer cannot be written as JSON");
                return;
        }
        while (paged && strlen(at) > TEXT_PART_BYTES) {
                char after = at[TEXT_PART_BYTES];

                at[TEXT_PART_BYTES] = 0;
                reply_text(client, request_id, at, true);
                at += TEXT_PART_BYTES;
                *at = after;
        }
        reply_text(client, request_id, at, false);
}
