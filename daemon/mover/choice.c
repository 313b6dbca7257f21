#include "daemon/mover/choice.h"

#include "common/log.h"

/* The assumed speed of a link before anything is known: 1 Gbit/s. */
#define LINK_GUESS_BYTES_PER_USEC 125.0
/* Less evidence does not show that a link is idle: it may all have fit into some queue on the
 * way. */
#define IDLE_LEAST_BYTES (64U << 10)
#define CHUNK_BYTES ((double) (1U << 20))
/* When the link is idle, a chunk is sent as it is now and then, to see what the link carries; so
 * that this costs some per cent at most, not before so many chunks would have passed. */
#define PROBE_EVERY_CHUNKS 50.0
#define PROBE_LEAST_USEC 20000.0
#define PROBE_MOST_USEC 10000000.0
/* A rate that was measured for a short time, such as while TCP starts slowly, is not believed in
 * for longer than this many times that time. */
#define BELIEF_PER_EVIDENCE 10.0
/* Samples: after so many bytes, and so that they take one per cent of the time at most. */
#define SAMPLE_EVERY_BYTES (1U << 20)
#define SAMPLE_PAUSE 100U
/* A codec must be better by so much than what needs less of the processor, which others may use. */
#define GAIN 0.98

/* The part of the shorter of the two times that is not hidden behind the longer one: ends that
 * share cores, a queue that runs empty. */
#define NOT_HIDDEN 0.1

#define KEEP_BYTES ((double) (8U << 20))
#define KEEP_NSEC 50e6
#define KEEP_LINK_USEC 50e3

static void rate_add(struct choice_rate *r, double amount, double over, double keep) {
        if (over <= 0)
                return;
        if (r->over > keep) {
                r->amount /= 2;
                r->over /= 2;
        }
        r->amount += amount;
        r->over += over;
}

static double rate_of(const struct choice_rate *r, double otherwise) {
        return r->over > 0 ? r->amount / r->over : otherwise;
}

void choice_init(struct choice *c, uint32_t codecs) {
        *c = (struct choice) { .codecs = codecs, .unsampled_bytes = UINT64_MAX / 2 };
        c->codec[IMAGE_CODEC_NONE] = (struct choice_codec) { .known = true, .ratio = 1 };
}

/* How long the rate of the link is believed in once the link is idle. */
static double belief_usec(const struct choice_rate *link) {
        double usec = link->amount > 0 ? PROBE_EVERY_CHUNKS * CHUNK_BYTES / rate_of(link, 1) : PROBE_MOST_USEC;

        if (usec < PROBE_LEAST_USEC)
                usec = PROBE_LEAST_USEC;
        if (usec > PROBE_MOST_USEC)
                usec = PROBE_MOST_USEC;
        return usec < BELIEF_PER_EVIDENCE * link->over ? usec : BELIEF_PER_EVIDENCE * link->over;
}

static void link_add(struct choice *c, const struct choice_work *work, uint64_t now_usec) {
        if (work->busy_usec > 0) {
                c->link_idle = false;
                rate_add(&c->link, (double) work->busy_bytes, (double) work->busy_usec, KEEP_LINK_USEC);
                c->link_until_usec = now_usec + (uint64_t) belief_usec(&c->link);
        } else if (work->idle_bytes >= IDLE_LEAST_BYTES && now_usec >= c->link_until_usec) {
                c->link_idle = true;
                c->link = (struct choice_rate) { 0 };
        }
}

void choice_add(struct choice *c, const struct choice_work *work, uint64_t now_usec) {
        if (work->read_nsec > 0)
                rate_add(&c->read, (double) work->read_nsec, (double) work->payload_bytes, KEEP_BYTES);
        rate_add(&c->send, (double) work->send_nsec, (double) work->sent_bytes, KEEP_BYTES);
        rate_add(&c->share, (double) work->send_nsec, (double) work->send_wall_nsec, KEEP_NSEC);
        link_add(c, work, now_usec);
        c->unsampled_bytes += work->payload_bytes;
}

void choice_encoded(struct choice *c, enum image_codec codec, uint64_t size_bytes, uint64_t coded_bytes, uint64_t nsec,
                    uint64_t wall_nsec) {
        struct choice_codec *k = &c->codec[codec];
        double ratio = coded_bytes > 0 ? (double) coded_bytes / (double) size_bytes : 1;
        double nsec_per_byte = (double) nsec / (double) size_bytes;

        rate_add(&c->share, (double) nsec, (double) wall_nsec, KEEP_NSEC);
        k->ratio = k->known ? (k->ratio + ratio) / 2 : ratio;
        k->nsec_per_byte = k->known ? (k->nsec_per_byte + nsec_per_byte) / 2 : nsec_per_byte;
        k->known = true;
}

bool choice_sample_due(const struct choice *c, uint64_t now_usec) {
        return c->unsampled_bytes >= SAMPLE_EVERY_BYTES && now_usec >= c->sample_usec;
}

void choice_sampled(struct choice *c, uint64_t took_usec, uint64_t now_usec) {
        c->sample_usec = now_usec + took_usec * SAMPLE_PAUSE;
        c->unsampled_bytes = 0;
}

/* Nanoseconds until a byte is at the receiver. */
static double expected_nsec(const struct choice *c, enum image_codec codec) {
        const struct choice_codec *k = &c->codec[codec];
        double share = rate_of(&c->share, 1);
        double link = rate_of(&c->link, c->link_idle ? 0 : LINK_GUESS_BYTES_PER_USEC) / 1000;
        double limit = c->limit_bytes_per_sec / 1e9;
        double sender = rate_of(&c->read, 0) + k->nsec_per_byte + rate_of(&c->send, 0) * k->ratio;
        double carried;

        if (share > 0 && share < 1)
                sender /= share;
        if (limit > 0 && (link <= 0 || limit < link))
                link = limit;
        carried = link > 0 ? k->ratio / link : 0;
        return carried > sender ? carried + NOT_HIDDEN * sender : sender + NOT_HIDDEN * carried;
}

enum image_codec choice_best(const struct choice *c) {
        enum image_codec best = IMAGE_CODEC_NONE;
        double best_nsec = expected_nsec(c, best);

        for (enum image_codec codec = IMAGE_CODEC_LZ4; codec < (enum image_codec) IMAGE_CODECS; codec++) {
                double nsec = expected_nsec(c, codec);

                if ((c->codecs & IMAGE_CODEC_BIT(codec)) && c->codec[codec].known && nsec < best_nsec * GAIN) {
                        best = codec;
                        best_nsec = nsec;
                }
        }
        return best;
}

void choice_log(const struct choice *c) {
        const struct choice_codec *lz4 = &c->codec[IMAGE_CODEC_LZ4];
        const struct choice_codec *zstd = &c->codec[IMAGE_CODEC_ZSTD];

        log_debug("codec: %s; link %.0f MB/s%s; share of a core %.2f; ns per byte: read %.2f, send %.2f, lz4 %.2f (to %.2f), zstd "
                  "%.2f (to %.2f)",
                  image_codec_name(choice_best(c)), rate_of(&c->link, 0), c->link_idle ? " (idle)" : "", rate_of(&c->share, 1),
                  rate_of(&c->read, 0), rate_of(&c->send, 0), lz4->nsec_per_byte, lz4->ratio, zstd->nsec_per_byte, zstd->ratio);
}
