#include "daemon/store/manifest.h"

#include <inttypes.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "common/frame.h"
#include "common/util.h"
#include "proto/store.pb-c.h"

/* The number of entries in one record; larger records make the file hardly smaller. */
#define BLOCKS_IN_RECORD 4096U
#define RUNS_IN_RECORD 8192U
#define READ_BYTES (256U << 10)

/* ---- the MAC ---- */

static EVP_MAC_CTX *mac_begin(const struct store_key *key) {
        EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
        EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
        char digest[] = "SHA256";
        const OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                      OSSL_PARAM_construct_end() };

        EVP_MAC_free(mac);
        if (ctx && EVP_MAC_init(ctx, key->bytes, sizeof(key->bytes), params) == 1)
                return ctx;
        EVP_MAC_CTX_free(ctx);
        return NULL;
}

static bool mac_end(EVP_MAC_CTX *ctx, uint8_t ret[static MANIFEST_MAC_BYTES]) {
        size_t n = 0;
        bool ok = EVP_MAC_final(ctx, ret, &n, MANIFEST_MAC_BYTES) == 1 && n == MANIFEST_MAC_BYTES;

        EVP_MAC_CTX_free(ctx);
        return ok;
}

static int mac_failed(struct rm_error *err) {
        return error_set(err, -ENOTSUP, "OpenSSL has no HMAC-SHA256");
}

/* ---- writing ---- */

struct output {
        FILE *f;
        EVP_MAC_CTX *mac;
        const struct index *index;
        struct rm_error *err;
        uint64_t blocks;
};

static int record_write(struct output *out, const Rm__StoreRecord *record) {
        size_t n = 0;
        cleanup_free uint8_t *frame = frame_pack(FRAME_MAGIC_STORE, &record->base, &n);

        if (n > FRAME_HEADER_BYTES + MANIFEST_RECORD_MAX_BYTES)
                return error_set(out->err, -EFBIG, "a record of %zu bytes", n);
        if (EVP_MAC_update(out->mac, frame, n) != 1)
                return mac_failed(out->err);
        return fwrite(frame, 1, n, out->f) == n ? 0 : error_sys(out->err, -errno, "write");
}

static int head_write(struct output *out, const struct checkpoint *c) {
        Rm__StoreHead head = RM__STORE_HEAD__INIT;
        Rm__StoreRecord record = RM__STORE_RECORD__INIT;
        cleanup_free Rm__StorePack *packs = xcalloc(c->n_packs + 1, sizeof(*packs));
        cleanup_free Rm__StorePack **list = xcalloc(c->n_packs + 1, sizeof(*list));

        for (size_t i = 0; i < c->n_packs; i++) {
                packs[i] = (Rm__StorePack) RM__STORE_PACK__INIT;
                packs[i].number = c->packs[i].number;
                packs[i].size_bytes = c->packs[i].size_bytes;
                list[i] = &packs[i];
        }
        head.version = MANIFEST_VERSION;
        head.checkpoint = c->number;
        head.raw_bytes = c->raw_bytes;
        head.job = c->origin.job;
        head.capsule = c->origin.capsule;
        head.uid = c->origin.uid;
        head.n_packs = c->n_packs;
        head.packs = list;
        record.body_case = RM__STORE_RECORD__BODY_HEAD;
        record.head = &head;
        return record_write(out, &record);
}

static int meta_write(struct output *out, const struct checkpoint_meta *m) {
        Rm__StoreMeta meta = RM__STORE_META__INIT;
        Rm__StoreRecord record = RM__STORE_RECORD__INIT;

        meta.name = m->name;
        meta.data = (ProtobufCBinaryData) { .data = m->data, .len = m->size_bytes };
        record.body_case = RM__STORE_RECORD__BODY_META;
        record.meta = &meta;
        return record_write(out, &record);
}

