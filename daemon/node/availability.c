#include "daemon/node/availability.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define HOST_MAX_BYTES 253U
#define EXCERPT_BYTES 41

/* A part of the text; not terminated. */
struct span {
        const char *at;
        size_t bytes;
};

struct parser {
        const char *name;
        availability_find_fn find;
        void *userdata;
        struct rm_error *err;
        struct availability out;
        size_t *lines; /* of out.entries */
        size_t space;
        size_t line;
        bool comment_seen;
};

/* The part of the text, which can be anything, that a message may show. */
static const char *excerpt(struct span span, char buf[static EXCERPT_BYTES]) {
        size_t n = span.bytes < EXCERPT_BYTES - 1 ? span.bytes : EXCERPT_BYTES - 1;

        for (size_t i = 0; i < n; i++)
                buf[i] = (char) (isprint((unsigned char) span.at[i]) ? span.at[i] : '?');
        buf[n] = 0;
        return buf;
}

static struct span trim(struct span span) {
        while (span.bytes > 0 && (*span.at == ' ' || *span.at == '\t')) {
                span.at++;
                span.bytes--;
        }
        while (span.bytes > 0 && (span.at[span.bytes - 1] == ' ' || span.at[span.bytes - 1] == '\t'))
                span.bytes--;
        return span;
}

static bool host_valid(struct span host) {
        if (host.bytes == 0 || host.bytes > HOST_MAX_BYTES || !isalnum((unsigned char) host.at[0]))
                return false;
        for (size_t i = 0; i < host.bytes; i++)
                if (!isalnum((unsigned char) host.at[i]) && !memchr("._-", host.at[i], 3))
                        return false;
        return true;
}

static int read_cores(struct span text, uint32_t *ret_cores) {
        uint32_t v = 0;

        if (text.bytes == 0)
                return -EINVAL;
        for (size_t i = 0; i < text.bytes; i++) {
                if (text.at[i] < '0' || text.at[i] > '9')
                        return -EINVAL;
                v = v * 10 + (uint32_t) (text.at[i] - '0');
                if (v > AVAILABILITY_CORES_MAX)
                        return -ERANGE;
        }
        *ret_cores = v;
        return 0;
}

static int check_bytes(struct parser *p, struct span line) {
        for (size_t i = 0; i < line.bytes; i++) {
                unsigned char c = (unsigned char) line.at[i];

                if ((c < ' ' && c != '\t') || c == 0x7f)
                        return error_set(p->err, -EINVAL, "%s:%zu: byte 0x%02x is not allowed in a text file", p->name, p->line, c);
        }
        return 0;
}

static void add_entry(struct parser *p, const char *host, uint32_t cores) {
        if (p->out.n_entries == p->space) {
                p->space = p->space ? p->space * 2 : 16;
                p->out.entries = xrealloc(p->out.entries, p->space * sizeof(p->out.entries[0]));
                p->lines = xrealloc(p->lines, p->space * sizeof(p->lines[0]));
        }
        p->lines[p->out.n_entries] = p->line;
        p->out.entries[p->out.n_entries++] = (struct availability_entry) { xstrdup(host), cores };
}

static int parse_entry(struct parser *p, struct span text) {
        const char *colon = memchr(text.at, ':', text.bytes);
        char buf[EXCERPT_BYTES];
        char host[HOST_MAX_BYTES + 1];
        struct span left, right;
        const char *node;
        uint32_t cores;

        if (!colon)
                return error_set(p->err, -EINVAL, "%s:%zu: expected hostname:numCores, found '%s'", p->name, p->line,
                                 excerpt(text, buf));
        left = trim((struct span) { text.at, (size_t) (colon - text.at) });
        right = trim((struct span) { colon + 1, (size_t) (text.at + text.bytes - colon - 1) });
        if (!host_valid(left))
                return error_set(p->err, -EINVAL, "%s:%zu: '%s' is not a host name", p->name, p->line, excerpt(left, buf));
        memcpy(host, left.at, left.bytes);
        host[left.bytes] = 0;
        if (read_cores(right, &cores) < 0)
                return error_set(p->err, -EINVAL, "%s:%zu: cores of '%.63s' are '%s': expected a number from 0 to %u", p->name,
                                 p->line, host, excerpt(right, buf), AVAILABILITY_CORES_MAX);
        node = p->find ? p->find(p->userdata, host) : host;
        if (!node)
                return error_set(p->err, -EINVAL, "%s:%zu: no node '%s' in this cluster", p->name, p->line, host);
        add_entry(p, node, cores);
        return 0;
}

static int parse_line(struct parser *p, struct span line) {
        const char *hash;
        int r;

        if (line.bytes > AVAILABILITY_LINE_MAX_BYTES)
                return error_set(p->err, -EINVAL, "%s:%zu: the line is longer than %u bytes", p->name, p->line,
                                 AVAILABILITY_LINE_MAX_BYTES);
        if (line.bytes > 0 && line.at[line.bytes - 1] == '\r')
                line.bytes--;
        r = check_bytes(p, line);
        if (r < 0)
                return r;
        hash = memchr(line.at, '#', line.bytes);
        if (hash) {
                p->comment_seen = true;
                line.bytes = (size_t) (hash - line.at);
        }
        line = trim(line);
        return line.bytes > 0 ? parse_entry(p, line) : 0;
}

