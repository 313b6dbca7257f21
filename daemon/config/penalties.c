#include "daemon/config/penalties.h"

#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/hostlist.h"
#include "common/util.h"

#define BLANKS " \t"

struct penalty {
        char *node;
        int64_t value;
        UT_hash_handle hh;
};

static struct penalty *find(const struct penalties *penalties, const char *node) {
        struct penalty *penalty;

        HASH_FIND_STR(penalties->by_name, node, penalty);
        return penalty;
}

static void set(struct penalties *penalties, const char *node, int64_t value) {
        struct penalty *penalty = find(penalties, node);

        if (!penalty) {
                penalty = xcalloc(1, sizeof(*penalty));
                penalty->node = xstrdup(node);
                HASH_ADD_KEYPTR(hh, penalties->by_name, penalty->node, strlen(penalty->node), penalty);
        }
        penalty->value = value;
}

/* "n[10-12]:5"; written into. */
static int add_word(struct penalties *penalties, char *word, struct rm_error *err) {
        char *colon = strrchr(word, ':');
        struct hostlist nodes = { 0 };
        int64_t value;
        int r;

        if (!colon || parse_i64(colon + 1, 0, PENALTY_MAX, &value) < 0)
                return error_set(err, -EINVAL, "'%s' does not end in a colon and a number from 0 to %d", word, PENALTY_MAX);
        *colon = 0;
        r = hostlist_expand(&nodes, word, err);
        for (size_t i = 0; r == 0 && i < nodes.n_names; i++)
                set(penalties, nodes.names[i], value);
        hostlist_finish(&nodes);
        return r;
}

int penalties_add(struct penalties *penalties, const char *text, struct rm_error *err) {
        cleanup_free char *copy = xstrdup(text);
        struct penalties added = { 0 };
        struct penalty *penalty, *next;
        char *rest = copy, *word;
        int r = 0;

        while (r == 0 && (word = strsep(&rest, BLANKS)))
                r = *word ? add_word(&added, word, err) : 0;
        HASH_ITER (hh, added.by_name, penalty, next)
                if (r == 0)
                        set(penalties, penalty->node, penalty->value);
        penalties_finish(&added);
        return r;
}

int64_t penalties_of(const struct penalties *penalties, const char *node) {
        const struct penalty *penalty = find(penalties, node);

        return penalty ? penalty->value : 0;
}

void penalties_finish(struct penalties *penalties) {
        struct penalty *penalty, *next;

        HASH_ITER (hh, penalties->by_name, penalty, next) {
                HASH_DEL(penalties->by_name, penalty);
                free(penalty->node);
                free(penalty);
        }
}