static void open_fill(Rm__ImageOpen *m, const struct image_object *o) {
        m->kind = o->kind;
        m->role = (char *) o->role;
        m->path = (char *) o->path;
        m->target = *o->target ? (char *) o->target : NULL;
        m->has_mode = m->has_uid = m->has_gid = m->has_mtime_sec = m->has_mtime_nsec = true;
        m->mode = o->mode;
        m->uid = o->uid;
        m->gid = o->gid;
        m->mtime_sec = o->mtime_sec;
        m->mtime_nsec = o->mtime_nsec;
}

static int object_head_write(struct output *out, const struct checkpoint_object *object) {
        size_t n = object->o.n_attributes;
        cleanup_free Rm__ImageAttribute *attributes = xcalloc(n + 1, sizeof(*attributes));
        cleanup_free Rm__ImageAttribute **list = xcalloc(n + 1, sizeof(*list));
        Rm__ImageOpen open = RM__IMAGE_OPEN__INIT;
        Rm__StoreObject message = RM__STORE_OBJECT__INIT;
        Rm__StoreRecord record = RM__STORE_RECORD__INIT;

        for (size_t i = 0; i < n; i++) {
                const struct image_attribute *a = &object->o.attributes[i];

                attributes[i] = (Rm__ImageAttribute) RM__IMAGE_ATTRIBUTE__INIT;
                attributes[i].name = (char *) a->name;
                attributes[i].value = (ProtobufCBinaryData) { .data = (uint8_t *) a->value, .len = a->value_bytes };
                list[i] = &attributes[i];
        }
        open_fill(&open, &object->o);
        open.n_attributes = n;
        open.attributes = list;
        message.open = &open;
        message.size_bytes = object->size_bytes;
        record.body_case = RM__STORE_RECORD__BODY_OBJECT;
        record.object = &message;
        return record_write(out, &record);
}

static int blocks_record_write(struct output *out, uint64_t first, uint8_t *hashes, size_t n) {
        Rm__StoreBlocks blocks = RM__STORE_BLOCKS__INIT;
        Rm__StoreRecord record = RM__STORE_RECORD__INIT;

        if (n == 0)
                return 0;
        blocks.first = first;
        blocks.hashes = (ProtobufCBinaryData) { .data = hashes, .len = n * INDEX_HASH_BYTES };
        record.body_case = RM__STORE_RECORD__BODY_BLOCKS;
        record.blocks = &blocks;
        out->blocks += n;
        return record_write(out, &record);
}

static int blocks_write(struct output *out, const struct checkpoint_object *object) {
        cleanup_free uint8_t *hashes = NULL;
        struct blockmap_walk walk;
        uint64_t place, first = 0;
        uint32_t number;
        size_t n = 0;
        int r = 0;

        if (!object->map)
                return 0;
        hashes = xrealloc(NULL, (size_t) BLOCKS_IN_RECORD * INDEX_HASH_BYTES);
        blockmap_begin(object->map, &walk);
        while (r == 0 && blockmap_step(&walk, &place, &number)) {
                if (n == BLOCKS_IN_RECORD || place != first + n) {
                        r = blocks_record_write(out, first, hashes, n);
                        n = 0;
                }
                if (n == 0)
                        first = place;
                memcpy(hashes + n++ * INDEX_HASH_BYTES, out->index->blocks[number].hash, INDEX_HASH_BYTES);
        }
        return r == 0 ? blocks_record_write(out, first, hashes, n) : r;
}

static int present_record_write(struct output *out, uint64_t *runs, size_t n) {
        Rm__StorePresent present = RM__STORE_PRESENT__INIT;
        Rm__StoreRecord record = RM__STORE_RECORD__INIT;

        if (n == 0)
                return 0;
        present.runs = runs;
        present.n_runs = n;
        record.body_case = RM__STORE_RECORD__BODY_PRESENT;
        record.present = &present;
        return record_write(out, &record);
}

