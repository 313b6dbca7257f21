#include "daemon/capsule/init/criu/image_identity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/compare.h"
#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/criu_images/fields.h"

/* Numbers of fields in CRIU's messages. */
enum {
        CORE_THREAD = 5, /* core_entry */
        THREAD_CREDS = 10, /* thread_core_entry */
        THREAD_SECCOMP_MODE = 11,
        CREDS_UID = 1, /* creds_entry: user and group ids in turn, up to the file system's */
        CREDS_FSGID = 8,
        CREDS_INHERITABLE = 9, /* capabilities: two words each */
        CREDS_PERMITTED = 10,
        CREDS_EFFECTIVE = 11,
        CREDS_BOUNDING = 12,
        CREDS_SECUREBITS = 13,
        CREDS_GROUPS = 14,
        CREDS_NO_NEW_PRIVS = 18,
        CREDS_AMBIENT = 19,
        CREDS_NUMBERS = 20,
        MM_DUMPABLE = 15, /* mm_entry */
        DUMPABLE = 1,
        /* SECBIT_KEEP_CAPS, which a process without capabilities may set, and only CAP_SETPCAP
         * restore. Nothing comes of it: there are none to keep. */
        KEEP_CAPS = 1 << 4,
        ALL_BITS_BYTES = 6, /* of a word of capabilities: its key and 2^32 - 1 */
};

/* A thread as its image has it. */
struct credentials {
        struct identity identity;
        uint32_t securebits;
        unsigned seen[CREDS_NUMBERS]; /* how often each field is there */
        unsigned messages;
};

static int damaged(struct rm_error *error) {
        return error_set(error, -EBADMSG, "its image is damaged");
}

static uint64_t *set_of(struct identity *identity, uint64_t number) {
        switch (number) {
        case CREDS_INHERITABLE:
                return &identity->inheritable;
        case CREDS_PERMITTED:
                return &identity->permitted;
        case CREDS_EFFECTIVE:
                return &identity->effective;
        case CREDS_BOUNDING:
                return &identity->bounding;
        case CREDS_AMBIENT:
                return &identity->ambient;
        default:
                return NULL;
        }
}

static void add_group(struct identity *identity, uint32_t group) {
        identity->groups = xgrow(identity->groups, identity->n_groups, sizeof(*identity->groups));
        identity->groups[identity->n_groups++] = group;
}

/* False: there is more of it than there can be. */
static bool take_number(struct credentials *c, const struct criu_field *f) {
        unsigned before = c->seen[f->number]++;
        uint64_t *set = set_of(&c->identity, f->number);

        if (f->value > UINT32_MAX)
                return false;
        if (set) {
                *set |= before < 2 ? f->value << (32 * before) : 0;
                return before < 2;
        }
        if (f->number == CREDS_GROUPS) {
                add_group(&c->identity, (uint32_t) f->value);
                return true;
        }
        if (f->number >= CREDS_UID && f->number <= CREDS_FSGID)
                (f->number % 2 == 1 ? c->identity.uids : c->identity.gids)[(f->number - 1) / 2] = (uint32_t) f->value;
        else if (f->number == CREDS_SECUREBITS)
                c->securebits = (uint32_t) f->value;
        else if (f->number == CREDS_NO_NEW_PRIVS)
                c->identity.no_new_privs = (uint32_t) f->value;
        return before == 0;
}

static bool take_credentials(struct credentials *c, struct criu_cursor creds) {
        struct criu_field f;

        c->messages++;
        while (criu_next_field(&creds, &f))
                if (f.varint && f.number < CREDS_NUMBERS && !take_number(c, &f))
                        return false;
        for (unsigned number = CREDS_UID; number <= CREDS_FSGID; number++)
                if (c->seen[number] != 1)
                        return false;
        for (unsigned number = CREDS_INHERITABLE; number <= CREDS_BOUNDING; number++)
                if (c->seen[number] != 2)
                        return false;
        return criu_all_read(&creds) && c->seen[CREDS_SECUREBITS] == 1;
}

static bool take_thread(struct credentials *c, struct criu_cursor thread) {
        struct criu_field f;

        while (criu_next_field(&thread, &f)) {
                if (f.number == THREAD_SECCOMP_MODE && f.varint)
                        c->identity.seccomp = (uint32_t) f.value;
                if (f.number == THREAD_CREDS && (f.varint || !take_credentials(c, f.bytes)))
                        return false;
        }
        return criu_all_read(&thread) && c->messages == 1;
}

/* 1: it has any; 0: a zombie's; or -EBADMSG. */
static int take_core(struct credentials *c, uint8_t *image, size_t size_bytes) {
        struct criu_cursor entries, core;
        struct criu_field f;
        int found = 0;

        if (!criu_image_open(image, size_bytes, CRIU_IMAGE_MAGIC_CORE, &entries) || !criu_next_entry(&entries, &core) ||
            !criu_all_read(&entries))
                return -EBADMSG;
        while (criu_next_field(&core, &f))
                if (f.number == CORE_THREAD && (f.varint || found++ > 0 || !take_thread(c, f.bytes)))
                        return -EBADMSG;
        return criu_all_read(&core) ? found : -EBADMSG;
}

