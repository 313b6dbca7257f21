#include "daemon/store/pack.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <xxhash.h>
#include <zstd.h>

#include "common/util.h"
#include "daemon/image/codec.h"

struct pack_build {
        struct pack *pack;
        uint32_t frame; /* that is being filled; INDEX_NONE: none */
        int level;
        uint64_t limit_bytes; /* 0: none */
        ZSTD_CCtx *zstd;
        uint8_t *raw;
        uint8_t *out; /* a whole frame */
};

static void put_u16(uint8_t *p, uint16_t v) {
        v = htole16(v);
        memcpy(p, &v, sizeof(v));
}

static void put_u32(uint8_t *p, uint32_t v) {
        v = htole32(v);
        memcpy(p, &v, sizeof(v));
}

static void put_u64(uint8_t *p, uint64_t v) {
        v = htole64(v);
        memcpy(p, &v, sizeof(v));
}

static uint16_t get_u16(const uint8_t *p) {
        uint16_t v;

        memcpy(&v, p, sizeof(v));
        return le16toh(v);
}

static uint32_t get_u32(const uint8_t *p) {
        uint32_t v;

        memcpy(&v, p, sizeof(v));
        return le32toh(v);
}

static uint64_t get_u64(const uint8_t *p) {
        uint64_t v;

        memcpy(&v, p, sizeof(v));
        return le64toh(v);
}

/* ---- all packs ---- */

int packs_init(struct packs *p, struct rm_error *err) {
        uint64_t seed = 0;

        *p = (struct packs) { 0 };
        p->sha = EVP_MD_fetch(NULL, "SHA256", NULL);
        p->hasher = EVP_MD_CTX_new();
        p->coder = image_coder_create();
        for (size_t i = 0; i < PACK_CACHE_FRAMES; i++)
                p->cache[i].frame = INDEX_NONE;
        if (getrandom(&seed, sizeof(seed), 0) != (ssize_t) sizeof(seed))
                return error_sys(err, -errno, "get random numbers");
        index_init(&p->index, seed);
        return p->sha && p->hasher ? 0 : error_set(err, -ENOTSUP, "OpenSSL has no SHA-256");
}

static void pack_destroy(struct pack *pack) {
        cleanup_close_fd(&pack->fd);
        free(pack);
}

void packs_finish(struct packs *p) {
        packs_build_abort(p);
        for (size_t i = 0; i < p->n; i++)
                pack_destroy(p->list[i]);
        free(p->list);
        for (size_t i = 0; i < PACK_CACHE_FRAMES; i++)
                free(p->cache[i].raw);
        index_finish(&p->index);
        image_coder_destroy(p->coder);
        EVP_MD_CTX_free(p->hasher);
        EVP_MD_free(p->sha);
        *p = (struct packs) { 0 };
}

void packs_hash(struct packs *p, const void *data, size_t size_bytes, uint8_t ret[static INDEX_HASH_BYTES]) {
        /* Fails only where memory is out. */
        if (EVP_DigestInit_ex2(p->hasher, p->sha, NULL) != 1 || EVP_DigestUpdate(p->hasher, data, size_bytes) != 1 ||
            EVP_DigestFinal_ex(p->hasher, ret, NULL) != 1)
                abort();
}

struct pack *packs_find(const struct packs *p, uint64_t number) {
        for (size_t i = 0; i < p->n; i++)
                if (p->list[i]->number == number)
                        return p->list[i];
        return NULL;
}

static struct pack *pack_add(struct packs *p, uint64_t number, int fd) {
        struct pack *pack = xcalloc(1, sizeof(*pack));

        pack->number = number;
        pack->fd = fd;
        (void) snprintf(pack->name, sizeof(pack->name), "pack-%" PRIu64, number);
        p->list = xrealloc(p->list, (p->n + 1) * sizeof(*p->list));
        p->list[p->n++] = pack;
        return pack;
}

static void cache_clear(struct packs *p) {
        for (size_t i = 0; i < PACK_CACHE_FRAMES; i++)
                p->cache[i].frame = INDEX_NONE;
}

