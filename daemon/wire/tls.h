/* TLS 1.3 with the cluster's pre-shared key: no certificates; a node that has the key belongs to
 * the cluster.
 *
 * A node may have two keys while they are changed: it connects with the first and accepts both.
 * When first all nodes accept the new one as their second, then all connect with it, and then all
 * forget the old one, each node can talk to each at any time. */
#ifndef RM_WIRE_TLS_H
#define RM_WIRE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "common/error.h"

#define TLS_KEY_BYTES 32U
#define TLS_FINGERPRINT_BYTES 17U /* as text, with its NUL */

/* The purpose of a connection. Each has a key of its own, derived from the cluster's: a stranger
 * who gets hold of one does not have the other. Both ends must agree, or the handshake fails. */
enum tls_purpose { TLS_PEER, TLS_MOVER };

struct tls;

/* Read a key file: 32 raw bytes, or one line of 64 hex digits or of base64. It must be a regular
 * file owned by root (or by the user we run as), mode 0600 or 0400. */
int tls_key_read(const char *path, uint8_t ret_key[static TLS_KEY_BYTES], struct rm_error *err);

/* For manifests of checkpoints, and nothing else: what has to do with no connection. `key_file` as
 * above; the key is the same on all nodes of the cluster. */
int tls_checkpoint_key(const char *cluster, const char *key_file, uint8_t ret_key[static TLS_KEY_BYTES], struct rm_error *err);

/* A key for what `info` says, and for nothing else, by HKDF (RFC 5869) with SHA-256. False: OpenSSL
 * has none. */
bool tls_derive(const uint8_t key[static TLS_KEY_BYTES], const char *info, uint8_t ret_key[static TLS_KEY_BYTES]);

/* The fingerprint of a key as it stands in its file, which may be shown, the same as
 * tls_fingerprint(). False as above. */
bool tls_key_fingerprint(const char *cluster, const uint8_t key[static TLS_KEY_BYTES], char ret[static TLS_FINGERPRINT_BYTES]);

/* `key` is the cluster's; what is kept is derived from it, and wiped when destroyed. A client names
 * the cluster, the purpose, the version of the derivation and the key's fingerprint. */
int tls_create(const char *cluster, enum tls_purpose purpose, const uint8_t key[static TLS_KEY_BYTES], struct tls **ret,
               struct rm_error *err);
/* A second key, which is accepted besides the first, and never used to connect. -EEXIST: it is the
 * first one. */
int tls_accept_too(struct tls *tls, const uint8_t key[static TLS_KEY_BYTES], struct rm_error *err);
/* The same from key files; `second_key_file` "": none. */
int tls_create_from_files(const char *cluster, enum tls_purpose purpose, const char *key_file, const char *second_key_file,
                          struct tls **ret, struct rm_error *err);
/* The fingerprint of the first or the second key, which may be shown: 16 hexadecimal digits, the
 * same for every purpose. NULL: there is no second. */
const char *tls_fingerprint(const struct tls *tls, bool second);
void tls_destroy(struct tls *tls); /* NULL ok; sessions must be gone */

/* A new session, owned by the caller (SSL_free), set to connect or accept. NULL when memory is
 * out. */
SSL *tls_session(struct tls *tls, bool server);

/* The finished handshake was made with the key: without this nothing has been shown. conn checks it
 * by itself. */
bool tls_proven(const SSL *ssl);

/* Explains to a person why a handshake failed. Never NULL. */
const char *tls_refusal(const SSL *ssl);

#endif
