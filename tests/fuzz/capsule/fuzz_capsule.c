/* Feeds the decoders of the capsule's PID 1, and of rmd's side of it, with input from outside:
 * rm-agent's files, written by users, messages, also those of programs at their socket, and images
 * whose content a user has shaped. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/door.h"
#include "common/util.h"
#include "daemon/capsule/agent_request.h"
#include "daemon/capsule/init/criu/image_fixup.h"
#include "daemon/capsule/init/ranks/lost_ranks.h"
#include "daemon/capsule/init/ranks/parking.h"
#include "daemon/capsule/init/ranks/rank_message.h"
#include "daemon/capsule/init/ranks/ranks.h"
#include "daemon/capsule/spool.h"
#include "proto/capsule.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As a file of each kind. */
static void mend(const uint8_t *data, size_t size) {
        static const uint32_t kinds[] = { 0x56303138, 0x55053847 };

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                cleanup_free uint8_t *image = xcalloc(1, size + 8);

                memcpy(image + 4, &kinds[i], sizeof(kinds[i]));
                if (size > 0)
                        memcpy(image + 8, data, size);
                (void) image_fixup_timerfds(image, size + 8);
                (void) image_fixup_call(image, size + 8, 202);
        }
}

static bool send_nowhere(void *ctx, uint32_t rank, const void *data, size_t size) {
        (void) ctx;
        (void) data;
        if (size == 0 || size > DOOR_MESSAGE_BYTES)
                __builtin_trap();
        return rank % 2 == 0;
}

static void take(struct ranks *ranks, const uint8_t *data, size_t size) {
        Door__Request *request;

        if (rank_message_read(data, size, &request) == RANK_MESSAGE_STATE)
                (void) ranks_take(ranks, request);
        if (request)
                door__request__free_unpacked(request, NULL);
}

/* The input is two messages: one before a notice, and one that may answer it. */
static void knock(const uint8_t *data, size_t size) {
        struct ranks *ranks = ranks_create();
        Capsule__Progress progress = CAPSULE__PROGRESS__INIT;
        Capsule__Carry carry = CAPSULE__CARRY__INIT;
        const struct ranks_news news = { .event = DOOR__EVENT__EVENT_BEFORE_MOVE, .ask = true };
        size_t first = size / 2;

        take(ranks, data, size);
        take(ranks, data, first);
        ranks_sum(ranks, &progress);
        if (ranks_tell(ranks, &news, send_nowhere, NULL) > progress.listening)
                __builtin_trap();
        take(ranks, data + first, size - first);
        ranks_carry(ranks, &carry);
        ranks_set_carry(ranks, &carry);
        ranks_carry_finish(&carry);
        ranks_destroy(ranks);
}

static void expect_own(const Door__Resize *word, const Capsule__ResizeOrder *order) {
        if (word->rank < order->first || word->rank >= order->first + order->ranks)
                __builtin_trap();
}

/* A word of a rank of a group that grows, is parked, or has rank 0. */
static void change(const uint8_t *data, size_t size) {
        Door__Request *request = size <= DOOR_MESSAGE_BYTES ? door__request__unpack(NULL, size, data) : NULL;
        Capsule__ResizeOrder order = CAPSULE__RESIZE_ORDER__INIT;
        struct parking *parking = parking_create();
        Door__Resize word;

        order.first = size % 3 == 0 ? 0 : 4;
        order.ranks = 2;
        order.active = size % 5 == 0 ? 6 : 4;
        order.wanted = size % 2 == 0 ? 6 : 0;
        order.begun = size % 7 == 0 && order.wanted > 0;
        order.epoch = 3;
        order.freeze = order.first >= order.active;
        order.end = size % 11 == 0;
        parking_order(parking, &order);
        if (request && request->body_case == DOOR__REQUEST__BODY_RESIZE && parking_hear(parking, request->resize, &word))
                expect_own(&word, &order);
        for (size_t at = 0; parking_next(parking, &at, &word);)
                expect_own(&word, &order);
        if (parking_is_quiet(parking)) /* one of the two has said nothing */
                __builtin_trap();
        parking_destroy(parking);
        if (request)
                door__request__free_unpacked(request, NULL);
}

