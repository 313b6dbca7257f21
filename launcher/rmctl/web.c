/* rmctl web */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "launcher/rmctl/verb.h"
#include "proto/json.h"

#define PORT "7701" /* that ssh makes; any other will do */

/* A browser on this node, or one to which ssh carries the port. */
static void print_link(const Rm__Web *web, const char *address) {
        (void) printf("In a browser on %s, once and within %" PRIu64 " seconds:\n\n  http://%s/#token=%s\n\n", web->node,
                      web->token_usec / 1000000, address, web->token);
        (void) printf("From elsewhere, run this there first:\n\n  ssh -L %s:%s %s\n\n", strrchr(address, ':') + 1, address,
                      web->node);
}

static void print_socket(const Rm__Web *web, const char *path) {
        (void) printf("From elsewhere, run this there:\n\n  ssh -L " PORT ":%s %s\n\nand open http://localhost:" PORT
                      "/ while it runs.\n",
                      path, web->node);
}

/* Another user's program may answer at such a place. */
static void print_unserved(const Rm__Web *web) {
        for (size_t i = 0; i < web->n_unserved; i++)
                (void) fprintf(stderr,
                               "rmctl: rmd of %s could not listen at %s: open no link to it; 'journalctl -u rmd' says why\n",
                               web->node, web->unserved[i]);
}

static void print(const Rm__Web *web) {
        if (web->n_addresses > 0)
                print_link(web, web->addresses[0]);
        if (web->n_addresses > 0 && web->n_sockets > 0)
                (void) puts("Or through the Unix socket, without a link.");
        if (web->n_sockets > 0)
                print_socket(web, web->sockets[0]);
}

static int run(struct call *call) {
        Rm__GetWeb get = RM__GET_WEB__INIT;
        Rm__LocalReply *reply = NULL;
        int r;

        r = call_request(call, &get.base, RM__LOCAL_REPLY__BODY_WEB, &reply);
        if (r < 0)
                return r;
        print_unserved(reply->web);
        if (call->json)
                call_print_json(NULL, json_from_message(&reply->web->base));
        else if (reply->web->n_sockets + reply->web->n_addresses == 0)
                r = error_set(&call->err, -ENOENT, "rmd of %s serves no page: see [web] listen in rmd.conf(5)", reply->web->node);
        else
                print(reply->web);
        rm__local_reply__free_unpacked(reply, NULL);
        return r;
}

const struct verb verb_web = {
        .name = "web",
        .args = "",
        .help = "tell how to open the page of this node in a browser\n"
                "The page shows the cluster as it changes, and of jobs what you may see. A link that is\n"
                "printed shows it as you see it to whoever opens it first, so keep it to yourself.",
        .run = run,
};
