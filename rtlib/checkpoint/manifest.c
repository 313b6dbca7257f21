#include "rtlib/checkpoint/manifest.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "common/util.h"

void portable_digest(const void *data, size_t size_bytes, uint8_t ret[static PORTABLE_DIGEST_BYTES]) {
        /* Fails only where memory is out. */
        if (EVP_Digest(data, size_bytes, ret, NULL, EVP_sha256(), NULL) != 1)
                abort();
}

bool portable_name_valid(const char *name) {
        size_t n = strnlen(name, PORTABLE_NAME_MAX_BYTES + 1);

        for (size_t i = 0; i < n; i++)
                if (name[i] < ' ' || name[i] > '~')
                        return false;
        return n > 0 && n <= PORTABLE_NAME_MAX_BYTES;
}

int manifest_pack(const Portable__Manifest *m, uint8_t **ret, size_t *ret_size, uint8_t *ret_digest, struct rm_error *err) {
        uint8_t *data;
        size_t n;

        if (protobuf_c_message_get_packed_size(&m->base) > PORTABLE_RECORD_MAX_BYTES)
                return error_set(err, -EFBIG, "there are too many arrays on too many ranks");
        data = frame_pack(PORTABLE_MAGIC, &m->base, &n);
        data = xrealloc(data, n + PORTABLE_DIGEST_BYTES);
        portable_digest(data, n, data + n);
        if (ret_digest)
                memcpy(ret_digest, data + n, PORTABLE_DIGEST_BYTES);
        *ret = data;
        *ret_size = n + PORTABLE_DIGEST_BYTES;
        return 0;
}

static int bad(struct rm_error *err, const char *what) {
        return error_set(err, -EBADMSG, "the manifest is damaged: %s", what);
}

struct rmrt_type manifest_type(const Portable__Array *array) {
        return (struct rmrt_type) { (enum rmrt_kind) array->kind, array->unit_bytes, array->units };
}

uint64_t manifest_piece_bytes(const Portable__Array *array, size_t rank) {
        struct rmrt_type type = manifest_type(array);

        return array->distribution == RMRT_REPLICATED && rank > 0 ? 0 : array->counts[rank] * type_element_bytes(&type);
}

bool manifest_has_sizes(const Portable__Manifest *m) {
        return m->version == PORTABLE_VERSION_SIZES;
}

uint64_t manifest_total_count(const Portable__Array *array) {
        uint64_t sum = 0;

        for (size_t i = 0; i < array->n_counts; i++)
                sum += array->counts[i];
        return sum;
}

static bool counts_valid(const Portable__Array *array, uint64_t element_bytes) {
        uint64_t left = PORTABLE_PIECE_MAX_BYTES / element_bytes;

        for (size_t i = 0; i < array->n_counts; i++) {
                if (array->distribution == RMRT_REPLICATED && array->counts[i] != array->counts[0])
                        return false;
                if (array->counts[i] > left)
                        return false;
                /* A replicated array is not the more for being on many ranks. */
                left -= array->distribution == RMRT_REPLICATED ? 0 : array->counts[i];
        }
        return true;
}

static int array_check(const Portable__Array *array, size_t n_ranks, struct rm_error *err) {
        struct rmrt_type type = manifest_type(array);

        if (!portable_name_valid(array->name))
                return bad(err, "an array with no name");
        if (!type_valid(&type) || type_element_bytes(&type) > TYPE_ELEMENT_MAX_BYTES || array->distribution > RMRT_PRIVATE)
                return bad(err, "an array of no known type");
        if (array->n_counts != n_ranks || !counts_valid(array, type_element_bytes(&type)))
                return bad(err, "an array of a size that cannot be");
        return 0;
}

static int by_name(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static int names_check(const Portable__Manifest *m, struct rm_error *err) {
        cleanup_free char **names = xcalloc(m->n_arrays + 1, sizeof(*names));

        for (size_t i = 0; i < m->n_arrays; i++)
                names[i] = m->arrays[i]->name;
        qsort(names, m->n_arrays, sizeof(*names), by_name);
        for (size_t i = 1; i < m->n_arrays; i++)
                if (strcmp(names[i - 1], names[i]) == 0)
                        return bad(err, "two arrays of one name");
        return 0;
}

static int manifest_check(const Portable__Manifest *m, struct rm_error *err) {
        int r = 0;

        if (m->version != PORTABLE_VERSION && m->version != PORTABLE_VERSION_SIZES)
                return error_set(err, -EBADMSG, "it is of format %u, and this program knows %u and %u", m->version,
                                 PORTABLE_VERSION, PORTABLE_VERSION_SIZES);
        if (m->number == 0 || m->previous >= m->number || m->previous_digest.len != (m->previous > 0 ? PORTABLE_DIGEST_BYTES : 0))
                return bad(err, "a number that cannot be");
        if (m->block_bytes < PORTABLE_BLOCK_MIN_BYTES || m->block_bytes > PORTABLE_BLOCK_MAX_BYTES)
                return bad(err, "blocks of a size that cannot be");
        if (m->n_files == 0 || m->n_files > PORTABLE_RANKS_MAX || m->n_arrays > PORTABLE_ARRAYS_MAX)
                return bad(err, "ranks or arrays that cannot be");
        for (size_t i = 0; i < m->n_files; i++)
                if (m->files[i]->digest.len != PORTABLE_DIGEST_BYTES)
                        return bad(err, "a file without digest");
        for (size_t i = 0; r == 0 && i < m->n_arrays; i++)
                r = array_check(m->arrays[i], m->n_files, err);
        return r == 0 ? names_check(m, err) : r;
}

int manifest_unpack(const uint8_t *data, size_t size_bytes, Portable__Manifest **ret, uint8_t *ret_digest, struct rm_error *err) {
        uint8_t digest[PORTABLE_DIGEST_BYTES];
        Portable__Manifest *m;
        uint32_t n = 0;
        int r;

        if (size_bytes < FRAME_HEADER_BYTES + PORTABLE_DIGEST_BYTES)
                return bad(err, "it is cut off");
        portable_digest(data, size_bytes - PORTABLE_DIGEST_BYTES, digest);
        if (memcmp(digest, data + size_bytes - PORTABLE_DIGEST_BYTES, PORTABLE_DIGEST_BYTES) != 0)
                return bad(err, "it has another digest");
        if (frame_header_read(data, PORTABLE_MAGIC, PORTABLE_RECORD_MAX_BYTES, &n) < 0 ||
            n != size_bytes - FRAME_HEADER_BYTES - PORTABLE_DIGEST_BYTES)
                return bad(err, "it is none");
        m = portable__manifest__unpack(NULL, n, data + FRAME_HEADER_BYTES);
        r = m ? manifest_check(m, err) : bad(err, "it cannot be read");
        if (r < 0) {
                if (m)
                        portable__manifest__free_unpacked(m, NULL);
                return r;
        }
        if (ret_digest)
                memcpy(ret_digest, digest, sizeof(digest));
        *ret = m;
        return 0;
}