/* Each notice goes to one rank of the group, and has no more in it than fits. */
static void tell_all(struct lost_ranks *ranks) {
        uint32_t first = lost_ranks_first(ranks);
        Door__Loss word;

        for (size_t at = 0; lost_ranks_next(ranks, &at, &word);)
                if (word.rank < first || word.rank - first >= lost_ranks_count(ranks) || word.n_lost > LOST_RANKS_TOLD_MAX ||
                    word.from + word.n_lost > word.count)
                        __builtin_trap();
}

/* A word of a rank of a job that has lost others; then the other end of a move says the same of
 * it. */
static void endure(const uint8_t *data, size_t size) {
        Door__Request *request = size <= DOOR_MESSAGE_BYTES ? door__request__unpack(NULL, size, data) : NULL;
        Capsule__RankWatch *carry = capsule__rank_watch__unpack(NULL, size, data);
        Capsule__RankOrder order = CAPSULE__RANK_ORDER__INIT;
        struct lost_ranks *ranks = lost_ranks_create();
        uint32_t lost[] = { 9, 8, 7 };
        Door__Loss word;

        order.first = size % 3 == 0 ? 0 : 4;
        order.ranks = 2;
        order.lost = lost;
        order.n_lost = size % ARRAY_SIZE(lost);
        (void) lost_ranks_order(ranks, &order);
        for (pid_t pid = 0; pid < 4 && request && request->body_case == DOOR__REQUEST__BODY_LOSS; pid++)
                if (lost_ranks_hear(ranks, pid, request->loss, &word) && word.rank != request->loss->rank)
                        __builtin_trap();
        tell_all(ranks);
        if (carry) {
                lost_ranks_set_carry(ranks, carry);
                capsule__rank_watch__free_unpacked(carry, NULL);
        }
        tell_all(ranks);
        carry = lost_ranks_carry(ranks);
        if (carry)
                capsule__rank_watch__free_unpacked(carry, NULL);
        lost_ranks_destroy(ranks);
        if (request)
                door__request__free_unpacked(request, NULL);
}

/* Takes over the state of ranks that the other end of a move sends. */
static void take_over(const uint8_t *data, size_t size) {
        Capsule__Parking *carry = capsule__parking__unpack(NULL, size, data);
        struct parking *parking = parking_create();
        Door__Resize word;

        if (carry) {
                parking_set_carry(parking, carry);
                capsule__parking__free_unpacked(carry, NULL);
        }
        (void) parking_is_quiet(parking);
        for (size_t at = 0; parking_next(parking, &at, &word);)
                ;
        carry = parking_carry(parking);
        if (carry)
                capsule__parking__free_unpacked(carry, NULL);
        parking_destroy(parking);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *text = xcalloc(1, size + 1);
        struct agent_request request;
        Capsule__Request *message;
        Capsule__Event *event;
        char id[AGENT_ID_MAX];
        uint64_t offset;
        pid_t pid;

        mend(data, size);
        knock(data, size);
        change(data, size);
        take_over(data, size);
        endure(data, size);
        memcpy(text, data, size);
        (void) agent_file_parse(text, id, &pid);
        (void) spool_segment_parse(text, "stdout", &offset);
        if (agent_request_parse((const char *) data, size, &request) == 0 && (!*request.host || !*request.command))
                __builtin_trap();
        message = capsule__request__unpack(NULL, size, data);
        if (message)
                capsule__request__free_unpacked(message, NULL);
        event = capsule__event__unpack(NULL, size, data);
        if (event)
                capsule__event__free_unpacked(event, NULL);
        return 0;
}
