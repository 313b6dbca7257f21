#include "daemon/job/body.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "common/unknown.h"
#include "common/util.h"

void body_digest(const uint8_t *data, size_t size_bytes, uint8_t ret[static STATE_DIGEST_BYTES]) {
        unsigned n = 0;

        if (EVP_Digest(data, size_bytes, ret, &n, EVP_sha256(), NULL) != 1 || n != STATE_DIGEST_BYTES)
                abort();
}

/* The first `shown_bytes` of a text at most, no character cut in two, and the mark that more was
 * there; malloc'ed. */
static char *shorten(const char *text, size_t shown_bytes) {
        size_t n = strnlen(text, shown_bytes);

        while (n > 0 && ((unsigned char) text[n] & 0xc0) == 0x80)
                n--;
        return xasprintf("%.*s...", (int) n, text);
}

static size_t words_bytes(char *const *words, size_t n) {
        size_t bytes = 0;

        for (size_t i = 0; i < n; i++)
                bytes += strlen(words[i]) + 1;
        return bytes;
}

static void take_argv(Rm__JobSpec *spec, Rm__LaunchBody *body) {
        char **shown;
        size_t bytes = 0, n = 0;
        bool marked = false;

        if (words_bytes(spec->argv, spec->n_argv) <= BODY_ARGV_SHOWN_BYTES)
                return;
        body->argv = take_ptr(spec->argv);
        body->n_argv = spec->n_argv;
        shown = xcalloc(body->n_argv, sizeof(*shown));
        while (n < body->n_argv && bytes < BODY_ARGV_SHOWN_BYTES) {
                size_t length = strlen(body->argv[n]);

                marked = bytes + length >= BODY_ARGV_SHOWN_BYTES;
                shown[n] = marked ? shorten(body->argv[n], BODY_ARGV_SHOWN_BYTES - bytes - 1) : xstrdup(body->argv[n]);
                bytes += length + 1;
                n++;
        }
        if (!marked)
                shown[n++] = xstrdup("..."); /* it is too long, so there are more words */
        spec->argv = shown;
        spec->n_argv = n;
        spec->argv_cut = true;
}

static void take_cwd(Rm__JobSpec *spec, Rm__LaunchBody *body) {
        if (strlen(spec->cwd) <= BODY_CWD_SHOWN_BYTES)
                return;
        body->cwd = spec->cwd;
        spec->cwd = shorten(body->cwd, BODY_CWD_SHOWN_BYTES);
        spec->cwd_cut = true;
}

static void set_digest(Rm__JobSpec *spec, const uint8_t *data, size_t size_bytes) {
        free(spec->body_digest.data);
        spec->body_digest.data = xcalloc(1, STATE_DIGEST_BYTES);
        spec->body_digest.len = STATE_DIGEST_BYTES;
        spec->body_bytes = (uint32_t) size_bytes;
        body_digest(data, size_bytes, spec->body_digest.data);
}

static void drop_digest(Rm__JobSpec *spec) {
        free(spec->body_digest.data);
        spec->body_digest = (ProtobufCBinaryData) { 0 };
        spec->body_bytes = 0;
        spec->argv_cut = spec->cwd_cut = false;
}

uint8_t *body_split(Rm__JobSpec *spec, size_t *ret_size_bytes) {
        Rm__LaunchBody *body = xcalloc(1, sizeof(*body));
        uint8_t *data = NULL;

        rm__launch_body__init(body);
        drop_digest(spec); /* whatever a client has put there */
        body->env = take_ptr(spec->env);
        body->n_env = spec->n_env;
        spec->n_env = 0;
        take_argv(spec, body);
        take_cwd(spec, body);
        *ret_size_bytes = rm__launch_body__get_packed_size(body);
        if (*ret_size_bytes > 0) {
                data = xcalloc(1, *ret_size_bytes);
                (void) rm__launch_body__pack(body, data);
                set_digest(spec, data, *ret_size_bytes);
        }
        rm__launch_body__free_unpacked(body, NULL);
        return data;
}

static void free_words(char **words, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(words[i]);
        free(words);
}

Rm__JobSpec *body_join(const Rm__JobSpec *spec, const uint8_t *data, size_t size_bytes) {
        Rm__LaunchBody *body = rm__launch_body__unpack(NULL, size_bytes, data);
        Rm__JobSpec *whole;

        if (!body)
                return NULL;
        unknown_drop(&body->base);
        whole = (Rm__JobSpec *) message_copy(&spec->base);
        free_words(whole->env, whole->n_env);
        whole->env = take_ptr(body->env);
        whole->n_env = body->n_env;
        body->n_env = 0;
        if (spec->argv_cut) {
                free_words(whole->argv, whole->n_argv);
                whole->argv = take_ptr(body->argv);
                whole->n_argv = body->n_argv;
                body->n_argv = 0;
        }
        if (spec->cwd_cut)
                message_set_string(&whole->cwd, body->cwd);
        rm__launch_body__free_unpacked(body, NULL);
        drop_digest(whole);
        return whole;
}
