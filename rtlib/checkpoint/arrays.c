#include "rtlib/checkpoint/arrays.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

const struct array *arrays_find(const struct arrays *arrays, const char *name) {
        for (size_t i = 0; i < arrays->n; i++)
                if (strcmp(arrays->list[i].name, name) == 0)
                        return &arrays->list[i];
        return NULL;
}

uint64_t array_bytes(const struct array *array) {
        return array->count * type_element_bytes(&array->type);
}

uint64_t array_piece_bytes(const struct array *array, int rank) {
        return array->distribution == RMRT_REPLICATED && rank > 0 ? 0 : array_bytes(array);
}

static int array_check(const struct arrays *arrays, const struct array *array, struct rm_error *err) {
        if (!array->name || !portable_name_valid(array->name))
                return error_set(err, -EINVAL, "an array needs a name of up to %u printable characters", PORTABLE_NAME_MAX_BYTES);
        if (!array->ptr && array->count > 0)
                return error_set(err, -EINVAL, "array '%s' has no address", array->name);
        if (array->distribution > RMRT_PRIVATE)
                return error_set(err, -EINVAL, "array '%s': there is no such distribution", array->name);
        if (!type_valid(&array->type) || type_element_bytes(&array->type) > TYPE_ELEMENT_MAX_BYTES)
                return error_set(err, -ENOTSUP, "array '%s': elements of this type cannot be saved", array->name);
        if (array->count > PORTABLE_PIECE_MAX_BYTES / type_element_bytes(&array->type))
                return error_set(err, -EFBIG, "array '%s' has too many elements", array->name);
        if (arrays->n == PORTABLE_ARRAYS_MAX && !arrays_find(arrays, array->name))
                return error_set(err, -EFBIG, "there are %u arrays already", PORTABLE_ARRAYS_MAX);
        return 0;
}

int arrays_register(struct arrays *arrays, const struct array *array, struct rm_error *err) {
        int r = array_check(arrays, array, err);
        struct array *found;
        char *name;

        if (r < 0)
                return r;
        found = (struct array *) arrays_find(arrays, array->name);
        if (!found) {
                arrays->list = xrealloc(arrays->list, (arrays->n + 1) * sizeof(*arrays->list));
                found = &arrays->list[arrays->n++];
                found->name = xstrdup(array->name);
        }
        name = found->name;
        *found = *array;
        found->name = name;
        return 0;
}

int arrays_unregister(struct arrays *arrays, const char *name) {
        struct array *found = (struct array *) arrays_find(arrays, name);

        if (!found)
                return -ENOENT;
        free(found->name);
        memmove(found, found + 1, (arrays->n - 1 - (size_t) (found - arrays->list)) * sizeof(*found));
        arrays->n--;
        return 0;
}

void arrays_finish(struct arrays *arrays) {
        for (size_t i = 0; i < arrays->n; i++)
                free(arrays->list[i].name);
        free(arrays->list);
        *arrays = (struct arrays) { 0 };
}

static void add(EVP_MD_CTX *ctx, const void *data, size_t size_bytes) {
        if (EVP_DigestUpdate(ctx, data, size_bytes) != 1)
                abort(); /* only where memory is out */
}

void arrays_digest(const struct arrays *arrays, bool counts, uint8_t ret[static PORTABLE_DIGEST_BYTES]) {
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();

        if (!ctx || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
                abort();
        for (size_t i = 0; i < arrays->n; i++) {
                const struct array *a = &arrays->list[i];
                const uint64_t numbers[] = { a->type.kind, a->type.unit_bytes, a->type.units, a->distribution,
                                             counts || a->distribution == RMRT_REPLICATED ? a->count : 0 };

                add(ctx, a->name, strlen(a->name) + 1);
                add(ctx, numbers, sizeof(numbers));
        }
        if (EVP_DigestFinal_ex(ctx, ret, NULL) != 1)
                abort();
        EVP_MD_CTX_free(ctx);
}
