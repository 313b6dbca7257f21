#include "placement/topology/synthetic.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct token {
        char type[16]; /* "" when it has none */
        uint32_t count;
};

/* Attributes, "(size=4MB)", and what hangs beside, "[NUMANode]". */
static const char *skip_brackets(const char *at) {
        while (*at == '(' || *at == '[') {
                char close = *at == '(' ? ')' : ']';

                while (*at && *at != close)
                        at++;
                if (*at)
                        at++;
        }
        return at;
}

static const char *skip_between(const char *at) {
        const char *before;

        do {
                before = at;
                while (isspace((unsigned char) *at))
                        at++;
                at = skip_brackets(at);
        } while (at != before);
        return at;
}

static bool is_type(char c) {
        return isalnum((unsigned char) c) || c == '_' || c == '-';
}

/* A token at `at`; where the next one begins, NULL when it is none. */
static const char *read_token(const char *at, struct token *ret_token) {
        const char *begin = at, *colon;
        unsigned long count;
        size_t length;
        char *end;

        ret_token->type[0] = '\0';
        for (colon = at; is_type(*colon); colon++)
                ;
        if (*colon == ':' || *colon == '=') {
                length = (size_t) (colon - begin);
                if (length == 0)
                        return NULL;
                length = length < sizeof(ret_token->type) ? length : sizeof(ret_token->type) - 1;
                memcpy(ret_token->type, begin, length);
                ret_token->type[length] = '\0';
                at = colon + 1;
        }
        if (!isdigit((unsigned char) *at))
                return NULL;
        errno = 0;
        count = strtoul(at, &end, 10);
        if (errno || count < 1 || count > SYNTHETIC_MOST_CORES)
                return NULL;
        ret_token->count = (uint32_t) count;
        end = (char *) skip_brackets(end);
        return *end == '\0' || isspace((unsigned char) *end) ? end : NULL;
}

static uint32_t find_type(const struct token *token, uint32_t n, const char *type) {
        for (uint32_t i = 0; i < n; i++)
                if (strcasecmp(token[i].type, type) == 0)
                        return i;
        return UINT32_MAX;
}

int synthetic_parse(const char *text, struct synthetic *ret_synthetic) {
        struct token token[SYNTHETIC_MOST_LEVELS];
        struct synthetic parsed = { .things = 1 };
        uint32_t n = 0, cores;
        uint64_t all = 1;

        for (const char *at = skip_between(text); *at; at = skip_between(at)) {
                if (n == SYNTHETIC_MOST_LEVELS)
                        return -EINVAL;
                at = read_token(at, &token[n]);
                if (!at)
                        return -EINVAL;
                if (strcasecmp(token[n].type, "machine") != 0)
                        n++;
        }
        if (n == 0)
                return -EINVAL;
        if ((cores = find_type(token, n, "core")) == UINT32_MAX && (cores = find_type(token, n, "pu")) == UINT32_MAX)
                cores = n - 1;
        for (uint32_t i = 0; i <= cores; i++) {
                all *= token[i].count;
                if (all > SYNTHETIC_MOST_CORES)
                        return -EINVAL;
                if (i == cores)
                        break;
                parsed.count[parsed.n_levels++] = token[i].count;
                parsed.things *= token[i].count;
        }
        parsed.cores = token[cores].count;
        *ret_synthetic = parsed;
        return 0;
}
