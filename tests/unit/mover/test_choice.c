/* The choice of a codec, in a simulated sender: a processor, a socket's queue, and a link of a
 * given rate that empties it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <stdint.h>

#include "common/util.h"
#include "daemon/mover/choice.h"

#define CHUNK_BYTES (1U << 20)
#define SAMPLE_BYTES (64U << 10)
#define RECORD_BYTES 16384
#define QUEUE_BYTES 2e6
#define MBIT 0.125 /* bytes a microsecond */
#define ALL (IMAGE_CODEC_BIT(IMAGE_CODEC_LZ4) | IMAGE_CODEC_BIT(IMAGE_CODEC_ZSTD))

/* The effect of codecs on some data: nanoseconds of a core for a byte, and the part that is left of
 * it. 1: not smaller. */
struct data {
        const char *name;
        double nsec[IMAGE_CODECS];
        double ratio[IMAGE_CODECS];
};

static const struct data text = { "text", { 0, 1.6, 2.7 }, { 1, 0.42, 0.27 } };
static const struct data doubles = { "doubles", { 0, 1.5, 3.5 }, { 1, 0.93, 0.75 } };
static const struct data noise = { "random", { 0, 0.2, 0.3 }, { 1, 1, 1 } };

struct sender {
        struct choice choice;
        double now_usec;
        double share; /* of a core that it gets */
        double link;  /* bytes a microsecond */
        double queue_bytes;
        uint64_t sent_bytes;
        uint64_t scan_usec, scan_sent_bytes, scan_acked_bytes; /* as link.c does it */
        struct choice_work work;
        unsigned chunks[IMAGE_CODECS];
};

static struct sender sender_make(double mbit_per_sec, uint32_t codecs) {
        struct sender s = { .now_usec = 1e6, .share = 1, .link = mbit_per_sec * MBIT };

        choice_init(&s.choice, codecs);
        return s;
}

static void pass(struct sender *s, double usec) {
        s->now_usec += usec;
        s->queue_bytes -= usec * s->link;
        if (s->queue_bytes < 0)
                s->queue_bytes = 0;
}

/* The nanoseconds of a core. */
static uint64_t compute(struct sender *s, double nsec) {
        pass(s, nsec / 1000 / s->share);
        return (uint64_t) nsec;
}

static void scan(struct sender *s) {
        uint64_t now = (uint64_t) s->now_usec;
        uint64_t acked_bytes = s->sent_bytes - (uint64_t) s->queue_bytes;

        if (s->queue_bytes > 0) {
                s->work.busy_bytes += acked_bytes - s->scan_acked_bytes;
                s->work.busy_usec += now - s->scan_usec;
        } else
                s->work.idle_bytes += s->sent_bytes - s->scan_sent_bytes;
        s->scan_usec = now;
        s->scan_sent_bytes = s->sent_bytes;
        s->scan_acked_bytes = acked_bytes;
}

static void encode(struct sender *s, const struct data *data, enum image_codec codec, double size_bytes) {
        uint64_t nsec = compute(s, data->nsec[codec] * size_bytes);
        uint64_t coded_bytes = data->ratio[codec] < 1 ? (uint64_t) (data->ratio[codec] * size_bytes) : 0;

        choice_encoded(&s->choice, codec, (uint64_t) size_bytes, coded_bytes, nsec, (uint64_t) ((double) nsec / s->share));
}

static enum image_codec choose(struct sender *s, const struct data *data) {
        double start_usec;

        scan(s);
        s->work.payload_bytes = CHUNK_BYTES;
        choice_add(&s->choice, &s->work, (uint64_t) s->now_usec);
        s->work = (struct choice_work) { 0 };
        if (choice_sample_due(&s->choice, (uint64_t) s->now_usec)) {
                start_usec = s->now_usec;
                for (enum image_codec codec = IMAGE_CODEC_LZ4; codec <= IMAGE_CODEC_ZSTD; codec++)
                        if (s->choice.codecs & IMAGE_CODEC_BIT(codec))
                                encode(s, data, codec, SAMPLE_BYTES);
                choice_sampled(&s->choice, (uint64_t) (s->now_usec - start_usec), (uint64_t) s->now_usec);
        }
        return choice_best(&s->choice);
}

static void send_record(struct sender *s, double size_bytes) {
        uint64_t nsec = compute(s, 0.5 * size_bytes);

        s->work.send_nsec += nsec;
        s->work.send_wall_nsec += (uint64_t) ((double) nsec / s->share);
        s->work.sent_bytes += (uint64_t) size_bytes;
        s->sent_bytes += (uint64_t) size_bytes;
        s->queue_bytes += size_bytes;
        if (s->queue_bytes > QUEUE_BYTES)
                pass(s, (s->queue_bytes - QUEUE_BYTES) / s->link);
}

/* `fixed` negative: by choice. */
static void send_chunk(struct sender *s, const struct data *data, int fixed) {
        enum image_codec codec;
        double size_bytes = CHUNK_BYTES;

        s->work.read_nsec += compute(s, 0.3 * size_bytes);
        codec = fixed < 0 ? choose(s, data) : (enum image_codec) fixed;
        s->chunks[codec]++;
        if (codec != IMAGE_CODEC_NONE) {
                encode(s, data, codec, size_bytes);
                size_bytes *= data->ratio[codec];
        }
        scan(s);
        for (double left = size_bytes; left > 0; left -= RECORD_BYTES)
                send_record(s, left < RECORD_BYTES ? left : RECORD_BYTES);
}

static void send_chunks(struct sender *s, const struct data *data, int fixed, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                send_chunk(s, data, fixed);
}

