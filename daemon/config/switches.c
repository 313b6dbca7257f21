#include "daemon/config/switches.h"

#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/text.h"
#include "common/util.h"

#define BLANKS " \t\r"

/* A name that has been seen. */
struct seen {
        const char *name; /* of the list */
        size_t index;     /* of the switch: itself, or the one above it */
        UT_hash_handle hh;
};

struct parser {
        const char *name;
        struct rm_error *err;
        struct switches out;
        struct hostlist *below; /* of each switch: names of switches */
        size_t n_nodes;         /* named so far, in all lines */
        size_t n_below;         /* the same, of switches */
        struct seen *switches, *nodes;
        size_t line;
};

static int bad(const struct parser *p, size_t line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int bad(const struct parser *p, size_t line, const char *fmt, ...) {
        char text[RM_ERROR_TEXT_BYTES];
        va_list ap;

        va_start(ap, fmt);
        (void) text_format_va(text, sizeof(text), fmt, ap);
        va_end(ap);
        return error_set(p->err, -EINVAL, "%s:%zu: %s", p->name, line, text);
}

static struct seen *find(struct seen *all, const char *name) {
        struct seen *seen;

        HASH_FIND_STR(all, name, seen);
        return seen;
}

static void add(struct seen **all, const char *name, size_t index) {
        struct seen *seen = xcalloc(1, sizeof(*seen));

        seen->name = name;
        seen->index = index;
        HASH_ADD_KEYPTR(hh, *all, seen->name, strlen(seen->name), seen);
}

static void forget(struct seen **all) {
        struct seen *seen, *next;

        HASH_ITER (hh, *all, seen, next) {
                HASH_DEL(*all, seen);
                free(seen);
        }
}

/* ---- one line ---- */

static int set_name(struct parser *p, const char *value) {
        struct config_switch *at = &p->out.list[p->out.n - 1];
        const struct seen *first = find(p->switches, value);

        if (at->name)
                return bad(p, p->line, "SwitchName stands twice in the line");
        if (!name_valid(value))
                return bad(p, p->line, "'%.64s' is not a name for a switch: letters, digits, '.', '_' and '-'", value);
        if (first)
                return bad(p, p->line, "switch '%s' is already in line %zu", value, p->out.list[first->index].line);
        at->name = xstrdup(value);
        add(&p->switches, at->name, p->out.n - 1);
        return 0;
}

/* A few bytes can stand for many names: what all lines together name is limited. */
static int set_list(struct parser *p, struct hostlist *list, const char *key, const char *value, size_t *n_named, size_t max) {
        if (list->n_names > 0)
                return bad(p, p->line, "%s stands twice in the line", key);
        if (hostlist_expand(list, value, p->err) < 0)
                return error_prefix(p->err, "%s:%zu: %s", p->name, p->line, key);
        *n_named += list->n_names;
        if (*n_named > max)
                return bad(p, p->line, "%s: the file names more than %zu", key, max);
        return 0;
}

static int set_word(struct parser *p, char *word) {
        char *value = strchr(word, '=');

        if (!value)
                return bad(p, p->line, "expected SwitchName=NAME Nodes=LIST or Switches=LIST, found '%.64s'", word);
        *value++ = 0;
        if (strcasecmp(word, "SwitchName") == 0)
                return set_name(p, value);
        if (strcasecmp(word, "Nodes") == 0)
                return set_list(p, &p->out.list[p->out.n - 1].nodes, "Nodes", value, &p->n_nodes, HOSTLIST_MAX_NAMES);
        if (strcasecmp(word, "Switches") == 0)
                return set_list(p, &p->below[p->out.n - 1], "Switches", value, &p->n_below, SWITCHES_MAX);
        if (strcasecmp(word, "LinkSpeed") == 0)
                return 0;
        return bad(p, p->line, "there is no key '%.64s'; known are SwitchName, Nodes, Switches and LinkSpeed", word);
}

static void add_switch(struct parser *p) {
        size_t n = ++p->out.n;

        p->out.list = xrealloc(p->out.list, n * sizeof(*p->out.list));
        p->below = xrealloc(p->below, n * sizeof(*p->below));
        p->out.list[n - 1] = (struct config_switch) { .parent = SIZE_MAX, .line = p->line };
        p->below[n - 1] = (struct hostlist) { 0 };
}

static int read_line(struct parser *p, char *line) {
        char *next = NULL;
        char *word;
        int r = 0;

        line[strcspn(line, "#")] = 0;
        word = strtok_r(line, BLANKS, &next);
        if (!word)
                return 0;
        if (p->out.n == SWITCHES_MAX)
                return bad(p, p->line, "more than %u switches", SWITCHES_MAX);
        add_switch(p);
        for (; word && r == 0; word = strtok_r(NULL, BLANKS, &next))
                r = set_word(p, word);
        if (r == 0 && !p->out.list[p->out.n - 1].name)
                return bad(p, p->line, "the line has no SwitchName");
        if (r == 0 && p->out.list[p->out.n - 1].nodes.n_names == 0 && p->below[p->out.n - 1].n_names == 0)
                return bad(p, p->line, "switch '%s' has neither Nodes nor Switches", p->out.list[p->out.n - 1].name);
        return r;
}

/* Lines that go on are made one in place, with blanks for what was between them; the number is that
 * of the first. */
static int read_lines(struct parser *p, char *data) {
        size_t number = 0;

        while (*data) {
                char *end = data + strcspn(data, "\n");
                char *next = *end ? end + 1 : end;
                int r;

                p->line = ++number;
                while (*end && end > data && end[-1] == '\\') {
                        end[-1] = *end = ' ';
                        end = next + strcspn(next, "\n");
                        next = *end ? end + 1 : end;
                        number++;
                }
                *end = 0;
                r = read_line(p, data);
                if (r < 0)
                        return r;
                data = next;
        }
        return 0;
}

/* ---- all lines together ---- */

static int hang_nodes(struct parser *p, size_t index) {
        const struct config_switch *at = &p->out.list[index];

        for (size_t i = 0; i < at->nodes.n_names; i++) {
                const struct seen *other = find(p->nodes, at->nodes.names[i]);

                if (other)
                        return bad(p, at->line, "node '%s' is below switch '%s' (line %zu) already", at->nodes.names[i],
                                   p->out.list[other->index].name, p->out.list[other->index].line);
                add(&p->nodes, at->nodes.names[i], index);
        }
        return 0;
}

static int hang_switches(struct parser *p, size_t index) {
        const struct config_switch *at = &p->out.list[index];

        for (size_t i = 0; i < p->below[index].n_names; i++) {
                const char *name = p->below[index].names[i];
                const struct seen *found = find(p->switches, name);
                struct config_switch *child;

                if (!found)
                        return bad(p, at->line, "there is no switch '%s'; it needs a line of its own", name);
                child = &p->out.list[found->index];
                if (child->parent != SIZE_MAX)
                        return bad(p, at->line, "switch '%s' is below switch '%s' (line %zu) already", name,
                                   p->out.list[child->parent].name, p->out.list[child->parent].line);
                child->parent = index;
        }
        return 0;
}

static int check_way_up(struct parser *p, size_t index) {
        const struct config_switch *at = &p->out.list[index];
        size_t steps = 1;

        for (size_t up = at->parent; up != SIZE_MAX; up = p->out.list[up].parent, steps++) {
                if (up == index)
                        return bad(p, at->line, "switch '%s' is below itself", at->name);
                if (steps > p->out.n)
                        return 0; /* one above it is; that one's line is told */
        }
        if (steps > SWITCHES_DEPTH_MAX)
                return bad(p, at->line, "switch '%s' has more than %u others above it", at->name, SWITCHES_DEPTH_MAX - 1);
        return 0;
}

static int hang(struct parser *p) {
        int r = 0;

        for (size_t i = 0; i < p->out.n && r == 0; i++) {
                r = hang_nodes(p, i);
                if (r == 0)
                        r = hang_switches(p, i);
        }
        for (size_t i = 0; i < p->out.n && r == 0; i++)
                r = check_way_up(p, i);
        return r;
}

int switches_parse(const char *name, const char *data, size_t size_bytes, struct switches *ret_switches, struct rm_error *err) {
        struct parser p = { .name = name, .err = err };
        cleanup_free char *copy = NULL;
        int r;

        if (size_bytes > SWITCHES_MAX_BYTES)
                return error_set(err, -EINVAL, "%s: the file is larger than %u bytes", name, SWITCHES_MAX_BYTES);
        if (strlen(data) < size_bytes)
                return error_set(err, -EINVAL, "%s: not a text file", name);
        copy = xstrdup(data);
        r = read_lines(&p, copy);
        if (r == 0)
                r = hang(&p);
        for (size_t i = 0; i < p.out.n; i++)
                hostlist_finish(&p.below[i]);
        free(p.below);
        forget(&p.switches);
        forget(&p.nodes);
        if (r < 0)
                switches_finish(&p.out);
        else
                *ret_switches = p.out;
        return r;
}

int switches_load(const char *path, struct switches *ret_switches, struct rm_error *err) {
        cleanup_free char *data = NULL;
        size_t size_bytes = 0;
        int r = read_file(path, SWITCHES_MAX_BYTES, &data, &size_bytes);

        if (r < 0)
                return error_sys(err, r, "cannot read %s", path);
        return switches_parse(path, data, size_bytes, ret_switches, err);
}

void switches_finish(struct switches *switches) {
        for (size_t i = 0; i < switches->n; i++) {
                free(switches->list[i].name);
                hostlist_finish(&switches->list[i].nodes);
        }
        free(switches->list);
        *switches = (struct switches) { 0 };
}
