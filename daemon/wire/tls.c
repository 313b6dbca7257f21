#include "daemon/wire/tls.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#include "common/util.h"

/* There is only one cipher suite: its hash (SHA-256) has to match on both sides for the binder of
 * an external key to verify. */
#define TLS_SUITE "TLS_AES_128_GCM_SHA256"
static const unsigned char tls_suite_bytes[] = { 0x13, 0x01 };

/* Raised when keys are derived, or used, in another way: versions that differ here refuse each
 * other, and say so. What came before derived nothing, and named only the cluster. */
#define TLS_VERSION "2"

/* A key derived from the cluster's, for one purpose. */
struct key {
        uint8_t secret[TLS_KEY_BYTES];
        char fingerprint[TLS_FINGERPRINT_BYTES];
        char *identity; /* NULL: there is no such key */
};

struct tls {
        SSL_CTX *ctx;
        enum tls_purpose purpose;
        char *cluster;
        char *scheme; /* what all identities of ours begin with */
        struct key keys[2];
};

/* ---- key file ---- */

static int hex_value(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

static bool key_from_hex(const char *text, uint8_t *key) {
        for (size_t i = 0; i < TLS_KEY_BYTES; i++) {
                int high = hex_value(text[2 * i]);
                int low = hex_value(text[2 * i + 1]);

                if (high < 0 || low < 0)
                        return false;
                key[i] = (uint8_t) (high << 4 | low);
        }
        return true;
}

static bool key_from_base64(const char *text, uint8_t *key) {
        unsigned char block[36]; /* 44 characters are 33 bytes, the last one being padding */
        bool ok;

        if (text[43] != '=' || strchr(text, '=') != text + 43)
                return false;
        ok = EVP_DecodeBlock(block, (const unsigned char *) text, 44) == TLS_KEY_BYTES + 1;
        if (ok)
                memcpy(key, block, TLS_KEY_BYTES);
        OPENSSL_cleanse(block, sizeof(block));
        return ok;
}

static int key_parse(char *data, size_t size_bytes, uint8_t *key) {
        if (size_bytes == TLS_KEY_BYTES) {
                memcpy(key, data, TLS_KEY_BYTES);
                return 0;
        }
        while (size_bytes > 0 && isspace((unsigned char) data[size_bytes - 1]))
                data[--size_bytes] = 0;
        if (size_bytes == 2 * (size_t) TLS_KEY_BYTES && key_from_hex(data, key))
                return 0;
        if (size_bytes == 44 && key_from_base64(data, key))
                return 0;
        return -EINVAL;
}

static int key_file_check(const char *path, const struct stat *st, struct rm_error *err) {
        if (!S_ISREG(st->st_mode))
                return error_set(err, -EINVAL, "%s: not a regular file", path);
        if (st->st_uid != 0 && st->st_uid != geteuid())
                return error_set(err, -EPERM, "%s: owned by uid %u; the cluster key must belong to root (chown root '%s')", path,
                                 (unsigned) st->st_uid, path);
        if ((st->st_mode & 07177) != 0)
                return error_set(err, -EPERM, "%s: mode %04o lets others use the cluster key (chmod 0600 '%s')", path,
                                 (unsigned) (st->st_mode & 07777), path);
        return 0;
}

int tls_key_read(const char *path, uint8_t ret_key[static TLS_KEY_BYTES], struct rm_error *err) {
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        char data[256];
        struct stat st;
        ssize_t n;
        int r;

        if (fd < 0)
                return error_sys(err, -errno, "%s: cannot open the cluster key", path);
        if (fstat(fd, &st) < 0)
                return error_sys(err, -errno, "%s", path);
        r = key_file_check(path, &st, err);
        if (r < 0)
                return r;
        n = read(fd, data, sizeof(data) - 1);
        if (n < 0)
                return error_sys(err, -errno, "%s: cannot read the cluster key", path);
        data[n] = 0;
        r = key_parse(data, (size_t) n, ret_key);
        OPENSSL_cleanse(data, sizeof(data));
        if (r < 0)
                return error_set(err, r,
                                 "%s: a cluster key is 32 raw bytes, or one line of 64 hex digits or of base64 "
                                 "(openssl rand -hex 32 > '%s')",
                                 path, path);
        return 0;
}

/* ---- the key of a purpose ---- */

static const char *purpose_name(enum tls_purpose purpose) {
        return purpose == TLS_MOVER ? "mover" : "peer";
}

bool tls_derive(const uint8_t key[static TLS_KEY_BYTES], const char *info, uint8_t ret_key[static TLS_KEY_BYTES]) {
        EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
        EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
        const OSSL_PARAM params[] = {
                OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *) "SHA256", 0),
                OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *) key, TLS_KEY_BYTES),
                OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *) info, strlen(info)),
                OSSL_PARAM_construct_end(),
        };
        bool ok = ctx && EVP_KDF_derive(ctx, ret_key, TLS_KEY_BYTES, params) == 1;

        EVP_KDF_CTX_free(ctx);
        EVP_KDF_free(kdf);
        return ok;
}

