#include "daemon/web/web.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "common/version.h"
#include "daemon/client/sessions.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/config/listen.h"
#include "daemon/job/pages_test.h"
#include "daemon/leader/checkpoint_schedule.h"
#include "daemon/metrics/metrics.h"
#include "daemon/web/http.h"
#include "daemon/web/page.h"
#include "daemon/web/peer_uid.h"
#include "daemon/web/viewers.h"
#include "daemon/wire/listener.h"

/* The mode of the Unix socket: everybody may connect, and is told what everybody may know. */
#define SOCKET_MODE 0666
/* A text is made once in such a time, however many ask for it. */
#define FRESH_USEC UINT64_C(1000000)

/* A scrape is one short connection. A page that is open has a few. */
static const struct http_limits limits = {
        .connections = 8,
        .connections_all = 128,
        .requests = { .usec_each = 100000, .burst = 40 },
        .life_usec = 10000000,
        .streams = 4,
        .streams_all = 32,
        .stream_bytes = 1 << 20,
};

/* The page shows them over TCP. Other pages cannot send them without being asked for leave. */
#define TOKEN_HEADER "X-Rmd-Token"
#define SESSION_HEADER "X-Rmd-Session"

struct fresh {
        char *text;
        uint64_t made_usec;
};

struct web {
        struct rmd *rmd;
        struct http *http;
        struct peer_uid *peers;
        struct listener *listeners[LISTENS_MAX];
        struct place {
                struct web *web;
                bool tcp;
        } places[LISTENS_MAX];
        struct log_rate refusals;
        struct page page;
        struct viewers *viewers;
        char session[SESSIONS_SECRET_BYTES + 1]; /* the text of an answer */
        struct fresh fresh[2][2]; /* of each route with a text, in each format */
};

/* ---- the texts ---- */