static int present_write(struct output *out, const struct checkpoint_object *object) {
        cleanup_free uint64_t *runs = NULL;
        uint64_t start, end, last = 0;
        size_t n = 0;
        int r = 0;

        if (!object->present)
                return 0;
        runs = xrealloc(NULL, RUNS_IN_RECORD * sizeof(*runs));
        while (r == 0 && pageset_next(object->present, last, UINT64_MAX, &start, &end)) {
                if (n == RUNS_IN_RECORD) {
                        r = present_record_write(out, runs, n);
                        n = 0;
                }
                runs[n++] = (start - last) / IMAGE_BLOCK_BYTES;
                runs[n++] = (end - start) / IMAGE_BLOCK_BYTES;
                last = end;
        }
        return r == 0 ? present_record_write(out, runs, n) : r;
}

static int end_write(struct output *out, const struct checkpoint *c) {
        Rm__StoreEnd end = RM__STORE_END__INIT;
        Rm__StoreRecord record = RM__STORE_RECORD__INIT;

        end.objects = c->n_objects;
        end.blocks = out->blocks;
        record.body_case = RM__STORE_RECORD__BODY_END;
        record.end = &end;
        return record_write(out, &record);
}

int manifest_write(FILE *f, const struct checkpoint *c, const struct index *ix, const struct store_key *key, struct rm_error *err) {
        struct output out = { .f = f, .mac = mac_begin(key), .index = ix, .err = err };
        uint8_t mac[MANIFEST_MAC_BYTES];
        int r = out.mac ? head_write(&out, c) : mac_failed(err);

        for (size_t i = 0; r == 0 && i < c->n_metas; i++)
                r = meta_write(&out, &c->metas[i]);
        for (size_t i = 0; r == 0 && i < c->n_objects; i++) {
                r = object_head_write(&out, c->objects[i]);
                if (r == 0)
                        r = blocks_write(&out, c->objects[i]);
                if (r == 0)
                        r = present_write(&out, c->objects[i]);
        }
        if (r == 0)
                r = end_write(&out, c);
        if (out.mac && !mac_end(out.mac, mac) && r == 0)
                r = mac_failed(err);
        if (r == 0 && (fwrite(mac, 1, sizeof(mac), f) != sizeof(mac) || fflush(f) != 0))
                r = error_sys(err, -errno, "write");
        return r;
}

/* ---- reading ---- */

static int bad(struct rm_error *err, const char *what) {
        return error_set(err, -EBADMSG, "the manifest is damaged: %s", what);
}

static int input_read(FILE *f, void *data, size_t size_bytes, struct rm_error *err) {
        if (fread(data, 1, size_bytes, f) == size_bytes)
                return 0;
        return ferror(f) ? error_sys(err, -EIO, "read") : bad(err, "it is cut off");
}

/* `body_bytes` from the begin on, by each of two keys, in one go. */
static int macs_make(FILE *f, uint64_t body_bytes, EVP_MAC_CTX *macs[2], struct rm_error *err) {
        cleanup_free uint8_t *buffer = xrealloc(NULL, READ_BYTES);

        while (body_bytes > 0) {
                size_t n = body_bytes < READ_BYTES ? (size_t) body_bytes : READ_BYTES;
                int r = input_read(f, buffer, n, err);

                if (r < 0)
                        return r;
                for (size_t i = 0; i < 2; i++)
                        if (macs[i] && EVP_MAC_update(macs[i], buffer, n) != 1)
                                return mac_failed(err);
                body_bytes -= n;
        }
        return 0;
}

int manifest_sign(FILE *f, uint64_t body_bytes, const struct store_key *key, struct rm_error *err) {
        EVP_MAC_CTX *macs[2] = { mac_begin(key), NULL };
        uint8_t mac[MANIFEST_MAC_BYTES];
        int r = macs[0] ? macs_make(f, body_bytes, macs, err) : mac_failed(err);

        if (macs[0] && !mac_end(macs[0], mac) && r == 0)
                r = mac_failed(err);
        /* C wants the position set between a read and a write. */
        if (r == 0 && (fseek(f, 0, SEEK_END) != 0 || fwrite(mac, 1, sizeof(mac), f) != sizeof(mac) || fflush(f) != 0))
                r = error_sys(err, -errno, "write");
        return r;
}

