/* Feeds the decoders of the capsule's PID 1, and of rmd's side of it, with input from outside:
 * rm-agent's files, written by users, messages, also those of programs at their socket, and images
 * whose content a user has shaped. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/program_socket.h"
#include "common/util.h"
#include "daemon/capsule/agent_request.h"
#include "daemon/capsule/init/criu/image_fixup.h"
#include "daemon/capsule/init/ranks/lost_ranks.h"
#include "daemon/capsule/init/ranks/parking_state.h"
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
        if (size == 0 || size > PROGRAM_SOCKET_MESSAGE_BYTES)
                __builtin_trap();
        return rank % 2 == 0;
}

static void take(struct ranks *ranks, const uint8_t *data, size_t size) {
        Program__Request *request;

        if (rank_message_read(data, size, &request) == RANK_MESSAGE_STATE)
                (void) ranks_take(ranks, request, size);
        if (request)
                program__request__free_unpacked(request, NULL);
}

/* The input is two messages: one before a notice, and one that may answer it. */
static void knock(const uint8_t *data, size_t size) {
        struct ranks *ranks = ranks_create();
        Capsule__Progress progress = CAPSULE__PROGRESS__INIT;
        Capsule__SavedState saved_state = CAPSULE__SAVED_STATE__INIT;
        const struct ranks_news news = { .event = PROGRAM__EVENT__EVENT_BEFORE_MOVE, .ask = true };
        size_t first = size / 2;

        take(ranks, data, size);
        take(ranks, data, first);
        ranks_sum(ranks, size, &progress);
        if (ranks_report(ranks, &news, send_nowhere, NULL) > progress.listening)
                __builtin_trap();
        take(ranks, data + first, size - first);
        ranks_saved_state(ranks, &saved_state);
        ranks_set_saved_state(ranks, &saved_state);
        ranks_saved_state_finish(&saved_state);
        ranks_destroy(ranks);
}

static void expect_own(const Program__Resize *word, const Capsule__ResizeOrder *order) {
        if (word->rank < order->first || word->rank >= order->first + order->ranks)
                __builtin_trap();
}

/* A word of a rank of a group that grows, is parked, or has rank 0. */
static void change(const uint8_t *data, size_t size) {
        Program__Request *request = size <= PROGRAM_SOCKET_MESSAGE_BYTES ? program__request__unpack(NULL, size, data) : NULL;
        Capsule__ResizeOrder order = CAPSULE__RESIZE_ORDER__INIT;
        struct parking *parking = parking_state_create();
        Program__Resize word;

        order.first = size % 3 == 0 ? 0 : 4;
        order.ranks = 2;
        order.active = size % 5 == 0 ? 6 : 4;
        order.requested = size % 2 == 0 ? 6 : 0;
        order.begun = size % 7 == 0 && order.requested > 0;
        order.epoch = 3;
        order.freeze = order.first >= order.active;
        order.end = size % 11 == 0;
        parking_state_order(parking, &order);
        if (request && request->body_case == PROGRAM__REQUEST__BODY_RESIZE &&
            parking_state_receive(parking, request->resize, &word))
                expect_own(&word, &order);
        for (size_t at = 0; parking_state_next(parking, &at, &word);)
                expect_own(&word, &order);
        if (parking_state_is_quiet(parking)) /* one of the two has said nothing */
                __builtin_trap();
        parking_state_destroy(parking);
        if (request)
                program__request__free_unpacked(request, NULL);
}

/* Each notice goes to one rank of the group, and has no more in it than fits. */
static void report_all(struct lost_ranks *ranks) {
        uint32_t first = lost_ranks_first(ranks);
        Program__Loss word;

        for (size_t at = 0; lost_ranks_next(ranks, &at, &word);)
                if (word.rank < first || word.rank - first >= lost_ranks_count(ranks) || word.n_lost > LOST_RANKS_REPORTED_MAX ||
                    word.from + word.n_lost > word.count)
                        __builtin_trap();
}

/* A word of a rank of a job that has lost others; then the other end of a move says the same of
 * it. */
static void endure(const uint8_t *data, size_t size) {
        Program__Request *request = size <= PROGRAM_SOCKET_MESSAGE_BYTES ? program__request__unpack(NULL, size, data) : NULL;
        Capsule__RankWatch *saved_state = capsule__rank_watch__unpack(NULL, size, data);
        Capsule__RankOrder order = CAPSULE__RANK_ORDER__INIT;
        struct lost_ranks *ranks = lost_ranks_create();
        uint32_t lost[] = { 9, 8, 7 };
        Program__Loss word;

        order.first = size % 3 == 0 ? 0 : 4;
        order.ranks = 2;
        order.lost = lost;
        order.n_lost = size % ARRAY_SIZE(lost);
        (void) lost_ranks_order(ranks, &order);
        for (pid_t pid = 0; pid < 4 && request && request->body_case == PROGRAM__REQUEST__BODY_LOSS; pid++)
                if (lost_ranks_receive(ranks, pid, request->loss, &word) && word.rank != request->loss->rank)
                        __builtin_trap();
        report_all(ranks);
        if (saved_state) {
                lost_ranks_set_saved_state(ranks, saved_state);
                capsule__rank_watch__free_unpacked(saved_state, NULL);
        }
        report_all(ranks);
        saved_state = lost_ranks_saved_state(ranks);
        if (saved_state)
                capsule__rank_watch__free_unpacked(saved_state, NULL);
        lost_ranks_destroy(ranks);
        if (request)
                program__request__free_unpacked(request, NULL);
}

/* Takes over the state of ranks that the other end of a move sends. */
static void take_over(const uint8_t *data, size_t size) {
        Capsule__Parking *saved_state = capsule__parking__unpack(NULL, size, data);
        struct parking *parking = parking_state_create();
        Program__Resize word;

        if (saved_state) {
                parking_state_load(parking, saved_state);
                capsule__parking__free_unpacked(saved_state, NULL);
        }
        (void) parking_state_is_quiet(parking);
        for (size_t at = 0; parking_state_next(parking, &at, &word);)
                ;
        saved_state = parking_state_save(parking);
        if (saved_state)
                capsule__parking__free_unpacked(saved_state, NULL);
        parking_state_destroy(parking);
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
