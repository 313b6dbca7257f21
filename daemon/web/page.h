/* The file of the page, and the policy that lets a browser run the script and use the style in it,
 * and nothing else. */
#ifndef RM_WEB_PAGE_H
#define RM_WEB_PAGE_H

#include "common/error.h"

struct page {
        char *text; /* NULL: there is none */
        char *policy;
};

/* Negative errno: it cannot be read, or is larger than a page is. Free with page_finish(). */
int page_load(const char *path, struct page *ret, struct rm_error *err);
void page_finish(struct page *page);

/* Pure. The Content-Security-Policy of a page with one style and one script: both may be used, as
 * they are in the text, and the page may ask where it came from. Caller frees. */
char *page_policy(const char *text);

#endif
