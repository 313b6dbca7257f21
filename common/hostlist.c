#include "common/hostlist.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"

#define MAX_DIGITS 9
#define QUOTED_BYTES 100 /* of a text, in an error */

struct hostlist_name {
        const char *name;
        UT_hash_handle hh;
};

void hostlist_finish(struct hostlist *list) {
        struct hostlist_name *entry, *next;

        HASH_ITER (hh, list->index, entry, next) {
                HASH_DEL(list->index, entry);
                free(entry);
        }
        for (size_t i = 0; i < list->n_names; i++)
                free(list->names[i]);
        free(list->names);
        *list = (struct hostlist) { 0 };
}

void hostlist_add(struct hostlist *list, const char *name) {
        struct hostlist_name *entry;

        HASH_FIND_STR(list->index, name, entry);
        if (entry)
                return;
        if ((list->n_names & (list->n_names - 1)) == 0) /* none, or a power of two: it is full */
                list->names = xrealloc(list->names, (list->n_names ? list->n_names * 2 : 1) * sizeof(char *));
        list->names[list->n_names] = xstrdup(name);
        entry = xcalloc(1, sizeof(*entry));
        entry->name = list->names[list->n_names++];
        HASH_ADD_KEYPTR(hh, list->index, entry->name, strlen(entry->name), entry);
}

/* ---- expanding ---- */

static int bad(const char *text, const char *what, struct rm_error *err) {
        const char *more = strlen(text) > QUOTED_BYTES ? "..." : "";

        return error_set(err, -EINVAL, "'%.*s%s' is not a host list: %s (as n1,n[3-5,8])", QUOTED_BYTES, text, more, what);
}

/* A number of 1 to MAX_DIGITS digits at *at, and how many digits it has. */
static bool read_number(const char **at, uint32_t *ret_number, int *ret_digits) {
        uint32_t number = 0;
        int digits = 0;

        for (; isdigit((unsigned char) **at); (*at)++, digits++) {
                if (digits == MAX_DIGITS)
                        return false;
                number = number * 10 + (uint32_t) (**at - '0');
        }
        *ret_number = number;
        *ret_digits = digits;
        return digits > 0;
}

/* The set of names that a text stands for, while it is read. A name that occurs again is counted
 * too: it takes time, but no memory. */
struct expansion {
        struct hostlist list;
        size_t n_named;
        const char *text;
        struct rm_error *err;
};

static int add_name(struct expansion *out, const char *name) {
        if (!name_valid(name))
                return error_set(out->err, -EINVAL, "'%.*s' is not a host name", QUOTED_BYTES, *name ? name : out->text);
        if (out->n_named == HOSTLIST_MAX_NAMES)
                return bad(out->text, "it has too many names", out->err);
        out->n_named++;
        hostlist_add(&out->list, name);
        return 0;
}