int manifest_authenticate(FILE *f, uint64_t size_bytes, const struct store_keys *keys, struct rm_error *err) {
        EVP_MAC_CTX *macs[2] = { mac_begin(&keys->key), keys->has_second ? mac_begin(&keys->second) : NULL };
        uint8_t made[MANIFEST_MAC_BYTES], there[MANIFEST_MAC_BYTES];
        bool right = false;
        int r = 0;

        if (fseek(f, 0, SEEK_SET) != 0)
                r = error_sys(err, -errno, "read");
        else if (!macs[0] || (keys->has_second && !macs[1]))
                r = mac_failed(err);
        else if (size_bytes < MANIFEST_MAC_BYTES)
                r = bad(err, "it is cut off");
        else
                r = macs_make(f, size_bytes - MANIFEST_MAC_BYTES, macs, err);
        if (r == 0)
                r = input_read(f, there, sizeof(there), err);
        for (size_t i = 0; i < 2; i++)
                if (macs[i] && mac_end(macs[i], made) && r == 0)
                        right = CRYPTO_memcmp(made, there, sizeof(made)) == 0 || right;
        if (r == 0 && !right)
                r = error_set(err, -EBADMSG, "the manifest is damaged, or was made with another key");
        if (r == 0 && fseek(f, 0, SEEK_SET) != 0)
                r = error_sys(err, -errno, "read");
        return r;
}

/* A manifest while it is read. */
struct input {
        FILE *f;
        uint64_t left_bytes; /* before the MAC */
        struct rm_error *err;
        struct checkpoint *c;
        struct checkpoint_object *object; /* the last one; NULL: none yet */
        uint64_t next_place;              /* of its blocks */
        uint64_t next_page;               /* of its present pages, as a number */
        uint64_t blocks;
        bool ended;
        uint32_t (*find)(void *ctx, const uint8_t *hash);
        void *ctx;
};

/* NULL: error set in `*ret`. */
static Rm__StoreRecord *record_read(struct input *in, int *ret) {
        uint8_t header[FRAME_HEADER_BYTES];
        cleanup_free uint8_t *data = NULL;
        Rm__StoreRecord *record = NULL;
        uint32_t n = 0;

        *ret = in->left_bytes < sizeof(header) ? bad(in->err, "it is cut off") : input_read(in->f, header, sizeof(header), in->err);
        if (*ret < 0)
                return NULL;
        in->left_bytes -= sizeof(header);
        if (frame_header_read(header, FRAME_MAGIC_STORE, MANIFEST_RECORD_MAX_BYTES, &n) < 0 || n > in->left_bytes) {
                *ret = bad(in->err, "a record that cannot be");
                return NULL;
        }
        data = xrealloc(NULL, (size_t) n + 1);
        *ret = input_read(in->f, data, n, in->err);
        if (*ret < 0)
                return NULL;
        in->left_bytes -= n;
        record = rm__store_record__unpack(NULL, n, data);
        if (!record)
                *ret = bad(in->err, "no record");
        return record;
}

static int head_take(struct input *in, const Rm__StoreHead *m) {
        uint64_t last = 0;

        if (in->c)
                return bad(in->err, "a second head");
        if (m->version != MANIFEST_VERSION)
                return error_set(in->err, -EPROTONOSUPPORT, "the manifest is of version %u, expected %u", m->version,
                                 MANIFEST_VERSION);
        if (m->n_packs > MANIFEST_PACKS_MAX)
                return bad(in->err, "too many packs");
        in->c = checkpoint_create(m->checkpoint);
        in->c->raw_bytes = m->raw_bytes;
        in->c->origin = (struct store_origin) { .job = m->job, .capsule = m->capsule, .uid = m->uid };
        for (size_t i = 0; i < m->n_packs; i++) {
                if (m->packs[i]->number <= last || m->packs[i]->number > m->checkpoint)
                        return bad(in->err, "packs that cannot be");
                last = m->packs[i]->number;
                checkpoint_add_pack(in->c, last, m->packs[i]->size_bytes);
        }
        return 0;
}

