#include "daemon/requests/exchange_request.h"

#include <errno.h>

void exchange_opened(void *userdata, const char *socket) {
        const struct request_answer *asked = userdata;
        Rm__Exchange body = RM__EXCHANGE__INIT;

        body.socket = (char *) socket;
        client_answer(asked->client, asked->request_id, &body.base);
}

void exchange_ended(struct request_answer *asked, const char *verb, int error, const char *text) {
        if (error < 0)
                client_error(asked->client, asked->request_id, error, "%s: %s", verb, text);
        else
                client_ok(asked->client, asked->request_id, 0, text);
        request_answer_end(asked);
}

int sealed_key_check(const struct client *client, const char *verb, const char *key_file, struct rm_error *err) {
        if (!*key_file)
                return 0;
        if (!client->conn || client->uid != 0)
                return error_set(
                        err, -EPERM,
                        "%s: only root may give a key: whoever has it can read all that is in the checkpoint, and make others",
                        verb);
        return *key_file == '/' ? 0 : error_set(err, -EINVAL, "%s: the path '%s' is not absolute", verb, key_file);
}
