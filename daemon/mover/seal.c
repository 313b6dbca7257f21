#include "daemon/mover/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"

#define MAGIC "rmd-checkpoint "
#define SALT_BYTES 32U
#define HEX_BYTES(bytes) (2 * (bytes) + 1)
#define NONCE_BYTES 12U

/* The fields of the line, as text. */
struct line {
        uint32_t format;
        char cluster[64];
        char fingerprint[TLS_FINGERPRINT_BYTES];
        char salt[HEX_BYTES(SALT_BYTES)];
        char check[HEX_BYTES(TLS_KEY_BYTES)];
};

struct seal {
        struct seal_io io;
        EVP_CIPHER_CTX *cipher;
        uint64_t number; /* of the next chunk */
        bool ended; /* the last one was read */
        bool failed; /* a chunk was not authentic: nothing is read any more */
        size_t used_bytes; /* of `chunk`: contents */
        size_t read_bytes; /* of these */
        uint8_t chunk[SEAL_CHUNK_BYTES + SEAL_TAG_BYTES];
};

static int damaged(struct rm_error *err) {
        return error_set(err, -EBADMSG, "the file is damaged, or cut off");
}

static int crypto_failed(struct rm_error *err) {
        return error_set(err, -ENOTSUP, "OpenSSL has no AES-256-GCM, no HKDF or no random numbers");
}

/* ---- the line ---- */

static void hex_write(const uint8_t *data, size_t size_bytes, char *ret) {
        for (size_t i = 0; i < size_bytes; i++)
                (void) snprintf(ret + 2 * i, 3, "%02x", data[i]);
}

/* The text that the keys of a file are derived from, malloc'ed. */
static char *line_head(const struct line *line) {
        return xasprintf(MAGIC "%u %s %s %s", line->format, line->cluster, line->fingerprint, line->salt);
}

/* The line as it stands in the file. */
static void line_text(const struct line *line, char ret[static SEAL_LINE_BYTES]) {
        cleanup_free char *head = line_head(line);
        cleanup_free char *text = xasprintf("%s %s", head, line->check);
        size_t n = strlen(text);

        memset(ret, ' ', SEAL_LINE_BYTES);
        memcpy(ret, text, n);
        ret[SEAL_LINE_BYTES - 1] = '\n';
}

_Static_assert(sizeof(MAGIC) + 11 + sizeof(struct line) < SEAL_LINE_BYTES, "a line has room for all of it");

/* Parses the line, which must be of this format, and exactly as it would be written. */
static bool line_parse(const char data[static SEAL_LINE_BYTES], struct line *ret) {
        char text[SEAL_LINE_BYTES + 1], again[SEAL_LINE_BYTES];

        memcpy(text, data, SEAL_LINE_BYTES);
        text[SEAL_LINE_BYTES] = 0;
        if (sscanf(text, MAGIC "%10u %63[A-Za-z0-9._-] %16[0-9a-f] %64[0-9a-f] %64[0-9a-f]", &ret->format, ret->cluster,
                   ret->fingerprint, ret->salt, ret->check) != 5)
                return false;
        line_text(ret, again);
        return memcmp(data, again, sizeof(again)) == 0;
}

/* The key of the file, and what shows that `key` is the right one. */
static bool keys_derive(const struct line *line, const uint8_t *key, uint8_t *ret_key,
                        char ret_check[static HEX_BYTES(TLS_KEY_BYTES)]) {
        cleanup_free char *head = line_head(line);
        cleanup_free char *key_info = xasprintf("rmd sealed %s", head);
        cleanup_free char *check_info = xasprintf("rmd sealed-check %s", head);
        uint8_t check[TLS_KEY_BYTES];

        if (!tls_derive(key, key_info, ret_key) || !tls_derive(key, check_info, check))
                return false;
        hex_write(check, sizeof(check), ret_check);
        return true;
}

/* ---- create and destroy ---- */

static struct seal *make(const struct seal_io *io, const uint8_t *key, bool encrypt) {
        struct seal *s = xcalloc(1, sizeof(*s));

        s->io = *io;
        s->cipher = EVP_CIPHER_CTX_new();
        if (s->cipher && EVP_CipherInit_ex(s->cipher, EVP_aes_256_gcm(), NULL, key, NULL, encrypt) == 1)
                return s;
        seal_destroy(s);
        return NULL;
}