static const Capsule__InventoryThread *find_thread(const Capsule__Inventory *inventory, pid_t tid) {
        for (size_t t = 0; t < inventory->n_tasks; t++)
                for (size_t i = 0; i < inventory->tasks[t]->n_threads; i++)
                        if (inventory->tasks[t]->threads[i]->tid == (uint32_t) tid)
                                return inventory->tasks[t]->threads[i];
        return NULL;
}

static int compare(const struct image_identity_scope *scope, struct credentials *c, pid_t tid, struct rm_error *error) {
        const Capsule__InventoryThread *thread = find_thread(scope->inventory, tid);
        struct identity *is = &c->identity;
        int r;

        if (!thread)
                return error_set(error, -EPERM, "did not exist when the group was frozen");
        if (is->n_groups > 0)
                qsort(is->groups, is->n_groups, sizeof(is->groups[0]), compare_u32);
        r = identity_check(is, scope->spec, error);
        if (r < 0)
                return -EPERM;
        if (is->no_new_privs != thread->no_new_privs)
                return error_set(error, -EPERM, "has no_new_privs %" PRIu32 ", had %" PRIu32, is->no_new_privs,
                                 thread->no_new_privs);
        if (is->seccomp != thread->seccomp)
                return error_set(error, -EPERM, "has seccomp mode %" PRIu32 ", had %" PRIu32, is->seccomp, thread->seccomp);
        if (scope->spec->uid == 0)
                return 0;
        if ((c->securebits & ~KEEP_CAPS) != (scope->securebits & ~KEEP_CAPS))
                return error_set(error, -EPERM, "has securebits %#" PRIx32 ", not %#" PRIx32, c->securebits, scope->securebits);
        if (is->bounding != thread->bounding)
                return error_set(error, -EPERM, "has the bounding set %" PRIx64 ", had %" PRIx64, is->bounding, thread->bounding);
        return 0;
}

int image_identity_check(const struct image_identity_scope *scope, uint8_t *image, size_t size_bytes, pid_t tid,
                         struct rm_error *error) {
        struct credentials c = { 0 };
        int r = take_core(&c, image, size_bytes);

        if (r > 0)
                r = compare(scope, &c, tid, error);
        else if (r < 0)
                damaged(error);
        identity_finish(&c.identity);
        if (r >= 0)
                return 0;
        (void) error_prefix(error, "thread %d in the image", (int) tid);
        return r;
}

int image_identity_check_memory(uint8_t *image, size_t size_bytes, struct rm_error *error) {
        struct criu_cursor entries, mm;
        struct criu_field f;
        bool seen = false;

        if (!criu_image_open(image, size_bytes, CRIU_IMAGE_MAGIC_MM, &entries) || !criu_next_entry(&entries, &mm) ||
            !criu_all_read(&entries))
                return damaged(error);
        while (criu_next_field(&mm, &f)) {
                if (f.number != MM_DUMPABLE)
                        continue;
                if (!f.varint || f.value != DUMPABLE)
                        return error_set(error, -EPERM, "a process in the image is not dumpable");
                seen = true;
        }
        return criu_all_read(&mm) && seen ? 0 : damaged(error);
}

/* ---- what CRIU could not set ---- */

size_t image_identity_lifted_bytes(size_t size_bytes) {
        return size_bytes + 2 * ALL_BITS_BYTES + 2 * CRIU_VARINT_BYTES;
}

static uint8_t *put_credentials(uint8_t *to, struct criu_cursor creds, const void *arg) {
        struct criu_cursor copy = { .at = to };
        struct criu_field f;

        copy.end = to = criu_put_without(to, creds, CREDS_BOUNDING);
        /* The first byte of a number has its lowest seven bits. */
        while (criu_next_field(&copy, &f))
                if (f.number == CREDS_SECUREBITS && f.varint)
                        *f.varint &= (uint8_t) ~KEEP_CAPS;
        for (int i = 0; i < 2; i++)
                to = criu_put_varint(criu_put_varint(to, CREDS_BOUNDING << 3 | CRIU_WIRE_VARINT), UINT32_MAX);
        return to;
}

static uint8_t *put_thread(uint8_t *to, struct criu_cursor thread, const void *arg) {
        return criu_put_with(to, thread, THREAD_CREDS, put_credentials, arg);
}

size_t image_identity_lift_bounding(uint8_t *image, size_t size_bytes, uint8_t *ret) {
        return criu_put_image(ret, image, size_bytes, CRIU_IMAGE_MAGIC_CORE, CORE_THREAD, put_thread, NULL);
}
