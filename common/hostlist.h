/* Host lists: "n[1-4,7],login" is n1 n2 n3 n4 n7 login. */
#ifndef RM_COMMON_HOSTLIST_H
#define RM_COMMON_HOSTLIST_H

#include <stddef.h>

#include "common/error.h"

#define HOSTLIST_MAX_NAMES 65536 /* in one text, those that stand there again counted again */

/* A list of names. Initialise with `= {0}`; owns its strings. */
struct hostlist {
        char **names;
        size_t n_names;
        struct hostlist_name *index; /* the same names, to be found by */
};

/* Add what `text` stands for, in its order, each name once. Numbers keep their leading zeros:
 * n[08-10] is n08 n09 n10. -EINVAL with a text for people; the list is then as before. */
int hostlist_expand(struct hostlist *list, const char *text, struct rm_error *err);
/* The short form, sorted, of any names; malloc'ed. */
char *hostlist_compress(char *const *names, size_t n_names);
void hostlist_add(struct hostlist *list, const char *name);
void hostlist_finish(struct hostlist *list);

#endif
