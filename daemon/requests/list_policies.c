#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/service.h"

static void on_listed(void *context, json_t *list, const struct rm_error *err) {
        struct request_answer *asked = context;
        size_t n = list ? json_array_size(list) : 0;
        Rm__PolicyView *views = xcalloc(n, sizeof(*views));
        Rm__PolicyList policies = RM__POLICY_LIST__INIT;

        policies.policies = xcalloc(n, sizeof(Rm__PolicyView *));
        for (size_t i = 0; i < n; i++) {
                json_t *entry = json_array_get(list, i);
                const char *name = json_string_value(json_object_get(entry, "name"));
                const char *description = json_string_value(json_object_get(entry, "description"));
                const char *error = json_string_value(json_object_get(entry, "error"));

                rm__policy_view__init(&views[i]);
                views[i].name = (char *) (name ? name : "?");
                views[i].description = (char *) (description ? description : "");
                views[i].error = (char *) (error ? error : "");
                views[i].is_default = name && strcmp(name, asked->client->rmd->config->policy) == 0;
                policies.policies[policies.n_policies++] = &views[i];
        }
        if (list)
                client_answer(asked->client, asked->request_id, &policies.base);
        else
                client_error(asked->client, asked->request_id, err->code, "list-policies: %s", error_text(err));
        free(policies.policies);
        free(views);
        request_answer_end(asked);
}

void request_list_policies(struct client *client, const Rm__LocalRequest *request) {
        struct request_answer *asked = request_answer_begin(client, request->id);
        struct rm_error err = { 0 };

        if (policy_host_list(service_policy_host(client->rmd->service), on_listed, asked, &err) < 0) {
                client_error(client, request->id, err.code ? err.code : -EBUSY, "list-policies: %s", error_text(&err));
                request_answer_end(asked);
        }
}
