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
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        if (facts) {
                reply.body_case = RM__LOCAL_REPLY__BODY_NODE_FACTS;
                reply.node_facts = (Rm__NodeFacts *) message_copy(&facts->base);
                if (client->conn)
                        request_hide_key(client->rmd, reply.node_facts);
                reply.node_facts->received_usec = asked->received_usec;
                reply.node_facts->sent_usec = now_real_usec();
                client_reply(client, asked->request_id, &reply);
                rm__node_facts__free_unpacked(reply.node_facts, NULL);
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