void seal_destroy(struct seal *s) {
        if (!s)
                return;
        EVP_CIPHER_CTX_free(s->cipher);
        explicit_bzero(s->chunk, sizeof(s->chunk));
        free(s);
}

/* ---- chunks ---- */

static void nonce_make(uint64_t number, uint8_t ret[static NONCE_BYTES]) {
        memset(ret, 0, NONCE_BYTES);
        for (size_t i = 0; i < sizeof(number); i++)
                ret[NONCE_BYTES - 1 - i] = (uint8_t) (number >> 8 * i);
}

/* Encrypts or decrypts `used_bytes` in place; their tag is behind them. */
static bool chunk_cipher(struct seal *s, bool encrypt) {
        uint8_t nonce[NONCE_BYTES], *tag = s->chunk + s->used_bytes;
        int n = 0;

        nonce_make(s->number++, nonce);
        if (EVP_CipherInit_ex(s->cipher, NULL, NULL, NULL, nonce, encrypt) != 1 ||
            (!encrypt && EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_AEAD_SET_TAG, (int) SEAL_TAG_BYTES, tag) != 1) ||
            (s->used_bytes > 0 && EVP_CipherUpdate(s->cipher, s->chunk, &n, s->chunk, (int) s->used_bytes) != 1))
                return false;
        return EVP_CipherFinal_ex(s->cipher, s->chunk + n, &n) == 1 &&
               (!encrypt || EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_AEAD_GET_TAG, (int) SEAL_TAG_BYTES, tag) == 1);
}

static int chunk_write(struct seal *s, struct rm_error *err) {
        size_t n = s->used_bytes + SEAL_TAG_BYTES;

        if (!chunk_cipher(s, true))
                return crypto_failed(err);
        s->used_bytes = 0;
        return s->io.write(s->io.ctx, s->chunk, n, err);
}

static int chunk_read(struct seal *s, struct rm_error *err) {
        size_t n = 0;
        int r = s->io.read(s->io.ctx, s->chunk, sizeof(s->chunk), &n, err);

        if (r < 0)
                return r;
        s->ended = n < sizeof(s->chunk);
        s->read_bytes = 0;
        s->used_bytes = n < SEAL_TAG_BYTES ? 0 : n - SEAL_TAG_BYTES;
        s->failed = n < SEAL_TAG_BYTES || !chunk_cipher(s, false);
        return s->failed ? damaged(err) : 0;
}

/* ---- writing ---- */

int seal_create(const struct seal_keys *keys, const struct seal_io *io, struct seal **ret, struct rm_error *err) {
        struct line line = { .format = SEAL_FORMAT };
        uint8_t salt[SALT_BYTES], key[TLS_KEY_BYTES];
        char text[SEAL_LINE_BYTES];
        struct seal *s;
        int r;

        if (!name_valid(keys->cluster))
                return error_set(err, -EINVAL, "'%s' is no name of a cluster", keys->cluster);
        (void) snprintf(line.cluster, sizeof(line.cluster), "%s", keys->cluster);
        if (RAND_bytes(salt, (int) sizeof(salt)) != 1 || !tls_key_fingerprint(line.cluster, keys->keys[0], line.fingerprint))
                return crypto_failed(err);
        hex_write(salt, sizeof(salt), line.salt);
        s = keys_derive(&line, keys->keys[0], key, line.check) ? make(io, key, true) : NULL;
        OPENSSL_cleanse(key, sizeof(key));
        if (!s)
                return crypto_failed(err);
        line_text(&line, text);
        r = io->write(io->ctx, text, sizeof(text), err);
        if (r < 0)
                seal_destroy(s);
        else
                *ret = s;
        return r;
}

int seal_write(struct seal *s, const void *data, size_t size_bytes, struct rm_error *err) {
        const uint8_t *at = data;
        int r = 0;

        while (size_bytes > 0 && r == 0) {
                size_t n = SEAL_CHUNK_BYTES - s->used_bytes;

                n = n < size_bytes ? n : size_bytes;
                memcpy(s->chunk + s->used_bytes, at, n);
                s->used_bytes += n;
                at += n;
                size_bytes -= n;
                if (s->used_bytes == SEAL_CHUNK_BYTES)
                        r = chunk_write(s, err);
        }
        return r;
}