static uint64_t cpu_usec(void) {
        struct rusage use;

        (void) getrusage(RUSAGE_SELF, &use);
        return (uint64_t) (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
               (uint64_t) (use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static uint64_t resident_bytes(void) {
        unsigned long all = 0, resident = 0;
        FILE *f = fopen("/proc/self/statm", "re");

        if (f && fscanf(f, "%lu %lu", &all, &resident) != 2)
                resident = 0;
        if (f)
                (void) fclose(f);
        return (uint64_t) resident * (uint64_t) sysconf(_SC_PAGESIZE);
}

static char *make_node(const struct rmd *rmd, enum metrics_format format) {
        const char *why;
        const struct metrics_own own = {
                .version = RM_VERSION,
                .node = rmd->config->node_name,
                .leads = cluster_is_leader(rmd->cluster),
                .synced = cluster_synced(rmd->cluster),
                .tracking = rmd->config->move_tracking && pages_test_passed(rmd->pages_test, &why),
                .start_real_usec = now_real_usec() - (now_usec() - rmd->start_usec),
                .cpu_usec = cpu_usec(),
                .resident_bytes = resident_bytes(),
        };

        return metrics_node_text(rmd->metrics, cluster_index(rmd->cluster), &own, format);
}

static uint64_t interval_usec(const void *context, const Rm__Job *job) {
        const struct rmd *rmd = context;

        return checkpoint_interval_usec(cluster_state(rmd->cluster), job, rmd->config->checkpoint_mtbf_usec);
}

static char *make_cluster(const struct rmd *rmd, enum metrics_format format) {
        const struct metrics_cluster cluster = {
                .log_usec = cluster_log_usec(rmd->cluster),
                .interval_usec = interval_usec,
                .context = rmd,
        };

        return metrics_cluster_text(rmd->metrics, cluster_index(rmd->cluster), &cluster, format);
}

static void answer_text(struct http_answer *ret, unsigned status, const char *text) {
        ret->status = status;
        ret->text = text;
}

/* ---- metrics ---- */

static char *(*const figures[])(const struct rmd *rmd, enum metrics_format format) = { make_node, make_cluster };

static void answer_figures(struct web *web, size_t which, const struct http_request *request, struct http_answer *ret) {
        enum metrics_format format = metrics_format_for(request->accept);
        struct fresh *fresh = &web->fresh[which][format];
        uint64_t now = now_usec();

        if (!fresh->text || now - fresh->made_usec >= FRESH_USEC) {
                free(fresh->text);
                fresh->text = figures[which](web->rmd, format);
                fresh->made_usec = now;
        }
        ret->status = 200;
        ret->type = metrics_content_type(format);
        ret->text = fresh->text;
}

static void answer_node(struct web *web, const struct http_request *request, struct http_answer *ret) {
        answer_figures(web, 0, request, ret);
}

/* No other node has the figures of all. */
static void answer_cluster(struct web *web, const struct http_request *request, struct http_answer *ret) {
        if (cluster_is_leader(web->rmd->cluster))
                answer_figures(web, 1, request, ret);
        else
                answer_text(ret, 503, "this node does not lead the cluster; only the leader has these metrics\n");
}

/* ---- the page ---- */

static void answer_page(struct web *web, const struct http_request *request, struct http_answer *ret) {
        if (!web->page.text) {
                answer_text(
                        ret, 200,
                        "rmd serves /metrics and, on the leader, /metrics/cluster: see rmd-web(7). The page is not installed.\n");
                return;
        }
        answer_text(ret, 200, web->page.text);
        ret->type = "text/html; charset=utf-8";
        ret->policy = web->page.policy;
}

/* Finds the user whose browser it is. On the Unix socket the kernel knows; over TCP only a session
 * says so. */
static bool find_viewer(struct web *web, const struct http_request *request, struct viewer_wish *ret_wish) {
        const char *session = http_request_header(request, SESSION_HEADER);

        ret_wish->uid = request->uid;
        ret_wish->end_usec = UINT64_MAX;
        if (!request->browser_checks)
                return request->uid != HTTP_UNKNOWN_USER;
        return session && sessions_find(web->rmd->sessions, session, now_usec(), &ret_wish->uid, &ret_wish->end_usec) == 0;
}

static void answer_stream(struct web *web, const struct http_request *request, struct http_answer *ret) {
        const char *since = http_request_argument(request, "since");
        struct viewer_wish wish = { 0 };
        int64_t index = 0;

        if (!find_viewer(web, request, &wish)) {
                answer_text(ret, 401, "this needs a session: 'rmctl web' on this node prints a link that begins one\n");
                return;
        }
        if (since && parse_i64(since, 0, INT64_MAX, &index) < 0) {
                answer_text(ret, 400, "since is not the index of an event\n");
                return;
        }
        wish.since = (uint64_t) index;
        ret->stream = viewers_add(web->viewers, web->http, &wish);
        if (!ret->stream) {
                answer_text(ret, 503, "you, or all users of this node, look at as many pages as rmd serves\n");
                return;
        }
        ret->status = 200;
        ret->type = "text/event-stream";
}

/* A token for a session. */
static void answer_session(struct web *web, const struct http_request *request, struct http_answer *ret) {
        const char *token = http_request_header(request, TOKEN_HEADER);
        char value[SESSIONS_SECRET_BYTES] = "";

        if (!token || sessions_begin(web->rmd->sessions, token, now_usec(), value) < 0) {
                answer_text(ret, 401, "the link was used before, or is too old: 'rmctl web' on this node prints another one\n");
                return;
        }
        (void) snprintf(web->session, sizeof(web->session), "%s\n", value);
        answer_text(ret, 200, web->session);
}

/* ---- the routes ---- */

enum audience {
        EVERYBODY,
        THE_USER,
        THE_PAGE, /* what it fetches for its user; no link leads there */
};

static const struct route {
        const char *path;
        void (*answer)(struct web *web, const struct http_request *request, struct http_answer *ret);
        enum audience audience;
} routes[] = {
        { "/", answer_page, THE_USER },
        { "/stream", answer_stream, THE_PAGE },
        { "/session", answer_session, THE_PAGE },
        { "/metrics", answer_node, EVERYBODY },
        { "/metrics/cluster", answer_cluster, EVERYBODY },
};

/* A browser says of a page from elsewhere, also from another port of the same machine, that it is
 * none of this server. Such a page could read nothing here, but it could take all streams that its
 * reader may have. Who is no browser says nothing. */
static bool is_from_elsewhere(const struct http_request *request) {
        const char *site = http_request_header(request, "Sec-Fetch-Site");

        return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

/* A personal answer is not for a page from elsewhere, whichever way a browser gets here: ssh makes
 * a port of the Unix socket. So the Host header must name the loopback there as well. */
static void on_request(void *context, const struct http_request *request, struct http_answer *ret) {
        const struct route *route = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
                if (strcmp(routes[i].path, request->path) == 0)
                        route = &routes[i];
        if (!route)
                answer_text(ret, 404,
                            "rmd serves its page at /, and /metrics and, on the leader, /metrics/cluster: see rmd-web(7)\n");
        else if (route->audience != EVERYBODY && !request->host_is_loopback)
                answer_text(ret, 421,
                            "the Host header does not name the loopback of this machine: a proxy has to set it to localhost\n");
        else if (route->audience == THE_PAGE && is_from_elsewhere(request))
                answer_text(ret, 403, "a page from elsewhere has asked for this: only rmd's own page may\n");
        else
                route->answer(context, request, ret);
}

/* ---- who connects ---- */

static uid_t uid_of(struct web *web, int fd, bool tcp) {
        uid_t uid = HTTP_UNKNOWN_USER;
        struct ucred creds;
        socklen_t bytes = sizeof(creds);

        if (tcp)
                (void) peer_uid_find(web->peers, fd, &uid);
        else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &creds, &bytes) == 0)
                uid = creds.uid;
        return uid;
}

static void on_accept(void *userdata, int fd, const char *name) {
        const struct place *place = userdata;
        struct web *web = place->web;
        uid_t uid = uid_of(web, fd, place->tcp);

        if (!http_add(web->http, fd, uid, place->tcp))
                log_limited(&web->refusals, LOG_WARNING,
                            "web: %s: closed, user %d has too many connections or requests, or all have", name, (int) uid);
}

/* ---- the whole ---- */

static int listen_at(struct web *web, const struct listen_at *at, struct place *place, struct listener **ret,
                     struct rm_error *err) {
        *place = (struct place) { .web = web, .tcp = !at->path[0] };
        if (place->tcp)
                return listener_create_tcp(web->rmd->base, at->address, at->port, on_accept, place, ret, err);
        return listener_create_unix(web->rmd->base, at->path, SOCKET_MODE, on_accept, place, ret, err);
}

/* Metrics are served also without it. */
static void load_page(struct web *web) {
        struct rm_error why = { 0 };

        if (page_load(RM_PAGE_PATH, &web->page, &why) < 0)
                log_warn("web: %s: the page is not served", error_text(&why));
}

int web_create(struct rmd *rmd, struct web **ret, struct rm_error *err) {
        struct listen_at at[LISTENS_MAX];
        struct web *web;
        size_t n = 0;
        int r = listens_parse(rmd->config->web_listen, at, &n, err);

        if (r < 0 || n == 0)
                return r;
        web = xcalloc(1, sizeof(*web));
        web->rmd = rmd;
        r = http_create(rmd->base, &limits, on_request, web, &web->http, err);
        if (r < 0) {
                web_destroy(web);
                return r;
        }
        web->peers = peer_uid_create();
        web->viewers = viewers_create(rmd);
        load_page(web);
        for (size_t i = 0; i < n; i++) {
                struct rm_error why = { 0 };

                if (listen_at(web, &at[i], &web->places[i], &web->listeners[i], &why) == 0)
                        continue;
                rmd->web_lacks |= UINT32_C(1) << i;
                log_error("web: %s: nothing is served there; see [web] listen in rmd.conf(5)", error_text(&why));
        }
        *ret = web;
        return 0;
}

void web_wake(struct web *web) {
        if (web)
                viewers_wake(web->viewers);
}

void web_destroy(struct web *web) {
        if (!web)
                return;
        for (size_t i = 0; i < LISTENS_MAX; i++)
                listener_destroy(web->listeners[i]);
        http_destroy(web->http);
        viewers_destroy(web->viewers);
        page_finish(&web->page);
        peer_uid_destroy(web->peers);
        for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
                for (size_t format = 0; format < 2; format++)
                        free(web->fresh[i][format].text);
        free(web);
}
