#include "daemon/health/conditions.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/state/commands.h"
#include "daemon/state/state.h"

/* After a refusal, or when no leader was found within the time of a proposal. */
#define AGAIN_USEC UINT64_C(10000000)

/* `logged`: the log has had it. If an administrator says otherwise afterwards, that counts until
 * the source changes its mind. */
struct word {
        char *source;
        Rm__Condition condition;
        char reason[STATE_CONDITION_REASON_MAX_BYTES + 1];
        bool said; /* the source has said something */
        bool logged;
};

struct conditions {
        struct rmd *rmd;
        struct word words[STATE_CONDITION_SOURCES_MAX];
        size_t n;
        struct event *again;
        struct word *proposed; /* NULL: nothing is under way */
        bool stale; /* what is proposed was overtaken by another word */
        bool complete; /* there are no other sources */
        bool waits; /* for `again` */
};

static struct word *find_word(struct conditions *c, const char *source) {
        for (size_t i = 0; i < c->n; i++)
                if (strcmp(c->words[i].source, source) == 0)
                        return &c->words[i];
        return NULL;
}

static int get_word(struct conditions *c, const char *source, struct word **ret) {
        struct word *word;

        if (!name_valid(source))
                return -EINVAL;
        word = find_word(c, source);
        if (!word && c->n == ARRAY_SIZE(c->words))
                return -ENOSPC;
        if (!word) {
                word = &c->words[c->n++];
                *word = (struct word) { .source = xstrdup(source) };
        }
        *ret = word;
        return 0;
}

static void settle(struct conditions *c);

static void on_again(evutil_socket_t fd, short what, void *arg) {
        struct conditions *c = arg;

        c->waits = false;
        settle(c);
}

static void on_logged(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        struct conditions *c = userdata;
        struct word *word = take_ptr(c->proposed);

        if (code == -ECANCELED)
                return; /* rmd ends */
        if (code < 0) {
                log_warn("condition of this node, as %s has it: %s", word->source, text && *text ? text : strerror(-code));
                c->waits = true;
                timer_arm(c->again, AGAIN_USEC);
                return;
        }
        word->logged = !c->stale;
        settle(c);
}

static Rm__Condition logged_condition(const Rm__Node *self, const char *source) {
        for (size_t i = 0; i < self->n_conditions; i++)
                if (strcmp(self->conditions[i]->source, source) == 0)
                        return self->conditions[i]->condition;
        return RM__CONDITION__CONDITION_OK;
}

/* Sources that are not here any more say that all is well. */
static void take_back(struct conditions *c, const Rm__Node *self) {
        for (size_t i = 0; c->complete && i < self->n_conditions; i++) {
                const Rm__NodeCondition *said = self->conditions[i];

                if (strcmp(said->by, self->name) == 0 && !find_word(c, said->source))
                        (void) conditions_report(c, said->source, RM__CONDITION__CONDITION_OK, "");
        }
}

static void propose(struct conditions *c, struct word *word) {
        const char *self = cluster_self(c->rmd->cluster);
        struct command command;

        c->proposed = word;
        c->stale = false;
        cluster_propose(c->rmd->cluster, command_node_condition(&command, self, word->source, word->condition, word->reason, self),
                        on_logged, c);
}

static void settle(struct conditions *c) {
        const Rm__State *state = cluster_state(c->rmd->cluster);
        const Rm__Node *self = state_node(state, cluster_self(c->rmd->cluster));

        if (c->proposed || c->waits || !self || !cluster_synced(c->rmd->cluster))
                return;
        for (size_t i = 0; i < c->n && !c->proposed; i++) {
                struct word *word = &c->words[i];

                if (!word->said || word->logged)
                        continue;
                if (logged_condition(self, word->source) == word->condition)
                        word->logged = true; /* the reason alone may change with every look */
                else
                        propose(c, word);
        }
}

int conditions_expect(struct conditions *conditions, const char *source) {
        struct word *word;

        return get_word(conditions, source, &word);
}

void conditions_expected(struct conditions *conditions) {
        conditions->complete = true;
        conditions_wake(conditions);
}

int conditions_report(struct conditions *conditions, const char *source, Rm__Condition condition, const char *reason) {
        struct word *word;
        int r;

        if (!protobuf_c_enum_descriptor_get_value(&rm__condition__descriptor, (int) condition))
                return -EINVAL;
        r = get_word(conditions, source, &word);
        if (r < 0)
                return r;
        if (word->said && word->condition == condition)
                return 0;
        (void) text_escape(reason && *reason ? reason : condition ? "it gave no reason" : "", word->reason, sizeof(word->reason));
        word->condition = condition;
        word->said = true;
        word->logged = false;
        conditions->stale = conditions->stale || conditions->proposed == word;
        settle(conditions);
        return 0;
}

void conditions_wake(struct conditions *conditions) {
        const Rm__Node *self =
                conditions ? state_node(cluster_state(conditions->rmd->cluster), cluster_self(conditions->rmd->cluster)) : NULL;

        if (!self)
                return;
        take_back(conditions, self);
        settle(conditions);
}

struct conditions *conditions_create(struct rmd *rmd) {
        struct conditions *c = xcalloc(1, sizeof(*c));

        c->rmd = rmd;
        c->again = evtimer_new(rmd->base, on_again, c);
        return c;
}

void conditions_destroy(struct conditions *conditions) {
        if (!conditions)
                return;
        for (size_t i = 0; i < conditions->n; i++)
                free(conditions->words[i].source);
        event_free(conditions->again);
        free(conditions);
}
