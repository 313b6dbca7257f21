#include "daemon/web/page.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "common/util.h"

/* Over 100 kbit/s that takes 8 s. */
#define PAGE_MAX_BYTES ((size_t) 100 * 1024)
#define DIGEST_TEXT_BYTES 45 /* in base64, with the NUL */

/* Returns the digest of the text between <name> and </name>. */
static void digest_of(const char *text, const char *name, char ret[static DIGEST_TEXT_BYTES]) {
        cleanup_free char *opening = xasprintf("<%s>", name);
        cleanup_free char *closing = xasprintf("</%s>", name);
        const char *begin = strstr(text, opening);
        const char *end = begin ? strstr(begin, closing) : NULL;
        unsigned char digest[SHA256_DIGEST_LENGTH];

        begin = end ? begin + strlen(opening) : "";
        (void) SHA256((const unsigned char *) begin, end ? (size_t) (end - begin) : 0, digest);
        (void) EVP_EncodeBlock((unsigned char *) ret, digest, sizeof(digest));
}

char *page_policy(const char *text) {
        char script[DIGEST_TEXT_BYTES], style[DIGEST_TEXT_BYTES];

        digest_of(text, "script", script);
        digest_of(text, "style", style);
        return xasprintf("default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src 'self'; img-src data:; "
                         "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                         script, style);
}

int page_load(const char *path, struct page *ret, struct rm_error *err) {
        char *text = NULL;
        int r = read_file(path, PAGE_MAX_BYTES, &text, NULL);

        if (r < 0)
                return error_sys(err, r, "reading %s", path);
        ret->text = text;
        ret->policy = page_policy(text);
        return 0;
}

void page_finish(struct page *page) {
        free(page->text);
        free(page->policy);
}
