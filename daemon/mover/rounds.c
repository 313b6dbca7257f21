#include "daemon/mover/rounds.h"

bool rounds_another(struct rounds *r, uint64_t sent_bytes) {
        bool gained = r->before_bytes == 0 || sent_bytes <= r->before_bytes / 4 * 3;

        if (r->n++ == 0 && r->first_bytes == 0)
                r->first_bytes = sent_bytes;
        r->before_bytes = sent_bytes;
        return r->n < r->max && gained && sent_bytes > r->first_bytes / r->part;
}