static int meta_take(struct input *in, const Rm__StoreMeta *m) {
        if (in->object)
                return bad(in->err, "a part out of place");
        return checkpoint_add_meta(in->c, m->name, m->data.data, m->data.len, in->err) < 0 ? bad(in->err, "a part that cannot be")
                                                                                           : 0;
}

static const char *string_or_empty(const char *s) {
        return s ? s : "";
}

/* Refuses objects that a manifest cannot hold: it has those that the stream knows, but for those
 * that are not left when all of it has come. */
static int object_check(const struct image_object *o, uint64_t size_bytes, struct rm_error *err) {
        if (image_object_check(o, err) < 0)
                return bad(err, "an object that cannot be");
        if (o->ahead > 0 || o->kind == RM__IMAGE_KIND__IMAGE_KIND_BLOCKS || o->kind == RM__IMAGE_KIND__IMAGE_KIND_AHEAD ||
            image_kind_is_runs(o->kind))
                return bad(err, "an object of a kind that is not stored");
        return size_bytes <= IMAGE_OBJECT_MAX_BYTES ? 0 : bad(err, "an object that is too large");
}

static int object_take(struct input *in, const Rm__StoreObject *m) {
        const Rm__ImageOpen *open = m->open;
        cleanup_free struct image_attribute *attributes = xcalloc(open->n_attributes + 1, sizeof(*attributes));
        const struct image_object o = {
                .kind = open->kind,
                .role = string_or_empty(open->role),
                .path = string_or_empty(open->path),
                .target = string_or_empty(open->target),
                .mode = open->mode,
                .uid = open->uid,
                .gid = open->gid,
                .mtime_sec = open->mtime_sec,
                .mtime_nsec = open->mtime_nsec,
                .ahead = open->ahead,
                .attributes = attributes,
                .n_attributes = open->n_attributes,
        };
        int r;

        for (size_t i = 0; i < open->n_attributes; i++)
                attributes[i] = (struct image_attribute) { open->attributes[i]->name, open->attributes[i]->value.data,
                                                           open->attributes[i]->value.len };
        r = object_check(&o, m->size_bytes, in->err);
        if (r < 0)
                return r;
        in->object = checkpoint_object_create(&o);
        in->object->size_bytes = m->size_bytes;
        in->next_place = in->next_page = 0;
        return checkpoint_add(in->c, in->object, in->err);
}

/* Returns the number behind the last block that an object can have. */
static uint64_t places_of(const struct checkpoint_object *object) {
        if (object->o.kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES)
                return IMAGE_OBJECT_MAX_BYTES / IMAGE_BLOCK_BYTES;
        return (object->size_bytes + IMAGE_BLOCK_BYTES - 1) / IMAGE_BLOCK_BYTES;
}

static int blocks_take(struct input *in, const Rm__StoreBlocks *m) {
        size_t n = m->hashes.len / INDEX_HASH_BYTES;
        uint64_t places;

        if (!in->object || !in->object->map || m->hashes.len % INDEX_HASH_BYTES)
                return bad(in->err, "blocks that belong to nothing");
        places = places_of(in->object);
        if (m->first < in->next_place || m->first > places || n > places - m->first)
                return bad(in->err, "blocks out of place");
        for (size_t i = 0; i < n; i++) {
                uint32_t number = in->find(in->ctx, m->hashes.data + i * INDEX_HASH_BYTES);

                if (number == INDEX_NONE)
                        return error_set(in->err, -EBADMSG, "no pack has block %" PRIu64 " of %s:%.300s", m->first + i,
                                         in->object->o.role, in->object->o.path);
                blockmap_put(in->object->map, m->first + i, number);
        }
        in->next_place = m->first + n;
        in->blocks += n;
        return 0;
}