int seal_write_end(struct seal *s, struct rm_error *err) {
        return chunk_write(s, err);
}

/* ---- reading ---- */

/* The file is not of this format. */
static int explain_format(const char *text, struct rm_error *err) {
        unsigned format = 0;

        if (sscanf(text, MAGIC "%10u ", &format) == 1 && format != SEAL_FORMAT)
                return error_set(err, -ENOTSUP, "it is of format %u, and this rmd knows %u", format, SEAL_FORMAT);
        return error_set(err, -EBADMSG, "this is no exported checkpoint, or it is damaged");
}

static int line_read(const struct seal_io *io, struct line *ret, struct rm_error *err) {
        char text[SEAL_LINE_BYTES + 1] = { 0 };
        size_t n = 0;
        int r = io->read(io->ctx, text, SEAL_LINE_BYTES, &n, err);

        if (r < 0)
                return r;
        return n == SEAL_LINE_BYTES && line_parse(text, ret) && ret->format == SEAL_FORMAT ? 0 : explain_format(text, err);
}

/* None of the keys was right. */
static int explain_key(const struct line *line, const struct seal_keys *keys, struct rm_error *err) {
        char fingerprint[TLS_FINGERPRINT_BYTES];

        for (size_t i = 0; i < keys->n; i++)
                if (tls_key_fingerprint(line->cluster, keys->keys[i], fingerprint) && strcmp(fingerprint, line->fingerprint) == 0)
                        return damaged(err);
        return error_set(err, -EACCES, "it is sealed with the key %s of cluster '%s', which %s; or it is damaged",
                         line->fingerprint, line->cluster,
                         keys->any_cluster ? "is not the one in that file" : "this node does not have");
}

static int key_find(const struct line *line, const struct seal_keys *keys, uint8_t *ret_key, struct rm_error *err) {
        char check[HEX_BYTES(TLS_KEY_BYTES)];

        if (!keys->any_cluster && strcmp(line->cluster, keys->cluster) != 0)
                return error_set(err, -EACCES,
                                 "it was exported by cluster '%s' with the key %s, and not by this one, '%s'; or it is damaged",
                                 line->cluster, line->fingerprint, keys->cluster);
        for (size_t i = 0; i < keys->n; i++) {
                if (!keys_derive(line, keys->keys[i], ret_key, check))
                        return crypto_failed(err);
                if (CRYPTO_memcmp(check, line->check, sizeof(check)) == 0)
                        return 0;
        }
        return explain_key(line, keys, err);
}

int seal_open(const struct seal_keys *keys, const struct seal_io *io, struct seal **ret, struct rm_error *err) {
        uint8_t key[TLS_KEY_BYTES] = { 0 };
        struct line line = { 0 };
        int r = line_read(io, &line, err);

        if (r == 0)
                r = key_find(&line, keys, key, err);
        if (r == 0) {
                *ret = make(io, key, false);
                r = *ret ? 0 : crypto_failed(err);
        }
        OPENSSL_cleanse(key, sizeof(key));
        return r;
}

/* There is something left of a chunk, or it was the last. */
static int fill(struct seal *s, struct rm_error *err) {
        if (s->failed)
                return damaged(err);
        return s->read_bytes == s->used_bytes && !s->ended ? chunk_read(s, err) : 0;
}

int seal_read(struct seal *s, void *data, size_t size_bytes, struct rm_error *err) {
        uint8_t *at = data;

        while (size_bytes > 0) {
                int r = fill(s, err);
                size_t n = s->used_bytes - s->read_bytes;

                if (r < 0)
                        return r;
                if (n == 0)
                        return damaged(err);
                n = n < size_bytes ? n : size_bytes;
                memcpy(at, s->chunk + s->read_bytes, n);
                s->read_bytes += n;
                at += n;
                size_bytes -= n;
        }
        return 0;
}

int seal_read_end(struct seal *s, struct rm_error *err) {
        int r = fill(s, err);

        return r == 0 && (!s->ended || s->read_bytes < s->used_bytes) ? damaged(err) : r;
}