static double time_of(double mbit_per_sec, const struct data *data, int fixed) {
        struct sender s = sender_make(mbit_per_sec, ALL);

        send_chunks(&s, data, fixed, 256);
        return s.now_usec + s.queue_bytes / s.link - 1e6;
}

static void is_near_the_best_fixed_one(void **state) {
        static const double links[] = { 10, 100, 300, 1000, 2500, 5000, 10000, 40000 };
        static const struct data *const all[] = { &text, &doubles, &noise };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(links); i++)
                for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
                        double chosen = time_of(links[i], all[k], -1);
                        double best = time_of(links[i], all[k], IMAGE_CODEC_NONE);

                        for (int fixed = IMAGE_CODEC_LZ4; fixed <= IMAGE_CODEC_ZSTD; fixed++)
                                best = time_of(links[i], all[k], fixed) < best ? time_of(links[i], all[k], fixed) : best;
                        if (chosen > best * 1.05)
                                fail_msg("%s at %.0f Mbit/s: %.1f ms, the best fixed codec %.1f ms", all[k]->name, links[i],
                                         chosen / 1e3, best / 1e3);
                }
}

static void slow_links_get_zstd_and_fast_ones_nothing(void **state) {
        struct sender slow = sender_make(100, ALL), fast = sender_make(10000, ALL), random = sender_make(100, ALL);

        (void) state;
        send_chunks(&slow, &text, -1, 100);
        assert_true(slow.chunks[IMAGE_CODEC_ZSTD] > 95);
        send_chunks(&fast, &text, -1, 100);
        assert_true(fast.chunks[IMAGE_CODEC_NONE] > 90);
        send_chunks(&random, &noise, -1, 100);
        assert_int_equal(random.chunks[IMAGE_CODEC_NONE], 100);
}

static void only_what_the_peer_knows(void **state) {
        struct sender nothing = sender_make(100, 0), lz4 = sender_make(100, IMAGE_CODEC_BIT(IMAGE_CODEC_LZ4));

        (void) state;
        send_chunks(&nothing, &text, -1, 20);
        assert_int_equal(nothing.chunks[IMAGE_CODEC_NONE], 20);
        send_chunks(&lz4, &text, -1, 20);
        assert_int_equal(lz4.chunks[IMAGE_CODEC_ZSTD], 0);
        assert_true(lz4.chunks[IMAGE_CODEC_LZ4] > 15);
}

static unsigned count_of(struct sender *s, const struct data *data, enum image_codec codec, unsigned n) {
        unsigned before = s->chunks[codec];

        send_chunks(s, data, -1, n);
        return s->chunks[codec] - before;
}

static void the_choice_follows_the_data(void **state) {
        struct sender s = sender_make(100, ALL);

        (void) state;
        assert_true(count_of(&s, &text, IMAGE_CODEC_ZSTD, 50) > 45);
        (void) count_of(&s, &noise, IMAGE_CODEC_NONE, 20);
        assert_true(count_of(&s, &noise, IMAGE_CODEC_NONE, 50) > 45);
        (void) count_of(&s, &text, IMAGE_CODEC_ZSTD, 20);
        assert_true(count_of(&s, &text, IMAGE_CODEC_ZSTD, 50) > 45);
}

static void the_choice_follows_the_link(void **state) {
        struct sender s = sender_make(10000, ALL);

        (void) state;
        send_chunks(&s, &text, -1, 50);
        s.link = 100 * MBIT;
        send_chunks(&s, &text, -1, 20);
        assert_true(count_of(&s, &text, IMAGE_CODEC_ZSTD, 50) > 45);
        s.link = 10000 * MBIT;
        /* An idle link is tried again, but not at once. */
        send_chunks(&s, &text, -1, 2000);
        assert_true(count_of(&s, &text, IMAGE_CODEC_NONE, 50) > 40);
}

/* TCP starts slowly: a rate of the first milliseconds is not believed in for long. */
static void a_slow_start_is_forgotten(void **state) {
        static const double mbit_per_sec[] = { 1000, 2500, 4000 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(mbit_per_sec); i++) {
                struct sender s = sender_make(mbit_per_sec[i], ALL);

                send_chunks(&s, &text, -1, 2);
                s.link = 10000 * MBIT;
                send_chunks(&s, &text, -1, 20);
                assert_true(count_of(&s, &text, IMAGE_CODEC_NONE, 50) > 40);
        }
}

/* At 1 Gbit/s zstd is best for text, unless ranks have most of the core. */
static void the_choice_follows_the_cores(void **state) {
        struct sender alone = sender_make(700, ALL), crowded = sender_make(700, ALL);

        (void) state;
        assert_true(count_of(&alone, &text, IMAGE_CODEC_ZSTD, 100) > 80);
        crowded.share = 0.3;
        assert_true(count_of(&crowded, &text, IMAGE_CODEC_ZSTD, 100) < 20);
}

/* With [node] move_rate the link is idle, and yet a limit. */
static void a_limit_counts_as_the_link(void **state) {
        struct sender s = sender_make(40000, ALL);

        (void) state;
        s.choice.limit_bytes_per_sec = 10e6;
        assert_true(count_of(&s, &text, IMAGE_CODEC_ZSTD, 50) > 45);
        s.choice.limit_bytes_per_sec = 0;
        assert_true(count_of(&s, &text, IMAGE_CODEC_NONE, 50) > 45);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(is_near_the_best_fixed_one),   cmocka_unit_test(slow_links_get_zstd_and_fast_ones_nothing),
                cmocka_unit_test(only_what_the_peer_knows),     cmocka_unit_test(the_choice_follows_the_data),
                cmocka_unit_test(the_choice_follows_the_link),  cmocka_unit_test(a_slow_start_is_forgotten),
                cmocka_unit_test(the_choice_follows_the_cores), cmocka_unit_test(a_limit_counts_as_the_link),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