static int parse_lines(struct parser *p, const char *data, size_t size_bytes) {
        const char *end;

        if (size_bytes == 0)
                return 0;
        end = data + size_bytes;
        while (data < end) {
                const char *newline = memchr(data, '\n', (size_t) (end - data));
                int r;

                p->line++;
                r = parse_line(p, (struct span) { data, (size_t) ((newline ? newline : end) - data) });
                if (r < 0)
                        return r;
                p->out.open_end = !newline;
                data = newline ? newline + 1 : end;
        }
        return 0;
}

static int compare_hosts(const void *x, const void *y, void *userdata) {
        const struct availability_entry *entries = userdata;
        size_t i = *(const size_t *) x;
        size_t k = *(const size_t *) y;
        int c = strcmp(entries[i].host, entries[k].host);

        return c ? c : (i > k) - (i < k);
}

/* The first line that names a host again. By sorting: a file may name a hundred thousand. */
static int check_twice(struct parser *p) {
        size_t n = p->out.n_entries;
        cleanup_free size_t *order = xcalloc(n, sizeof(*order));
        size_t first = 0;
        size_t again = SIZE_MAX;

        for (size_t i = 0; i < n; i++)
                order[i] = i;
        qsort_r(order, n, sizeof(*order), compare_hosts, p->out.entries);
        for (size_t i = 1; i < n; i++)
                if (order[i] < again && strcmp(p->out.entries[order[i]].host, p->out.entries[order[i - 1]].host) == 0) {
                        first = order[i - 1];
                        again = order[i];
                }
        if (again == SIZE_MAX)
                return 0;
        return error_set(p->err, -EINVAL, "%s:%zu: node '%s' is already in line %zu", p->name, p->lines[again],
                         p->out.entries[again].host, p->lines[first]);
}

int availability_parse(const char *name, const char *data, size_t size_bytes, availability_find_fn find, void *userdata,
                       struct availability *ret_availability, struct rm_error *err) {
        struct parser p = { .name = name, .find = find, .userdata = userdata, .err = err };
        int r;
        int twice;

        if (size_bytes > AVAILABILITY_MAX_BYTES)
                return error_set(err, -EINVAL, "%s: the file is larger than %u bytes", name, AVAILABILITY_MAX_BYTES);
        r = parse_lines(&p, data, size_bytes);
        /* Lines before a bad one count, so that the message is always for the first. */
        twice = check_twice(&p);
        if (r == 0)
                r = twice;
        free(p.lines);
        if (r < 0) {
                availability_finish(&p.out);
                return r;
        }
        p.out.blank = p.out.n_entries == 0 && !p.comment_seen;
        *ret_availability = p.out;
        return 0;
}

void availability_finish(struct availability *availability) {
        for (size_t i = 0; i < availability->n_entries; i++)
                free(availability->entries[i].host);
        free(availability->entries);
        *availability = (struct availability) { 0 };
}

bool availability_equal(const struct availability *a, const struct availability *b) {
        if (a->n_entries != b->n_entries)
                return false;
        for (size_t i = 0; i < a->n_entries; i++)
                if (a->entries[i].cores != b->entries[i].cores || strcmp(a->entries[i].host, b->entries[i].host) != 0)
                        return false;
        return true;
}

struct names {
        const char *(*at)(const void *names, size_t i);
        const void *names;
        size_t n;
};

/* The first name that is not below the `bytes` of `text`. */
static size_t lower_bound(const struct names *names, const char *text, size_t bytes) {
        size_t low = 0;
        size_t high = names->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strncmp(names->at(names->names, middle), text, bytes) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool is_at(const struct names *names, size_t i, const char *text, size_t bytes, bool whole) {
        const char *name = i < names->n ? names->at(names->names, i) : NULL;

        return name && strncmp(name, text, bytes) == 0 && (!whole || name[bytes] == 0);
}

int64_t availability_match(const char *host, const char *(*name_at)(const void *names, size_t i), const void *names, size_t n) {
        struct names all = { name_at, names, n };
        size_t short_bytes = strcspn(host, ".");
        size_t i = lower_bound(&all, host, strlen(host));
        char with_dot[HOST_MAX_BYTES + 2];
        int length;

        if (is_at(&all, i, host, strlen(host), true))
                return (int64_t) i;
        if (host[short_bytes]) {
                i = lower_bound(&all, host, short_bytes);
                return is_at(&all, i, host, short_bytes, true) ? (int64_t) i : -ENOENT;
        }
        length = snprintf(with_dot, sizeof(with_dot), "%s.", host);
        if ((size_t) length >= sizeof(with_dot))
                return -ENOENT;
        i = lower_bound(&all, with_dot, (size_t) length);
        if (!is_at(&all, i, with_dot, (size_t) length, false) || is_at(&all, i + 1, with_dot, (size_t) length, false))
                return -ENOENT;
        return (int64_t) i;
}
