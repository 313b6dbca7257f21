#include "daemon/transfer/standstill.h"

#include <errno.h>

#include "daemon/transfer/inflight.h"

#define REOPEN_USEC 20000U /* a program that is just being connected to needs a moment to accept it */
#define REOPENS_MAX 50U    /* then CRIU tries, and says what it thinks of it */
#define LOCK_TRIES_MAX 10U /* with pauses of 20, 40, ... ms: about a second */

bool standstill_again(struct standstill *s, int error, pid_t init, unsigned *ret_usec) {
        *ret_usec = REOPEN_USEC;
        if (error == 0)
                return inflight_connections(init) && s->reopens++ < REOPENS_MAX;
        if (error != -EAGAIN || s->lock_tries >= LOCK_TRIES_MAX)
                return false;
        *ret_usec = ++s->lock_tries * REOPEN_USEC;
        return true;
}
