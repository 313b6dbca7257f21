/* TLS with the cluster's key: the same key on both sides and nothing else. */
#include "wire_test.h"

#include <netinet/in.h>
#include <sys/stat.h>

#include <openssl/evp.h>
#include <openssl/x509.h>

static const uint8_t key_one[TLS_KEY_BYTES] = { 1, 2, 3 };
static const uint8_t key_two[TLS_KEY_BYTES] = { 3, 2, 1 };

/* How rmd before keys were derived would use the key, and name itself: by its own callbacks. */
static SSL_SESSION *plain_session(SSL *ssl) {
        static const unsigned char suite[] = { 0x13, 0x01 };
        SSL_SESSION *session = SSL_SESSION_new();

        assert_non_null(session);
        assert_int_equal(SSL_SESSION_set1_master_key(session, key_one, TLS_KEY_BYTES), 1);
        assert_int_equal(SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, suite)), 1);
        assert_int_equal(SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION), 1);
        return session;
}

static int on_plain_use(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_bytes, SSL_SESSION **session) {
        (void) md;
        *session = plain_session(ssl);
        *id = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
        *id_bytes = strlen(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
        return 1;
}

struct sides {
        struct event_base *base;
        struct tls *client_tls;
        struct tls *server_tls;
        struct end client;
        struct end server;
};

/* Takes both. */
static void sides_meet(struct sides *s, struct tls *client_tls, struct tls *server_tls) {
        struct conn_config config;
        int fds[2];

        memset(s, 0, sizeof(*s));
        s->base = event_base_new();
        s->client_tls = client_tls;
        s->server_tls = server_tls;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        config = end_config(tls_session(s->client_tls, false));
        assert_int_equal(conn_create(s->base, fds[0], &config, &end_ops, &s->client, &s->client.conn), 0);
        config = end_config(tls_session(s->server_tls, true));
        assert_int_equal(conn_create(s->base, fds[1], &config, &end_ops, &s->server, &s->server.conn), 0);
        RUN_UNTIL(s->base, (s->client.ready && s->server.ready) || (s->client.closed && s->server.closed), 30000);
}

static struct tls *tls_of(const char *cluster, const uint8_t *first, const uint8_t *second) {
        struct tls *tls;

        assert_int_equal(tls_create(cluster, TLS_PEER, first, &tls, NULL), 0);
        if (second)
                assert_int_equal(tls_accept_too(tls, second, NULL), 0);
        return tls;
}

static void setup_sides(struct sides *s, const char *client_name, const uint8_t *client_key) {
        sides_meet(s, tls_of(client_name, client_key, NULL), tls_of("testers", key_one, NULL));
}

static void finish_sides(struct sides *s) {
        conn_destroy(s->client.conn);
        conn_destroy(s->server.conn);
        tls_destroy(s->client_tls);
        tls_destroy(s->server_tls);
        event_base_free(s->base);
}

static void test_same_key(void **state) {
        struct sides s;

        setup_sides(&s, "testers", key_one);
        assert_int_equal(s.client.ready, 1);
        assert_int_equal(s.server.ready, 1);
        s.server.echo = true;
        for (uint64_t i = 1; i <= 2000; i++)
                send_heartbeat(s.client.conn, i, 0);
        RUN_UNTIL(s.base, s.client.messages == 2000, 30000);
        assert_int_equal(s.client.last_sequence, 2000);
        /* The last words before a close arrive. */
        s.server.echo = false;
        send_heartbeat(s.client.conn, 77, 0);
        conn_close(take_ptr(s.client.conn));
        RUN_UNTIL(s.base, s.server.closed, 30000);
        assert_int_equal(s.server.last_sequence, 77);
        assert_int_equal(s.server.code, 0);
        finish_sides(&s);
}

static void test_wrong_key(void **state) {
        struct sides s;

        setup_sides(&s, "testers", key_two);
        assert_int_equal(s.client.ready + s.server.ready, 0);
        assert_int_equal(s.server.code, -EACCES);
        finish_sides(&s);
}

static void test_wrong_cluster(void **state) {
        struct sides s;

        setup_sides(&s, "others", key_one);
        assert_int_equal(s.client.ready + s.server.ready, 0);
        assert_int_equal(s.server.code, -EACCES);
        finish_sides(&s);
}

/* The steps of a node while the key is changed: the old one, then the new one as well, then the
 * other way round, then the new one. */
static struct tls *tls_of_step(unsigned step) {
        switch (step) {
        case 0:
                return tls_of("testers", key_one, NULL);
        case 1:
                return tls_of("testers", key_one, key_two);
        case 2:
                return tls_of("testers", key_two, key_one);
        default:
                return tls_of("testers", key_two, NULL);
        }
}

/* Nodes that are one step apart can talk, whoever begins; with only the old key there is no way to
 * one with only the new. */
static void test_key_is_changed_step_by_step(void **state) {
        struct sides s;

        for (unsigned client = 0; client < 4; client++)
                for (unsigned server = 0; server < 4; server++) {
                        /* The client's key changes at step 2, the keys that a server accepts at
                         * steps 1 and 3. */
                        bool expected = client < 2 ? server < 3 : server > 0;

                        sides_meet(&s, tls_of_step(client), tls_of_step(server));
                        assert_int_equal(s.client.ready && s.server.ready, expected);
                        if (!expected)
                                assert_int_equal(s.server.code, -EACCES);
                        if (!expected && !strstr(s.server.reason, "but has another key than this node"))
                                fail_msg("'%s' does not tell the reason", s.server.reason);
                        finish_sides(&s);
                }
}

/* Comparable, and nothing of the key. */
static void test_fingerprints(void **state) {
        struct tls *tls = tls_of("testers", key_one, key_two);
        struct tls *other = tls_of("testers", key_two, NULL);
        struct tls *elsewhere = tls_of("others", key_one, NULL);
        char of_key[TLS_FINGERPRINT_BYTES];
        struct tls *mover;
        struct rm_error err = { 0 };

        assert_int_equal(tls_create("testers", TLS_MOVER, key_one, &mover, NULL), 0);
        assert_true(tls_key_fingerprint("testers", key_one, of_key));
        assert_string_equal(tls_fingerprint(tls, false), of_key);
        assert_int_equal(strlen(tls_fingerprint(tls, false)), TLS_FINGERPRINT_BYTES - 1);
        assert_int_equal(strspn(tls_fingerprint(tls, false), "0123456789abcdef"), TLS_FINGERPRINT_BYTES - 1);
        assert_int_not_equal(strncmp(tls_fingerprint(tls, false), "010203", 6), 0);
        assert_string_equal(tls_fingerprint(tls, false), tls_fingerprint(mover, false));
        assert_string_equal(tls_fingerprint(tls, true), tls_fingerprint(other, false));
        assert_string_not_equal(tls_fingerprint(tls, false), tls_fingerprint(other, false));
        assert_string_not_equal(tls_fingerprint(tls, false), tls_fingerprint(elsewhere, false));
        assert_null(tls_fingerprint(other, true));
        assert_int_equal(tls_accept_too(other, key_two, &err), -EEXIST);
        assert_null(tls_fingerprint(other, true));
        tls_destroy(tls);
        tls_destroy(other);
        tls_destroy(elsewhere);
        tls_destroy(mover);
}

/* The key of a purpose is not another's, and one that nothing was derived from is neither. */
static void other_way(SSL *client_ssl, const char *expected) {
        struct event_base *base = event_base_new();
        struct end client = { 0 }, server = { 0 };
        struct conn_config config;
        struct tls *tls;
        int fds[2];

        assert_int_equal(tls_create("testers", TLS_PEER, key_one, &tls, NULL), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        config = end_config(client_ssl);
        assert_int_equal(conn_create(base, fds[0], &config, &end_ops, &client, &client.conn), 0);
        config = end_config(tls_session(tls, true));
        assert_int_equal(conn_create(base, fds[1], &config, &end_ops, &server, &server.conn), 0);
        RUN_UNTIL(base, client.closed && server.closed, 30000);
        assert_int_equal(client.ready + server.ready, 0);
        assert_int_equal(server.code, -EACCES);
        if (!strstr(server.reason, expected))
                fail_msg("'%s' does not say '%s'", server.reason, expected);
        conn_destroy(client.conn);
        conn_destroy(server.conn);
        tls_destroy(tls);
        event_base_free(base);
}

static void test_key_of_another_purpose(void **state) {
        struct tls *mover;

        assert_int_equal(tls_create("testers", TLS_MOVER, key_one, &mover, NULL), 0);
        other_way(tls_session(mover, false), "the same version");
        tls_destroy(mover);
}

static void older_version(const char *identity) {
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        SSL *ssl;

        assert_non_null(ctx);
        (void) SSL_CTX_set_app_data(ctx, (char *) identity);
        SSL_CTX_set_psk_use_session_callback(ctx, on_plain_use);
        (void) SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256");
        ssl = SSL_new(ctx);
        SSL_set_connect_state(ssl);
        other_way(ssl, "another version of rmd");
        SSL_CTX_free(ctx);
}

/* Before keys were derived, and before identities told which key it is. */
static void test_older_versions(void **state) {
        older_version("testers");
        older_version("testers/peer/1");
}

/* A server without the key that shows a certificate instead: nobody may believe it. */
static SSL_CTX *certificate_context(void) {
        SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509 *cert = X509_new();

        assert_non_null(ctx);
        (void) ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
        (void) X509_gmtime_adj(X509_getm_notBefore(cert), 0);
        (void) X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
        (void) X509_set_pubkey(cert, key);
        assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
        assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
        X509_free(cert);
        EVP_PKEY_free(key);
        return ctx;
}

static void test_certificate_instead_of_key(void **state) {
        struct event_base *base = event_base_new();
        SSL_CTX *rogue = certificate_context();
        struct conn_config config;
        struct end client = { 0 };
        struct tls *tls;
        SSL *ssl = SSL_new(rogue);
        int fds[2];

        assert_int_equal(tls_create("testers", TLS_PEER, key_one, &tls, NULL), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        config = end_config(tls_session(tls, false));
        assert_int_equal(conn_create(base, fds[0], &config, &end_ops, &client, &client.conn), 0);
        (void) set_nonblock(fds[1], true);
        (void) SSL_set_fd(ssl, fds[1]);
        SSL_set_accept_state(ssl);
        for (int i = 0; i < 50 && !client.closed && !client.ready; i++) {
                (void) SSL_do_handshake(ssl);
                RUN_UNTIL(base, client.closed, 10);
        }
        assert_int_equal(client.ready, 0);
        assert_int_equal(client.code, -EACCES);
        SSL_free(ssl);
        SSL_CTX_free(rogue);
        (void) close(fds[1]);
        tls_destroy(tls);
        event_base_free(base);
}

/* The client has no key at all. */
static void test_client_without_key(void **state) {
        struct event_base *base = event_base_new();
        SSL_CTX *rogue = SSL_CTX_new(TLS_client_method());
        struct conn_config config;
        struct end server = { 0 };
        struct tls *tls;
        SSL *ssl = SSL_new(rogue);
        int fds[2];

        assert_int_equal(tls_create("testers", TLS_PEER, key_one, &tls, NULL), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        config = end_config(tls_session(tls, true));
        assert_int_equal(conn_create(base, fds[0], &config, &end_ops, &server, &server.conn), 0);
        (void) set_nonblock(fds[1], true);
        (void) SSL_set_fd(ssl, fds[1]);
        SSL_set_connect_state(ssl);
        for (int i = 0; i < 50 && !server.closed && !server.ready; i++) {
                (void) SSL_do_handshake(ssl);
                RUN_UNTIL(base, server.closed, 10);
        }
        assert_int_equal(server.ready, 0);
        assert_int_equal(server.code, -EACCES);
        SSL_free(ssl);
        SSL_CTX_free(rogue);
        (void) close(fds[1]);
        tls_destroy(tls);
        event_base_free(base);
}

static void test_plain_text_on_tls_port(void **state) {
        struct event_base *base = event_base_new();
        struct conn_config config;
        struct end server = { 0 };
        struct tls *tls;
        int fds[2];

        assert_int_equal(tls_create("testers", TLS_PEER, key_one, &tls, NULL), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        config = end_config(tls_session(tls, true));
        assert_int_equal(conn_create(base, fds[0], &config, &end_ops, &server, &server.conn), 0);
        assert_int_equal(write_all(fds[1], "GET / HTTP/1.0\r\n\r\n", 18), 0);
        RUN_UNTIL(base, server.closed, 30000);
        assert_int_equal(server.closed, 1);
        (void) close(fds[1]);
        tls_destroy(tls);
        event_base_free(base);
}

static int read_key_text(const char *text, size_t n, mode_t mode, uint8_t *key, struct rm_error *err) {
        char path[] = "/tmp/test-key-XXXXXX";
        int fd = mkstemp(path);
        int r;

        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, text, n), 0);
        assert_int_equal(fchmod(fd, mode), 0);
        (void) close(fd);
        r = tls_key_read(path, key, err);
        (void) unlink(path);
        return r;
}

static void test_key_file(void **state) {
        static const char hex[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1F\n";
        static const char base64[] = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
        struct rm_error err = { 0 };
        uint8_t expected[TLS_KEY_BYTES];
        uint8_t key[TLS_KEY_BYTES];

        for (size_t i = 0; i < sizeof(expected); i++)
                expected[i] = (uint8_t) i;
        assert_int_equal(read_key_text(hex, sizeof(hex) - 1, 0600, key, NULL), 0);
        assert_memory_equal(key, expected, sizeof(key));
        memset(key, 0, sizeof(key));
        assert_int_equal(read_key_text(base64, sizeof(base64) - 1, 0400, key, NULL), 0);
        assert_memory_equal(key, expected, sizeof(key));
        assert_int_equal(read_key_text((char *) expected, 32, 0600, key, NULL), 0);
        assert_int_equal(read_key_text(hex, 20, 0600, key, &err), -EINVAL);
        assert_int_equal(read_key_text("", 0, 0600, key, &err), -EINVAL);
        assert_int_equal(read_key_text(hex, sizeof(hex) - 1, 0640, key, &err), -EPERM);
        assert_non_null(strstr(err.text, "chmod 0600"));
        assert_int_equal(tls_key_read("/nonexistent", key, &err), -ENOENT);
        assert_int_equal(tls_key_read("/tmp", key, &err), -EINVAL);
}

/* The key of checkpoints differs by cluster and by secret, and is not the secret itself. */
static void test_checkpoint_key(void **state) {
        char path[] = "/tmp/rmd-test-key.XXXXXX";
        int fd = mkstemp(path);
        uint8_t keys[4][TLS_KEY_BYTES];

        (void) state;
        assert_int_equal(write(fd, key_one, TLS_KEY_BYTES), TLS_KEY_BYTES);
        assert_int_equal(tls_checkpoint_key("a", path, keys[0], NULL), 0);
        assert_int_equal(tls_checkpoint_key("a", path, keys[1], NULL), 0);
        assert_int_equal(tls_checkpoint_key("b", path, keys[2], NULL), 0);
        assert_int_equal(pwrite(fd, key_two, TLS_KEY_BYTES, 0), TLS_KEY_BYTES);
        assert_int_equal(tls_checkpoint_key("a", path, keys[3], NULL), 0);
        assert_memory_equal(keys[0], keys[1], TLS_KEY_BYTES);
        assert_memory_not_equal(keys[0], keys[2], TLS_KEY_BYTES);
        assert_memory_not_equal(keys[0], keys[3], TLS_KEY_BYTES);
        assert_memory_not_equal(keys[0], key_one, TLS_KEY_BYTES);
        assert_int_equal(fchmod(fd, 0644), 0);
        assert_int_equal(tls_checkpoint_key("a", path, keys[0], NULL), -EPERM);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(tls_checkpoint_key("a", path, keys[0], NULL), -ENOENT);
        (void) close(fd);
}

static char *key_put(char c, mode_t mode) {
        char *path = xasprintf("/tmp/test-key-%d-%c", (int) getpid(), c);
        char text[TLS_KEY_BYTES];

        memset(text, c, sizeof(text));
        assert_int_equal(write_file_atomic(path, text, sizeof(text), mode, false), 0);
        return path;
}

/* The second file is looked at as closely as the first. */
static void test_second_key_file(void **state) {
        cleanup_free char *one = key_put('1', 0600);
        cleanup_free char *two = key_put('2', 0600);
        cleanup_free char *open = key_put('3', 0640);
        struct rm_error err = { 0 };
        struct tls *tls = NULL;

        assert_int_equal(tls_create_from_files("testers", TLS_PEER, one, two, &tls, NULL), 0);
        assert_non_null(tls_fingerprint(tls, true));
        tls_destroy(take_ptr(tls));
        assert_int_equal(tls_create_from_files("testers", TLS_PEER, one, "", &tls, NULL), 0);
        assert_null(tls_fingerprint(tls, true));
        tls_destroy(take_ptr(tls));
        assert_int_equal(tls_create_from_files("testers", TLS_PEER, one, open, &tls, &err), -EPERM);
        assert_non_null(strstr(err.text, open));
        assert_int_equal(tls_create_from_files("testers", TLS_PEER, one, "/nonexistent", &tls, NULL), -ENOENT);
        assert_int_equal(tls_create_from_files("testers", TLS_PEER, one, one, &tls, NULL), -EEXIST);
        assert_null(tls);
        (void) unlink(one);
        (void) unlink(two);
        (void) unlink(open);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_same_key),           cmocka_unit_test(test_wrong_key),
                cmocka_unit_test(test_wrong_cluster),      cmocka_unit_test(test_key_of_another_purpose),
                cmocka_unit_test(test_older_versions),     cmocka_unit_test(test_certificate_instead_of_key),
                cmocka_unit_test(test_client_without_key), cmocka_unit_test(test_plain_text_on_tls_port),
                cmocka_unit_test(test_key_file),           cmocka_unit_test(test_checkpoint_key),
                cmocka_unit_test(test_second_key_file),    cmocka_unit_test(test_key_is_changed_step_by_step),
                cmocka_unit_test(test_fingerprints),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
