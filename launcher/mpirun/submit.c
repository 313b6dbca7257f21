#include "launcher/mpirun/submit.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/util.h"
#include "launcher/client/client.h"

/* A daemon is restarted in less, and an update takes not much more. */
#define PATIENCE_USEC (UINT64_C(30) * 1000000U)
/* A cluster without a leader may be so for long. */
#define LEADER_PATIENCE_USEC (UINT64_C(10) * 1000000U)
#define AGAIN_MSEC 200
#define TOKEN_BYTES 16

static int set_token(char text[static 2 * TOKEN_BYTES + 1], struct rm_error *err) {
        uint8_t bytes[TOKEN_BYTES];

        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t) sizeof(bytes))
                return error_sys(err, -errno, "cannot get random bytes");
        for (size_t i = 0; i < sizeof(bytes); i++)
                (void) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
        return 0;
}

static int ask(const char *program, Rm__JobSpec *spec, int interrupt_fd, bool *ret_asked, uint64_t *ret_job, struct rm_error *err) {
        Rm__SubmitJob submit = RM__SUBMIT_JOB__INIT;
        Rm__LocalReply *reply = NULL;
        struct client *client = NULL;
        int r = client_open_interruptible(program, interrupt_fd, &client, err);

        if (r < 0)
                return r;
        *ret_asked = true;
        submit.spec = spec;
        r = client_request(client, &submit.base, RM__LOCAL_REPLY__BODY_OK, &reply, err);
        if (r == 0) {
                *ret_job = reply->ok->id;
                rm__local_reply__free_unpacked(reply, NULL);
        }
        client_close(client);
        return r;
}

/* How long after the first try another one is worth it. */
static uint64_t patience_usec(int r, bool asked) {
        switch (r) {
        case CLIENT_NO_DAEMON:
        case -ECANCELED: /* it is shutting down */
                return asked ? PATIENCE_USEC : 0;
        case -EHOSTUNREACH:
                return LEADER_PATIENCE_USEC;
        default:
                return 0;
        }
}

/* True when it was interrupted. */
static bool pause_before_retry(int interrupt_fd) {
        struct pollfd p = { .fd = interrupt_fd, .events = POLLIN };

        return poll(&p, 1, AGAIN_MSEC) > 0;
}

int submit_job(const char *program, Rm__JobSpec *spec, int interrupt_fd, uint64_t *ret_job, struct rm_error *err) {
        char token[2 * TOKEN_BYTES + 1] = "";
        char *before = spec->token;
        uint64_t start = now_usec();
        bool asked = false;
        bool said = false;
        int r = set_token(token, err);

        spec->token = token;
        while (r == 0) {
                struct rm_error why = { 0 };

                r = ask(program, spec, interrupt_fd, &asked, ret_job, &why);
                if (r == 0)
                        break;
                if (r == -EINTR || now_usec() - start >= patience_usec(r, asked)) {
                        *err = why;
                        break;
                }
                if (!said)
                        (void) fprintf(stderr, "%s: %s; trying again\n", program, error_text(&why));
                said = true;
                r = pause_before_retry(interrupt_fd) ? error_set(err, -EINTR, "interrupted") : 0;
        }
        spec->token = before;
        if (r == -EINTR)
                (void) error_set(err, r, "interrupted before rmd answered%s",
                                 asked ? ": the job may start all the same, see 'rmctl list-jobs'" : "");
        return r;
}
