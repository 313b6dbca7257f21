#include "daemon/leader/fences.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/leader/fence_host.h"
#include "daemon/state/commands.h"

enum { DOUBLED_AT_MOST = 4 };

/* The fence of one loss of a node. */
struct fence {
        LIST_ENTRY(fence) entry;
        struct fences *fences;
        char *node;
        uint64_t down_since_usec;
        struct fence_host *host; /* NULL: none runs */
        unsigned tries;
        uint64_t next_usec; /* monotonic, when none runs */
        bool requested;
};

struct fences {
        struct rmd *rmd;
        LIST_HEAD(, fence) list;
};

uint64_t fences_pause_usec(uint64_t retry_usec, unsigned failures) {
        unsigned doubled = failures > 0 ? failures - 1 : 0;

        return retry_usec << (doubled < DOUBLED_AT_MOST ? doubled : DOUBLED_AT_MOST);
}

/* Better now than when a node is lost. */
static void search_plugin(const struct fences *fences) {
        cleanup_free char *path = xasprintf(RM_PLUGIN_DIR "/%s.so", fences->rmd->config->fence_plugin);

        if (fences_configured(fences) && access(path, R_OK) < 0)
                log_warn("[fence] plugin '%s': %s: %s; no job that loses a node will start again",
                         fences->rmd->config->fence_plugin, path, strerror(errno));
}

struct fences *fences_create(struct rmd *rmd) {
        struct fences *fences = xcalloc(1, sizeof(*fences));

        fences->rmd = rmd;
        LIST_INIT(&fences->list);
        search_plugin(fences);
        return fences;
}

static void fence_free(struct fence *fence) {
        fence_host_abandon(fence->host);
        LIST_REMOVE(fence, entry);
        free(fence->node);
        free(fence);
}

void fences_destroy(struct fences *fences) {
        if (!fences)
                return;
        while (!LIST_EMPTY(&fences->list))
                fence_free(LIST_FIRST(&fences->list));
        free(fences);
}

bool fences_configured(const struct fences *fences) {
        return strcmp(fences->rmd->config->fence_plugin, CONFIG_FENCE_NONE) != 0;
}

static void report(const struct fence *fence, bool fenced, const char *text) {
        struct command c;

        cluster_propose(fence->fences->rmd->cluster,
                        command_node_fence(&c, fence->node, fence->down_since_usec, fenced, text, NULL), NULL, NULL);
}

static void failed(struct fence *fence, const char *why) {
        const struct config *config = fence->fences->rmd->config;
        uint64_t pause = fences_pause_usec(config->fence_retry_usec, fence->tries);
        cleanup_free char *text = xasprintf("plugin '%s' failed (try %u): %s; next try after %.1f s", config->fence_plugin,
                                            fence->tries, why, (double) pause / 1e6);

        fence->next_usec = now_usec() + pause;
        log_warn("fence of node %s: %s", fence->node, text);
        report(fence, false, text);
}

static void on_done(void *context, const struct rm_error *error) {
        struct fence *fence = context;
        const struct config *config = fence->fences->rmd->config;
        cleanup_free char *text = NULL;

        fence->host = NULL;
        if (error) {
                failed(fence, error_text(error));
                return;
        }
        text = xasprintf("plugin '%s' has fenced it (try %u)", config->fence_plugin, fence->tries);
        log_info("fence of node %s: %s", fence->node, text);
        /* The result is proposed again after this time, in case that the log does not take it
         * now. */
        fence->next_usec = now_usec() + config->fence_retry_usec;
        report(fence, true, text);
}

/* A failure is to be read until the next one, or the end. */
static void start(struct fence *fence, const Rm__Node *node) {
        struct rmd *rmd = fence->fences->rmd;
        const struct fence_order order = { .plugin = rmd->config->fence_plugin,
                                           .program = rmd->config->fence_program,
                                           .cluster = rmd->config->cluster_name,
                                           .node = node->name,
                                           .address = node->address,
                                           .try_number = ++fence->tries,
                                           .timeout_usec = rmd->config->fence_timeout_usec };
        cleanup_free char *text = xasprintf("plugin '%s' runs", rmd->config->fence_plugin);
        struct rm_error err = { 0 };

        log_info("fence of node %s: %s, try %u", fence->node, text, fence->tries);
        if (!node->fence[0])
                report(fence, false, text);
        if (fence_host_start(rmd->base, &order, on_done, fence, &fence->host, &err) < 0)
                failed(fence, error_text(&err));
}

static struct fence *find(struct fences *fences, const Rm__Node *node) {
        struct fence *fence;

        LIST_FOREACH (fence, &fences->list, entry)
                if (strcmp(fence->node, node->name) == 0 && fence->down_since_usec == node->health_since_usec)
                        return fence;
        fence = xcalloc(1, sizeof(*fence));
        fence->fences = fences;
        fence->node = xstrdup(node->name);
        fence->down_since_usec = node->health_since_usec;
        LIST_INSERT_HEAD(&fences->list, fence, entry);
        return fence;
}

void fences_scan_begin(struct fences *fences) {
        struct fence *fence;

        LIST_FOREACH (fence, &fences->list, entry)
                fence->requested = false;
}

void fences_want(struct fences *fences, const Rm__Node *node) {
        struct fence *fence = find(fences, node);

        fence->requested = true;
        if (!fence->host && now_usec() >= fence->next_usec)
                start(fence, node);
}

void fences_scan_end(struct fences *fences) {
        struct fence *fence, *next;

        for (fence = LIST_FIRST(&fences->list); fence; fence = next) {
                next = LIST_NEXT(fence, entry);
                if (fence->requested)
                        continue;
                if (fence->host)
                        log_info("fence of node %s: ended, nothing waits for it any more", fence->node);
                fence_free(fence);
        }
}