/* The fingerprint is on the wire and in exported checkpoints in the clear, so it has an `info` of
 * its own, and tells nothing of what anything is secured with. */
bool tls_key_fingerprint(const char *cluster, const uint8_t key[static TLS_KEY_BYTES], char ret[static TLS_FINGERPRINT_BYTES]) {
        cleanup_free char *info = xasprintf("rmd %s fingerprint %s", TLS_VERSION, cluster);
        uint8_t shown[TLS_KEY_BYTES];

        if (!tls_derive(key, info, shown))
                return false;
        for (size_t i = 0; i < TLS_FINGERPRINT_BYTES / 2; i++)
                (void) snprintf(ret + 2 * i, 3, "%02x", shown[i]);
        return true;
}

static bool key_derive(const struct tls *tls, const uint8_t *cluster_key, struct key *ret_key) {
        cleanup_free char *info = xasprintf("rmd %s %s %s", TLS_VERSION, purpose_name(tls->purpose), tls->cluster);

        if (!tls_derive(cluster_key, info, ret_key->secret) ||
            !tls_key_fingerprint(tls->cluster, cluster_key, ret_key->fingerprint))
                return false;
        ret_key->identity = xasprintf("%s%s", tls->scheme, ret_key->fingerprint);
        return true;
}

/* The `info` of this key has a fixed word where those of connections have their version: stored
 * checkpoints are to be readable by later versions. */
int tls_checkpoint_key(const char *cluster, const char *key_file, uint8_t ret_key[static TLS_KEY_BYTES], struct rm_error *err) {
        cleanup_free char *info = xasprintf("rmd checkpoint %s", cluster);
        uint8_t key[TLS_KEY_BYTES];
        bool ok;
        int r = tls_key_read(key_file, key, err);

        if (r < 0)
                return r;
        ok = tls_derive(key, info, ret_key);
        OPENSSL_cleanse(key, sizeof(key));
        return ok ? 0 : error_set(err, -EIO, "cannot derive the key of checkpoints");
}

static void key_finish(struct key *key) {
        OPENSSL_cleanse(key->secret, sizeof(key->secret));
        free(key->identity);
}

/* ---- sessions ---- */

/* Set on a session whose other end named our cluster, but not as we do. */
static char other_version;
/* Set on one whose other end does all as we do, but with a key that we do not have. */
static char other_key;

static SSL_SESSION *psk_session(const struct key *key, SSL *ssl) {
        const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, tls_suite_bytes);
        SSL_SESSION *session = SSL_SESSION_new();

        if (session && cipher && SSL_SESSION_set1_master_key(session, key->secret, TLS_KEY_BYTES) &&
            SSL_SESSION_set_cipher(session, cipher) && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
                return session;
        SSL_SESSION_free(session);
        return NULL;
}

static int on_psk_use(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_bytes, SSL_SESSION **session) {
        const struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

        *session = psk_session(&tls->keys[0], ssl);
        *id = (const unsigned char *) tls->keys[0].identity;
        *id_bytes = strlen(tls->keys[0].identity);
        return *session ? 1 : 0;
}

static bool id_is(const unsigned char *id, size_t id_bytes, const char *text) {
        return text && id_bytes == strlen(text) && memcmp(id, text, id_bytes) == 0;
}

static bool id_begins(const unsigned char *id, size_t id_bytes, const char *text) {
        return id_bytes >= strlen(text) && memcmp(id, text, strlen(text)) == 0;
}

static void refusal_note(const struct tls *tls, SSL *ssl, const unsigned char *id, size_t id_bytes) {
        size_t n = strlen(tls->cluster);

        if (id_begins(id, id_bytes, tls->scheme))
                (void) SSL_set_app_data(ssl, &other_key);
        else if (id_begins(id, id_bytes, tls->cluster) && (id_bytes == n || id[n] == '/'))
                (void) SSL_set_app_data(ssl, &other_version);
}

/* An identity that is not ours gives no session; without a certificate the handshake then ends. */
static int on_psk_find(SSL *ssl, const unsigned char *id, size_t id_bytes, SSL_SESSION **session) {
        const struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

        *session = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(tls->keys); i++)
                if (id_is(id, id_bytes, tls->keys[i].identity)) {
                        *session = psk_session(&tls->keys[i], ssl);
                        return *session ? 1 : 0;
                }
        refusal_note(tls, ssl, id, id_bytes);
        return 1;
}

