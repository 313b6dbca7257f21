/* Which codec makes a stream arrive first, from measured rates. Pure: time and measurements are
 * arguments.
 *
 * For each byte to be sent, a codec costs the sender's processor what reading, encoding and sending
 * it takes, and the link what is left of it. The socket's queue lies between the two, so the slower
 * one counts, and a part of the other:
 *
 *   sender = (read + encode + send * ratio) / share
 *   time = max(sender, ratio / link) + part * min(sender, ratio / link)
 *
 * after Reghenzani 2016 (section 6), which found that a fixed codec (gzip) takes longer than it
 * saves for some programs, and Jeannot et al. 2002 (AdOC), which change the level of compression
 * while a transfer runs. The receiver is left out: decoding takes less than encoding, and what else
 * it does is seen as the link's rate. */
#ifndef RM_MOVER_CHOICE_H
#define RM_MOVER_CHOICE_H

#include <stdbool.h>

#include "daemon/image/codec.h"

/* An average over what was added last: older values count for half each time that `over` has
 * reached a limit. */
struct choice_rate {
        double amount;
        double over;
};

struct choice_codec {
        bool known;
        double nsec_per_byte;
        double ratio; /* encoded bytes for one byte */
};

struct choice {
        uint32_t codecs;                           /* that may be chosen beside none, IMAGE_CODEC_BIT of each */
        struct choice_codec codec[IMAGE_CODECS];
        struct choice_rate read;                   /* nsec, over bytes before the codec */
        struct choice_rate send;                   /* nsec, over bytes sent */
        struct choice_rate share; /* nsec of the processor, over nsec: of a core, when the sender has something to do */
        struct choice_rate link; /* bytes, over usec; 0: not known, see link_idle */
        bool link_idle; /* and it is no limit to what is sent now */
        uint64_t link_until_usec; /* an older rate is no longer believed in when the link is idle */
        double limit_bytes_per_sec; /* what may be sent; 0: anything */
        uint64_t sample_usec; /* not before */
        uint64_t unsampled_bytes;
};

void choice_init(struct choice *c, uint32_t codecs);

/* The work since the last call. */
struct choice_work {
        uint64_t payload_bytes; /* before the codec: to be sent now */
        uint64_t read_nsec; /* of the processor, for that; 0: not measured */
        uint64_t sent_bytes;
        uint64_t send_nsec;
        uint64_t send_wall_nsec;
        uint64_t busy_bytes; /* as in struct link_figures */
        uint64_t busy_usec;
        uint64_t idle_bytes;
};
void choice_add(struct choice *c, const struct choice_work *work, uint64_t now_usec);

/* A codec was tried: on a sample, or on a whole payload. `coded_bytes` 0: it saves nothing. */
void choice_encoded(struct choice *c, enum image_codec codec, uint64_t size_bytes, uint64_t coded_bytes, uint64_t nsec,
                    uint64_t wall_nsec);

/* Is it time to try all codecs on a sample? And so much time that took. */
bool choice_sample_due(const struct choice *c, uint64_t now_usec);
void choice_sampled(struct choice *c, uint64_t took_usec, uint64_t now_usec);

enum image_codec choice_best(const struct choice *c);

/* Writes the latest measurements to the debug log. */
void choice_log(const struct choice *c);

#endif
