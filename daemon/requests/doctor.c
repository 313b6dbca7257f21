/* The facts of this node that rmctl doctor judges. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/doctor/doctor.h"
#include "daemon/requests/requests.h"
#include "daemon/wire/tls.h"

struct asked {
        struct client *client;
        uint32_t request_id;
        uint64_t received_usec;
};

void request_hide_key(const struct rmd *rmd, Rm__NodeFacts *facts) {
        facts->key_same = strcmp(facts->key_fingerprint, tls_fingerprint(rmd->tls, false)) == 0;
        message_set_string(&facts->key_fingerprint, "");
}

static void on_facts(void *userdata, const Rm__NodeFacts *facts) {
        struct asked *asked = userdata;
        struct client *client = asked->client;

        if (facts) {
                Rm__NodeFacts *copy = (Rm__NodeFacts *) message_copy(&facts->base);

                if (client->conn)
                        request_hide_key(client->rmd, copy);
                copy->received_usec = asked->received_usec;
                copy->sent_usec = now_real_usec();
                client_answer(client, asked->request_id, &copy->base);
                rm__node_facts__free_unpacked(copy, NULL);
        } else {
                client_error(client, asked->request_id, -ESHUTDOWN, "doctor: rmd on %s ends", client->rmd->config->node_name);
        }
        client_release(client);
        free(asked);
}

void request_node_facts(struct client *client, const Rm__LocalRequest *request) {
        struct asked *asked = xcalloc(1, sizeof(*asked));

        *asked = (struct asked) { .client = client_hold(client), .request_id = request->id, .received_usec = now_real_usec() };
        doctor_ask(client->rmd->doctor, on_facts, asked);
}