static bool context_setup(SSL_CTX *ctx) {
        SSL_CTX_set_psk_use_session_callback(ctx, on_psk_use);
        SSL_CTX_set_psk_find_session_callback(ctx, on_psk_find);
        (void) SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        (void) SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
        (void) SSL_CTX_set_mode(ctx,
                                SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) && SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) &&
               SSL_CTX_set_ciphersuites(ctx, TLS_SUITE) && SSL_CTX_set1_groups_list(ctx, "X25519:P-256") &&
               SSL_CTX_set_num_tickets(ctx, 0);
}

const char *tls_refusal(const SSL *ssl) {
        if (ssl && SSL_get_app_data(ssl) == &other_version)
                return "it is of this cluster, but has another version of rmd, which uses the key in another way: all nodes need "
                       "the same version";
        if (ssl && SSL_get_app_data(ssl) == &other_key)
                return "it is of this cluster, but has another key than this node (see [cluster] key_file and second_key_file)";
        return "not of this cluster (another key, cluster name or version of rmd?)";
}

static int openssl_failed(struct rm_error *err) {
        char text[256];

        ERR_error_string_n(ERR_get_error(), text, sizeof(text));
        return error_set(err, -EIO, "TLS: cannot set up OpenSSL: %s", text);
}

int tls_create(const char *cluster, enum tls_purpose purpose, const uint8_t key[static TLS_KEY_BYTES], struct tls **ret,
               struct rm_error *err) {
        struct tls *tls = xcalloc(1, sizeof(*tls));
        int r;

        tls->cluster = xstrdup(cluster);
        tls->purpose = purpose;
        tls->scheme = xasprintf("%s/%s/%s/", cluster, purpose_name(purpose), TLS_VERSION);
        tls->ctx = SSL_CTX_new(TLS_method());
        if (!key_derive(tls, key, &tls->keys[0]) || !tls->ctx || !context_setup(tls->ctx)) {
                r = openssl_failed(err);
                tls_destroy(tls);
                return r;
        }
        (void) SSL_CTX_set_app_data(tls->ctx, tls);
        *ret = tls;
        return 0;
}

int tls_accept_too(struct tls *tls, const uint8_t key[static TLS_KEY_BYTES], struct rm_error *err) {
        struct key second = { 0 };

        if (!key_derive(tls, key, &second)) {
                key_finish(&second);
                return openssl_failed(err);
        }
        if (strcmp(second.fingerprint, tls->keys[0].fingerprint) == 0) {
                key_finish(&second);
                return error_set(err, -EEXIST, "the second key of the cluster is the same as the first");
        }
        key_finish(&tls->keys[1]);
        tls->keys[1] = second;
        return 0;
}

int tls_create_from_files(const char *cluster, enum tls_purpose purpose, const char *key_file, const char *second_key_file,
                          struct tls **ret, struct rm_error *err) {
        uint8_t key[TLS_KEY_BYTES];
        struct tls *tls = NULL;
        int r;

        r = tls_key_read(key_file, key, err);
        if (r == 0)
                r = tls_create(cluster, purpose, key, &tls, err);
        if (r == 0 && *second_key_file) {
                r = tls_key_read(second_key_file, key, err);
                if (r == 0)
                        r = tls_accept_too(tls, key, err);
        }
        OPENSSL_cleanse(key, sizeof(key));
        if (r < 0)
                tls_destroy(tls);
        else
                *ret = tls;
        return r;
}

const char *tls_fingerprint(const struct tls *tls, bool second) {
        return tls->keys[second].identity ? tls->keys[second].fingerprint : NULL;
}

void tls_destroy(struct tls *tls) {
        if (!tls)
                return;
        SSL_CTX_free(tls->ctx);
        key_finish(&tls->keys[0]);
        key_finish(&tls->keys[1]);
        free(tls->scheme);
        free(tls->cluster);
        free(tls);
}

SSL *tls_session(struct tls *tls, bool server) {
        SSL *ssl = SSL_new(tls->ctx);

        if (!ssl)
                return NULL;
        if (server) {
                /* Without a certificate a server can only finish a handshake by the key. */
                SSL_set_accept_state(ssl);
                SSL_set_verify(ssl, SSL_VERIFY_NONE, NULL);
        } else {
                /* No trust anchors: a server that passes over the key and shows a certificate is
                 * refused. */
                SSL_set_connect_state(ssl);
                SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
        }
        return ssl;
}

bool tls_proven(const SSL *ssl) {
        /* OpenSSL counts a session by external key as a resumed one; there is no other way to be
         * resumed here. */
        return SSL_session_reused(ssl) == 1;
}