void packs_drop(struct packs *p, struct pack *pack) {
        size_t kept = 0;

        index_drop_pack(&p->index, pack);
        cache_clear(p); /* frames have other numbers now */
        for (size_t i = 0; i < p->n; i++)
                if (p->list[i] != pack)
                        p->list[kept++] = p->list[i];
        p->n = kept;
        pack_destroy(pack);
}

/* ---- reading ---- */

/* Reads as many bytes as there are, at most `size_bytes`; returns their number or negative
 * errno. */
static ssize_t read_at(int fd, void *data, size_t size_bytes, uint64_t offset) {
        size_t done = 0;

        while (done < size_bytes) {
                ssize_t n = pread(fd, (char *) data + done, size_bytes - done, (off_t) (offset + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t) n;
        }
        return (ssize_t) done;
}

/* Over the head and its entries, without the checksum's own bytes. */
static uint64_t head_checksum(const uint8_t *head, size_t n, uint64_t offset) {
        uint8_t copy[PACK_HEAD_MAX_BYTES];
        size_t size_bytes = PACK_HEAD_BYTES + n * PACK_ENTRY_BYTES;

        memcpy(copy, head, size_bytes);
        memset(copy + 24, 0, 8);
        return XXH3_64bits_withSeed(copy, size_bytes, offset);
}

/* Checks a head with `have_bytes` of the file. Returns the frame's size, 0: it is not one. */
static uint64_t head_check(const uint8_t *head, size_t have_bytes, uint64_t offset, uint64_t file_bytes) {
        size_t n = have_bytes >= PACK_HEAD_BYTES ? head[4] : 0, head_bytes = PACK_HEAD_BYTES + n * PACK_ENTRY_BYTES;
        uint32_t payload_bytes, raw_bytes, sum = 0;

        if (n == 0 || n > STORE_FRAME_BLOCKS || head_bytes > have_bytes || get_u32(head) != PACK_MAGIC ||
            get_u64(head + 24) != head_checksum(head, n, offset))
                return 0;
        payload_bytes = get_u32(head + 8);
        raw_bytes = get_u32(head + 12);
        for (size_t i = 0; i < n; i++) {
                uint16_t size_bytes = get_u16(head + PACK_HEAD_BYTES + i * PACK_ENTRY_BYTES + INDEX_HASH_BYTES);

                if (size_bytes == 0 || size_bytes > IMAGE_BLOCK_BYTES)
                        return 0;
                sum += size_bytes;
        }
        if (sum != raw_bytes || payload_bytes == 0 || payload_bytes > raw_bytes || head[5] >= IMAGE_CODECS ||
            (head[5] == IMAGE_CODEC_NONE && payload_bytes != raw_bytes) || payload_bytes > file_bytes - offset - head_bytes)
                return 0;
        return head_bytes + payload_bytes;
}

static int frame_learn(struct packs *p, struct pack *pack, const uint8_t *head, uint64_t offset, struct rm_error *err) {
        uint32_t frame = index_frame_add(&p->index, pack);

        if (frame == INDEX_NONE)
                return error_set(err, -EFBIG, "too many blocks");
        for (size_t i = 0; i < head[4]; i++) {
                const uint8_t *entry = head + PACK_HEAD_BYTES + i * PACK_ENTRY_BYTES;

                if (index_block_add(&p->index, frame, entry, get_u16(entry + INDEX_HASH_BYTES)) == INDEX_NONE)
                        return error_set(err, -EFBIG, "too many blocks");
        }
        p->index.frames[frame].codec = head[5];
        p->index.frames[frame].payload_bytes = get_u32(head + 8);
        p->index.frames[frame].checksum = get_u64(head + 16);
        p->index.frames[frame].offset = offset + PACK_HEAD_BYTES + (uint64_t) head[4] * PACK_ENTRY_BYTES;
        return 0;
}

int packs_add(struct packs *p, uint64_t number, int fd, struct rm_error *err) {
        struct pack *pack = pack_add(p, number, fd);
        uint8_t head[PACK_HEAD_MAX_BYTES];
        struct stat st;
        int r = 0;

        if (fstat(fd, &st) < 0)
                r = error_sys(err, -errno, "read %s", pack->name);
        else
                pack->file_bytes = (uint64_t) st.st_size;
        while (r == 0 && pack->size_bytes < pack->file_bytes) {
                ssize_t n = read_at(fd, head, sizeof(head), pack->size_bytes);
                uint64_t frame_bytes = n > 0 ? head_check(head, (size_t) n, pack->size_bytes, pack->file_bytes) : 0;

                /* A damaged disk: what is behind it cannot be found. */
                if (frame_bytes == 0)
                        break;
                r = frame_learn(p, pack, head, pack->size_bytes, err);
                pack->size_bytes += frame_bytes;
        }
        if (r == 0 && pack->size_bytes < pack->file_bytes) {
                pack->is_damaged = true;
                index_drop_pack(&p->index, pack);
                cache_clear(p);
        }
        if (r < 0)
                packs_drop(p, pack);
        return r;
}

static int damaged(struct pack *pack, uint64_t offset, const char *what, struct rm_error *err) {
        pack->is_damaged = true;
        return error_set(err, -EBADMSG, "%s is damaged: %s at byte %" PRIu64, pack->name, what, offset);
}

static int frame_decode(struct packs *p, const struct index_frame *f, const uint8_t *payload, uint8_t *raw) {
        if (XXH3_64bits(payload, f->payload_bytes) != f->checksum)
                return -EBADMSG;
        if (f->codec != IMAGE_CODEC_NONE)
                return image_decode(p->coder, f->codec, payload, f->payload_bytes, raw, f->raw_bytes);
        memcpy(raw, payload, f->raw_bytes);
        return 0;
}

static int frame_load(struct packs *p, const struct index_frame *f, uint8_t *raw, struct rm_error *err) {
        cleanup_free uint8_t *payload = xrealloc(NULL, f->payload_bytes);
        ssize_t n = read_at(f->pack->fd, payload, f->payload_bytes, f->offset);

        if (n < 0)
                return error_sys(err, (int) n, "read %s", f->pack->name);
        if ((size_t) n != f->payload_bytes || frame_decode(p, f, payload, raw) < 0)
                return damaged(f->pack, f->offset, "the contents", err);
        return 0;
}

static int frame_cached(struct packs *p, uint32_t frame, const uint8_t **ret_raw, struct rm_error *err) {
        struct pack_cached *oldest = &p->cache[0];
        int r;

        for (size_t i = 0; i < PACK_CACHE_FRAMES; i++) {
                struct pack_cached *c = &p->cache[i];

                if (c->frame == frame) {
                        c->used = ++p->cache_clock;
                        *ret_raw = c->raw;
                        return 0;
                }
                if (c->used < oldest->used)
                        oldest = c;
        }
        if (!oldest->raw)
                oldest->raw = xrealloc(NULL, PACK_FRAME_MAX_BYTES);
        oldest->frame = INDEX_NONE;
        r = frame_load(p, &p->index.frames[frame], oldest->raw, err);
        if (r < 0)
                return r;
        oldest->frame = frame;
        oldest->used = ++p->cache_clock;
        *ret_raw = oldest->raw;
        return 0;
}

int packs_read(struct packs *p, uint32_t block, uint8_t *ret, struct rm_error *err) {
        const struct index_block *b = &p->index.blocks[block];
        const struct index_frame *f = &p->index.frames[b->frame];
        uint32_t offset = index_block_offset(&p->index, b->frame, b->place);
        uint8_t hash[INDEX_HASH_BYTES];
        const uint8_t *raw = NULL;
        int r = 0;

        if (p->build && p->build->frame == b->frame)
                raw = p->build->raw;
        else
                r = frame_cached(p, b->frame, &raw, err);
        if (r < 0)
                return r;
        packs_hash(p, raw + offset, b->size_bytes, hash);
        if (memcmp(hash, b->hash, sizeof(hash)) != 0)
                return damaged(f->pack, f->offset, "a block has other contents", err);
        memcpy(ret, raw + offset, b->size_bytes);
        return 0;
}

int packs_read_frame(struct packs *p, uint32_t frame, struct rm_error *err) {
        const uint8_t *raw = NULL;

        return frame_cached(p, frame, &raw, err);
}

/* ---- making ---- */

void packs_build_begin(struct packs *p, uint64_t number, int fd, int level) {
        struct pack_build *b = xcalloc(1, sizeof(*b));

        assert(!p->build); /* a store makes one pack at a time */
        b->pack = pack_add(p, number, fd);
        b->frame = INDEX_NONE;
        b->level = level;
        b->raw = xrealloc(NULL, PACK_FRAME_MAX_BYTES);
        b->out = xrealloc(NULL, PACK_HEAD_MAX_BYTES + PACK_FRAME_MAX_BYTES);
        p->build = b;
}

static void build_free(struct packs *p) {
        (void) ZSTD_freeCCtx(p->build->zstd);
        free(p->build->raw);
        free(p->build->out);
        free(p->build);
        p->build = NULL;
}

void packs_build_abort(struct packs *p) {
        struct pack *pack = packs_built(p);

        if (!pack)
                return;
        build_free(p);
        packs_drop(p, pack);
}

struct pack *packs_built(const struct packs *p) {
        return p->build ? p->build->pack : NULL;
}

/* Into `out`, of fewer bytes than `size_bytes`; 0: it does not become smaller. */
static size_t payload_zstd(struct pack_build *b, uint8_t *out, size_t size_bytes) {
        size_t n;

        if (!b->zstd)
                b->zstd = ZSTD_createCCtx();
        n = b->zstd ? ZSTD_compressCCtx(b->zstd, out, size_bytes - 1, b->raw, size_bytes, b->level) : 0;
        return ZSTD_isError(n) ? 0 : n;
}

static void frame_encode(struct packs *p, struct index_frame *f, uint8_t *out) {
        struct pack_build *b = p->build;
        size_t n = 0;

        f->codec = b->level == 0 ? IMAGE_CODEC_LZ4 : IMAGE_CODEC_ZSTD;
        if (b->level == 0)
                n = image_encode(p->coder, IMAGE_CODEC_LZ4, b->raw, f->raw_bytes, out, f->raw_bytes - 1);
        else if (b->level > 0)
                n = payload_zstd(b, out, f->raw_bytes);
        f->payload_bytes = (uint32_t) n;
        if (n == 0) {
                f->codec = IMAGE_CODEC_NONE;
                f->payload_bytes = f->raw_bytes;
                memcpy(out, b->raw, f->raw_bytes);
        }
        f->checksum = XXH3_64bits(out, f->payload_bytes);
}

static void head_make(const struct packs *p, const struct index_frame *f, uint8_t *out, uint64_t offset) {
        memset(out, 0, PACK_HEAD_BYTES);
        put_u32(out, PACK_MAGIC);
        out[4] = f->n;
        out[5] = f->codec;
        put_u32(out + 8, f->payload_bytes);
        put_u32(out + 12, f->raw_bytes);
        put_u64(out + 16, f->checksum);
        for (size_t i = 0; i < f->n; i++) {
                const struct index_block *block = &p->index.blocks[f->blocks[i]];

                memcpy(out + PACK_HEAD_BYTES + i * PACK_ENTRY_BYTES, block->hash, INDEX_HASH_BYTES);
                put_u16(out + PACK_HEAD_BYTES + i * PACK_ENTRY_BYTES + INDEX_HASH_BYTES, block->size_bytes);
        }
        put_u64(out + 24, head_checksum(out, f->n, offset));
}

/* Checks the free space before each frame, since other programs write to the same disk, too. */
static int space_check(const struct pack_build *b, size_t more_bytes, struct rm_error *err) {
        struct statvfs fs;

        if (b->limit_bytes == 0)
                return 0;
        if (b->pack->size_bytes + more_bytes > b->limit_bytes)
                return error_set(err, -EDQUOT, "write %s: there is room for %" PRIu64 " bytes of this user's, and it needs more",
                                 b->pack->name, b->limit_bytes);
        if (fstatvfs(b->pack->fd, &fs) == 0 && fs.f_bavail < fs.f_blocks / STORE_RESERVE_SHARE)
                return error_set(err, -ENOSPC, "write %s: No space left on device but what is to stay free", b->pack->name);
        return 0;
}

static int frame_write(struct packs *p, struct rm_error *err) {
        struct pack_build *b = p->build;
        struct index_frame *f;
        size_t head_bytes;
        int r;

        if (b->frame == INDEX_NONE)
                return 0;
        f = &p->index.frames[b->frame];
        head_bytes = PACK_HEAD_BYTES + (size_t) f->n * PACK_ENTRY_BYTES;
        frame_encode(p, f, b->out + head_bytes);
        r = space_check(b, head_bytes + f->payload_bytes, err);
        if (r < 0)
                return r;
        head_make(p, f, b->out, b->pack->size_bytes);
        f->offset = b->pack->size_bytes + head_bytes;
        r = write_all(b->pack->fd, b->out, head_bytes + f->payload_bytes);
        if (r < 0)
                return error_sys(err, r, "write %s", b->pack->name);
        b->pack->size_bytes += head_bytes + f->payload_bytes;
        b->pack->file_bytes = b->pack->size_bytes;
        b->frame = INDEX_NONE;
        return 0;
}

static int block_add(struct packs *p, const void *data, size_t size_bytes, const uint8_t *hash, uint32_t *ret_block,
                     struct rm_error *err) {
        struct pack_build *b = p->build;
        int r;

        if (b->frame != INDEX_NONE && p->index.frames[b->frame].n == STORE_FRAME_BLOCKS) {
                r = frame_write(p, err);
                if (r < 0)
                        return r;
        }
        if (b->frame == INDEX_NONE)
                b->frame = index_frame_add(&p->index, b->pack);
        if (b->frame == INDEX_NONE)
                return error_set(err, -EFBIG, "too many blocks");
        memcpy(b->raw + p->index.frames[b->frame].raw_bytes, data, size_bytes);
        *ret_block = index_block_add(&p->index, b->frame, hash, (uint16_t) size_bytes);
        return *ret_block == INDEX_NONE ? error_set(err, -EFBIG, "too many blocks") : 0;
}

void packs_limit(struct packs *p, uint64_t bytes) {
        p->build->limit_bytes = bytes;
}

int packs_put(struct packs *p, const void *data, size_t size_bytes, uint32_t *ret_block, bool *ret_is_new, struct rm_error *err) {
        uint8_t hash[INDEX_HASH_BYTES];

        packs_hash(p, data, size_bytes, hash);
        *ret_block = index_find(&p->index, hash);
        *ret_is_new = *ret_block == INDEX_NONE || p->index.frames[p->index.blocks[*ret_block].frame].pack->is_damaged;
        return *ret_is_new ? block_add(p, data, size_bytes, hash, ret_block, err) : 0;
}

int packs_take_over(struct packs *p, uint32_t block, struct rm_error *err) {
        uint8_t data[IMAGE_BLOCK_BYTES], hash[INDEX_HASH_BYTES];
        size_t size_bytes = p->index.blocks[block].size_bytes;
        int r = packs_read(p, block, data, err);

        if (r < 0)
                return r;
        memcpy(hash, p->index.blocks[block].hash, sizeof(hash));
        return block_add(p, data, size_bytes, hash, &block, err);
}

int packs_build_end(struct packs *p, struct rm_error *err) {
        struct pack *pack = packs_built(p);
        int r = frame_write(p, err);

        if (r == 0 && fsync(pack->fd) < 0)
                r = error_sys(err, -errno, "write %s", pack->name);
        if (r == 0)
                build_free(p);
        return r;
}
