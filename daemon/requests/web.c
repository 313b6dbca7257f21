#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"
#include "daemon/client/sessions.h"
#include "daemon/config/config.h"
#include "daemon/config/listen.h"
#include "daemon/requests/requests.h"

static char *place_text(const struct listen_at *at) {
        return at->path[0] ? xstrdup(at->path) : xasprintf("%s:%u", at->address, at->port);
}

static bool is_served(const struct rmd *rmd, size_t i) {
        return !(rmd->web_lacks >> i & 1);
}

/* The setting was parsed when rmd was started. */
static size_t configured_places(const struct rmd *rmd, struct listen_at at[static LISTENS_MAX]) {
        size_t n = 0;

        return listens_parse(rmd->config->web_listen, at, &n, NULL) < 0 ? 0 : n;
}

/* Lists the addresses and sockets of the page. A place that rmd does not have may be another
 * user's: nobody is sent there with a token. */
static void list_places(const struct rmd *rmd, Rm__Web *web) {
        struct listen_at at[LISTENS_MAX];
        size_t n = configured_places(rmd, at);

        web->sockets = xcalloc(LISTENS_MAX, sizeof(char *));
        web->addresses = xcalloc(LISTENS_MAX, sizeof(char *));
        web->unserved = xcalloc(LISTENS_MAX, sizeof(char *));
        for (size_t i = 0; i < n; i++) {
                if (!is_served(rmd, i))
                        web->unserved[web->n_unserved++] = place_text(&at[i]);
                else if (at[i].path[0])
                        web->sockets[web->n_sockets++] = place_text(&at[i]);
                else
                        web->addresses[web->n_addresses++] = place_text(&at[i]);
        }
}

char *web_unserved(const struct rmd *rmd) {
        struct listen_at at[LISTENS_MAX];
        size_t n = configured_places(rmd, at);
        char *text = NULL;

        for (size_t i = 0; i < n; i++) {
                cleanup_free char *place = place_text(&at[i]);

                if (!is_served(rmd, i))
                        text = text_add_word(text, " ", place);
        }
        return text;
}

static void free_places(Rm__Web *web) {
        free_all(web->sockets, web->n_sockets);
        free_all(web->addresses, web->n_addresses);
        free_all(web->unserved, web->n_unserved);
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
        list_places(rmd, &web);
        if (web.n_addresses > 0)
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
