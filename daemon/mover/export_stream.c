#include "daemon/mover/export_stream.h"

#include <inttypes.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "common/frame.h"
#include "common/util.h"

struct export_stream {
        struct export_io io;
        EVP_MAC_CTX *macs[2]; /* of all so far; the second NULL: there is one key */
};

/* ---- MACs ---- */

static EVP_MAC_CTX *mac_begin(const uint8_t *key) {
        EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
        EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
        char digest[] = "SHA256";
        const OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                      OSSL_PARAM_construct_end() };

        EVP_MAC_free(mac);
        if (ctx && EVP_MAC_init(ctx, key, EXPORT_KEY_BYTES, params) == 1)
                return ctx;
        EVP_MAC_CTX_free(ctx);
        return NULL;
}

static int mac_failed(struct rm_error *err) {
        return error_set(err, -ENOTSUP, "OpenSSL has no HMAC-SHA256");
}

static int macs_add(struct export_stream *s, const void *data, size_t size_bytes, struct rm_error *err) {
        for (size_t i = 0; i < ARRAY_SIZE(s->macs); i++)
                if (s->macs[i] && EVP_MAC_update(s->macs[i], data, size_bytes) != 1)
                        return mac_failed(err);
        return 0;
}

/* Of all so far; it goes on after that. */
static bool mac_now(const EVP_MAC_CTX *mac, uint8_t ret[static EXPORT_MAC_BYTES]) {
        EVP_MAC_CTX *ctx = EVP_MAC_CTX_dup(mac);
        size_t n = 0;
        bool ok = ctx && EVP_MAC_final(ctx, ret, &n, EXPORT_MAC_BYTES) == 1 && n == EXPORT_MAC_BYTES;

        EVP_MAC_CTX_free(ctx);
        return ok;
}

int export_stream_create(const struct export_keys *keys, const struct export_io *io, struct export_stream **ret,
                         struct rm_error *err) {
        struct export_stream *s = xcalloc(1, sizeof(*s));

        s->io = *io;
        s->macs[0] = mac_begin(keys->key);
        s->macs[1] = keys->has_second ? mac_begin(keys->second) : NULL;
        if (!s->macs[0] || (keys->has_second && !s->macs[1])) {
                export_stream_destroy(s);
                return mac_failed(err);
        }
        *ret = s;
        return 0;
}

void export_stream_destroy(struct export_stream *s) {
        if (!s)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(s->macs); i++)
                EVP_MAC_CTX_free(s->macs[i]);
        free(s);
}

/* ---- writing ---- */

int export_write_data(struct export_stream *s, const void *data, size_t size_bytes, struct rm_error *err) {
        int r = macs_add(s, data, size_bytes, err);

        return r < 0 ? r : s->io.write(s->io.ctx, data, size_bytes, err);
}

int export_write_record(struct export_stream *s, const Rm__ExportRecord *record, struct rm_error *err) {
        size_t n = 0;
        cleanup_free uint8_t *frame = frame_pack(FRAME_MAGIC_EXPORT, &record->base, &n);

        if (n > FRAME_HEADER_BYTES + EXPORT_RECORD_MAX_BYTES)
                return error_set(err, -EFBIG, "the job is too large: its record has %zu bytes", n);
        return export_write_data(s, frame, n, err);
}

int export_write_mac(struct export_stream *s, struct rm_error *err) {
        uint8_t mac[EXPORT_MAC_BYTES];

        if (!mac_now(s->macs[0], mac))
                return mac_failed(err);
        return export_write_data(s, mac, sizeof(mac), err);
}

/* ---- reading ---- */

static int input_read(struct export_stream *s, void *data, size_t size_bytes, struct rm_error *err) {
        int r = s->io.read(s->io.ctx, data, size_bytes, err);

        return r == -ENODATA ? error_set(err, -EBADMSG, "the file is cut off") : r;
}

int export_read_data(struct export_stream *s, void *data, size_t size_bytes, struct rm_error *err) {
        int r = input_read(s, data, size_bytes, err);

        return r < 0 ? r : macs_add(s, data, size_bytes, err);
}

int export_read_record(struct export_stream *s, Rm__ExportRecord **ret, struct rm_error *err) {
        uint8_t header[FRAME_HEADER_BYTES];
        cleanup_free uint8_t *payload = NULL;
        uint32_t n = 0;
        int r = export_read_data(s, header, sizeof(header), err);

        if (r < 0)
                return r;
        if (frame_header_read(header, FRAME_MAGIC_EXPORT, EXPORT_RECORD_MAX_BYTES, &n) < 0)
                return error_set(err, -EBADMSG, "this is no exported checkpoint, or it is damaged");
        payload = xrealloc(NULL, n + 1);
        r = export_read_data(s, payload, n, err);
        if (r < 0)
                return r;
        *ret = rm__export_record__unpack(NULL, n, payload);
        return *ret ? 0 : error_set(err, -EBADMSG, "the file is damaged");
}

int export_read_mac(struct export_stream *s, struct rm_error *err) {
        uint8_t there[EXPORT_MAC_BYTES], made[2][EXPORT_MAC_BYTES];
        bool right = false;
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(s->macs); i++)
                if (s->macs[i] && !mac_now(s->macs[i], made[i]))
                        return mac_failed(err);
        r = export_read_data(s, there, sizeof(there), err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(s->macs); i++)
                right = (s->macs[i] && CRYPTO_memcmp(made[i], there, sizeof(there)) == 0) || right;
        return right ? 0 : error_set(err, -EBADMSG, "the file is damaged, or was exported with another cluster's key");
}

/* ---- what is in it ---- */

bool export_head_valid(const Rm__ExportHead *head) {
        const Rm__Job *job = head ? head->job : NULL;

        return job && job->spec && job->n_checkpoints == 1 && job->checkpoints[0]->n_parts > 0;
}

char *export_part_dir(const char *dir, int32_t capsule) {
        return capsule < 0 ? xasprintf("%s/head", dir) : xasprintf("%s/g%" PRId32, dir, capsule);
}
