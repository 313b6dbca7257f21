#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/client/sessions.h"
#include "daemon/config/config.h"
#include "daemon/config/listen.h"
#include "daemon/requests/requests.h"

/* Lists the addresses and sockets of the page. */
static size_t list_places(const struct rmd *rmd, Rm__Web *web) {
        struct listen_at at[LISTENS_MAX];
        size_t n = 0;

        /* The setting was parsed when rmd was started. */
        if (listens_parse(rmd->config->web_listen, at, &n, NULL) < 0)
                return 0;
        web->sockets = xcalloc(LISTENS_MAX, sizeof(char *));
        web->addresses = xcalloc(LISTENS_MAX, sizeof(char *));
        for (size_t i = 0; i < n; i++) {
                if (at[i].path[0])
                        web->sockets[web->n_sockets++] = xstrdup(at[i].path);
                else
                        web->addresses[web->n_addresses++] = xasprintf("%s:%u", at[i].address, at[i].port);
        }
        return n;
}

static void free_places(Rm__Web *web) {
        free_all(web->sockets, web->n_sockets);
        free_all(web->addresses, web->n_addresses);
}

/* A token is the caller's: whoever shows it sees what he may see. */
void request_web(struct client *client, const Rm__LocalRequest *request) {
        const struct rmd *rmd = client->rmd;
        char token[SESSIONS_SECRET_BYTES] = "";
        Rm__Web web = RM__WEB__INIT;
        int r = 0;

        web.node = rmd->config->node_name;
        web.token = token;
        web.token_usec = SESSIONS_TOKEN_USEC;
        if (list_places(rmd, &web) > 0 && web.n_addresses > 0)
                r = sessions_offer(rmd->sessions, client->uid, now_usec(), token);
        if (r == -EUSERS)
                client_error(client, request->id, r,
                             "web: users have as many sessions at the page of this node as there may be: try later");
        else if (r < 0)
                client_error(client, request->id, r, "web: the kernel gives no random numbers");
        else
                client_answer(client, request->id, &web.base);
        explicit_bzero(token, sizeof(token));
        free_places(&web);
}