static int present_take(struct input *in, const Rm__StorePresent *m) {
        const uint64_t pages = IMAGE_OBJECT_MAX_BYTES / IMAGE_BLOCK_BYTES;

        if (!in->object || !in->object->present || m->n_runs % 2)
                return bad(in->err, "pages that belong to nothing");
        for (size_t i = 0; i < m->n_runs; i += 2) {
                uint64_t gap = m->runs[i], n = m->runs[i + 1], start;

                /* The runs must be as pageset_next() gives them: a wider run would take up memory
                 * out of proportion to the file. */
                if (gap > pages - in->next_page || n > (32U << 20) / IMAGE_BLOCK_BYTES)
                        return bad(in->err, "pages out of place");
                start = (in->next_page + gap) * IMAGE_BLOCK_BYTES;
                in->next_page += gap + n;
                if (pageset_add(in->object->present, start, start + n * IMAGE_BLOCK_BYTES) < 0)
                        return bad(in->err, "pages out of place");
        }
        return 0;
}

static int end_take(struct input *in, const Rm__StoreEnd *m) {
        if (m->objects != in->c->n_objects || m->blocks != in->blocks || in->left_bytes > 0)
                return bad(in->err, "its totals do not match");
        in->ended = true;
        return 0;
}

static int record_take(struct input *in, const Rm__StoreRecord *record) {
        if (!in->c && record->body_case != RM__STORE_RECORD__BODY_HEAD)
                return bad(in->err, "no head");
        switch (record->body_case) {
        case RM__STORE_RECORD__BODY_HEAD:
                return head_take(in, record->head);
        case RM__STORE_RECORD__BODY_META:
                return meta_take(in, record->meta);
        case RM__STORE_RECORD__BODY_OBJECT:
                return object_take(in, record->object);
        case RM__STORE_RECORD__BODY_BLOCKS:
                return blocks_take(in, record->blocks);
        case RM__STORE_RECORD__BODY_PRESENT:
                return present_take(in, record->present);
        case RM__STORE_RECORD__BODY_END:
                return end_take(in, record->end);
        default:
                return bad(in->err, "a record of an unknown kind");
        }
}

static int record_next(struct input *in) {
        int r = 0;
        Rm__StoreRecord *record = record_read(in, &r);

        if (!record)
                return r;
        r = record_take(in, record);
        rm__store_record__free_unpacked(record, NULL);
        return r;
}

static int input_begin(struct input *in, FILE *f, uint64_t size_bytes, struct rm_error *err) {
        in->f = f;
        in->err = err;
        if (size_bytes < MANIFEST_MAC_BYTES)
                return bad(err, "it is cut off");
        in->left_bytes = size_bytes - MANIFEST_MAC_BYTES;
        return record_next(in);
}

int manifest_read_head(FILE *f, uint64_t size_bytes, struct checkpoint **ret, struct rm_error *err) {
        struct input in = { 0 };
        int r = input_begin(&in, f, size_bytes, err);

        if (r == 0)
                *ret = in.c;
        else
                checkpoint_destroy(in.c);
        return r;
}

int manifest_read(FILE *f, uint64_t size_bytes, uint32_t (*find)(void *ctx, const uint8_t *hash), void *ctx,
                  struct checkpoint **ret, struct rm_error *err) {
        struct input in = { .find = find, .ctx = ctx };
        int r = input_begin(&in, f, size_bytes, err);

        while (r == 0 && !in.ended)
                r = record_next(&in);
        if (r == 0)
                *ret = in.c;
        else
                checkpoint_destroy(in.c);
        return r;
}