/* "3" or "3-5" of a bracket, put between prefix and suffix. */
static int add_range(struct expansion *out, const char **at, const char *prefix, const char *suffix) {
        uint32_t first = 0;
        uint32_t last;
        int digits = 0;
        int ignored = 0;

        if (!read_number(at, &first, &digits))
                return bad(out->text, "a number is missing in the brackets", out->err);
        last = first;
        if (**at == '-') {
                (*at)++;
                if (!read_number(at, &last, &ignored))
                        return bad(out->text, "a number is missing in the brackets", out->err);
        }
        if (last < first)
                return bad(out->text, "a range runs backwards", out->err);
        if (last - first >= HOSTLIST_MAX_NAMES)
                return bad(out->text, "it has too many names", out->err);
        for (uint32_t i = first; i <= last; i++) {
                cleanup_free char *name = xasprintf("%s%0*u%s", prefix, digits, i, suffix);
                int r = add_name(out, name);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Adds the hosts of an element, "name" or "prefix[ranges]suffix". */
static int add_element(struct expansion *out, const char *element) {
        const char *open = strchr(element, '[');
        const char *close = strchr(element, ']');
        cleanup_free char *prefix = NULL;
        const char *at;
        int r;

        if (!open && !close)
                return add_name(out, element);
        if (!open || !close || close < open)
                return bad(out->text, "brackets do not match", out->err);
        if (strpbrk(close + 1, "[]"))
                return bad(out->text, "one pair of brackets a name is all that is understood", out->err);
        prefix = strndup(element, (size_t) (open - element));
        at = open + 1;
        for (;;) {
                r = add_range(out, &at, prefix, close + 1);
                if (r < 0)
                        return r;
                if (at == close)
                        return 0;
                if (*at != ',')
                        return bad(out->text, "only numbers, ranges and ',' stand in brackets", out->err);
                at++;
        }
}

/* Length of the first element: up to a ',' outside brackets. */
static size_t element_size(const char *text) {
        int depth = 0;
        size_t n = 0;

        for (; text[n]; n++) {
                if (text[n] == '[')
                        depth++;
                else if (text[n] == ']')
                        depth--;
                else if (text[n] == ',' && depth <= 0)
                        break;
        }
        return n;
}

int hostlist_expand(struct hostlist *list, const char *text, struct rm_error *err) {
        struct expansion more = { .text = text, .err = err };
        const char *at = text;
        int r = 0;

        for (;;) {
                size_t n = element_size(at);
                cleanup_free char *element = strndup(at, n);

                r = add_element(&more, element);
                if (r < 0 || !at[n])
                        break;
                at += n + 1;
        }
        for (size_t i = 0; r == 0 && i < more.list.n_names; i++)
                hostlist_add(list, more.list.names[i]);
        hostlist_finish(&more.list);
        return r;
}

/* ---- compressing ---- */

/* A name as prefix and last number; digits 0: it has none. What follows the number is part of the
 * key too. */
struct piece {
        const char *name;
        size_t prefix;
        uint32_t number;
        int digits;
        const char *suffix;
};

static struct piece take_apart(const char *name) {
        struct piece p = { .name = name, .prefix = strlen(name), .suffix = "" };
        size_t end = p.prefix;
        size_t start;
        const char *at;

        while (end > 0 && !isdigit((unsigned char) name[end - 1]))
                end--;
        start = end;
        while (start > 0 && isdigit((unsigned char) name[start - 1]) && end - start < MAX_DIGITS)
                start--;
        if (start == end)
                return p;
        at = name + start;
        p.prefix = start;
        (void) read_number(&at, &p.number, &p.digits);
        p.suffix = name + end;
        return p;
}

static bool has_zeros(const struct piece *p) {
        return p->digits > 1 && p->name[p->prefix] == '0';
}

/* May stand in the same brackets: n9 and n10 may, n09 and n9 may not. */
static bool same_family(const struct piece *a, const struct piece *b) {
        if (a->digits == 0 || b->digits == 0 || a->prefix != b->prefix || strncmp(a->name, b->name, a->prefix) != 0 ||
            strcmp(a->suffix, b->suffix) != 0)
                return false;
        return a->digits == b->digits || (!has_zeros(a) && !has_zeros(b));
}

static int compare_pieces(const void *va, const void *vb) {
        const struct piece *a = va;
        const struct piece *b = vb;
        size_t shorter = a->prefix < b->prefix ? a->prefix : b->prefix;
        int r = strncmp(a->name, b->name, shorter);

        if (r == 0 && a->prefix != b->prefix)
                r = a->prefix < b->prefix ? -1 : 1;
        if (r == 0)
                r = strcmp(a->suffix, b->suffix);
        /* n09 n10 are a family, n9 n10 are another: leading zeros keep to themselves. */
        if (r == 0 && (has_zeros(a) || has_zeros(b)) && a->digits != b->digits)
                r = a->digits < b->digits ? -1 : 1;
        if (r == 0 && a->number != b->number)
                r = a->number < b->number ? -1 : 1;
        return r;
}

/* The family that begins at pieces[0]: "n[1-4,7]". Returns how many it took. */
static size_t put_family(FILE *out, const struct piece *pieces, size_t n) {
        const struct piece *first = &pieces[0];
        size_t size = 1;

        while (size < n && same_family(first, &pieces[size]))
                size++;
        if (size == 1) {
                (void) fprintf(out, "%s", first->name);
                return 1;
        }
        (void) fprintf(out, "%.*s[", (int) first->prefix, first->name);
        for (size_t i = 0; i < size;) {
                size_t j = i;

                while (j + 1 < size && pieces[j + 1].number == pieces[j].number + 1)
                        j++;
                (void) fprintf(out, "%s%0*u", i ? "," : "", has_zeros(first) ? first->digits : 0, pieces[i].number);
                if (j > i)
                        (void) fprintf(out, "-%0*u", has_zeros(first) ? first->digits : 0, pieces[j].number);
                i = j + 1;
        }
        (void) fprintf(out, "]%s", first->suffix);
        return size;
}

char *hostlist_compress(char *const *names, size_t n_names) {
        cleanup_free struct piece *pieces = xcalloc(n_names, sizeof(*pieces));
        char *text = NULL;
        size_t size_bytes;
        FILE *out = open_memstream(&text, &size_bytes);

        if (!out)
                abort(); /* out of memory, as xcalloc() does */
        for (size_t i = 0; i < n_names; i++)
                pieces[i] = take_apart(names[i]);
        qsort(pieces, n_names, sizeof(*pieces), compare_pieces);
        for (size_t i = 0; i < n_names;) {
                if (i > 0)
                        (void) fputc(',', out);
                i += put_family(out, pieces + i, n_names - i);
        }
        if (fclose(out) != 0)
                abort();
        return text;
}
