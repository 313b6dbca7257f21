#include "daemon/web/delta.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"

struct entry {
        char *key;
        unsigned char digest[SHA256_DIGEST_LENGTH];
        bool seen; /* in this pass */
        UT_hash_handle hh;
};

struct delta {
        struct entry *entries;
};

struct delta *delta_create(void) {
        return xcalloc(1, sizeof(struct delta));
}

static void entry_free(struct delta *delta, struct entry *entry) {
        HASH_DEL(delta->entries, entry);
        free(entry->key);
        free(entry);
}

void delta_destroy(struct delta *delta) {
        struct entry *entry, *next;

        if (!delta)
                return;
        HASH_ITER (hh, delta->entries, entry, next)
                entry_free(delta, entry);
        free(delta);
}

static void digest_of(const ProtobufCMessage *message, unsigned char ret[static SHA256_DIGEST_LENGTH]) {
        cleanup_free uint8_t *packed = xcalloc(1, protobuf_c_message_get_packed_size(message) + 1);
        size_t bytes = protobuf_c_message_pack(message, packed);

        (void) SHA256(packed, bytes, ret);
}

static struct entry *entry_of(struct delta *delta, const char *key) {
        struct entry *entry;

        HASH_FIND_STR(delta->entries, key, entry);
        if (entry)
                return entry;
        entry = xcalloc(1, sizeof(*entry));
        entry->key = xstrdup(key);
        HASH_ADD_KEYPTR(hh, delta->entries, entry->key, strlen(entry->key), entry);
        return entry;
}

bool delta_is_new(struct delta *delta, const char *key, const ProtobufCMessage *message) {
        struct entry *entry = entry_of(delta, key);
        unsigned char digest[SHA256_DIGEST_LENGTH];

        digest_of(message, digest);
        entry->seen = true;
        if (memcmp(entry->digest, digest, sizeof(digest)) == 0)
                return false;
        memcpy(entry->digest, digest, sizeof(digest));
        return true;
}

void delta_end_pass(struct delta *delta, void (*gone)(void *userdata, const char *key), void *userdata) {
        struct entry *entry, *next;

        HASH_ITER (hh, delta->entries, entry, next) {
                if (!entry->seen) {
                        gone(userdata, entry->key);
                        entry_free(delta, entry);
                } else {
                        entry->seen = false;
                }
        }
}
