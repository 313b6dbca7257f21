#include "launcher/mpirun/submit.h"

#include <inttypes.h>
#include <signal.h>
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
#define AGAIN_USEC 200000U
#define TOKEN_BYTES 16

static int set_token(char text[static 2 * TOKEN_BYTES + 1], struct rm_error *err) {
        uint8_t bytes[TOKEN_BYTES];

        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t) sizeof(bytes))
                return error_sys(err, -errno, "cannot get random bytes");
        for (size_t i = 0; i < sizeof(bytes); i++)
                (void) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
        return 0;
}

static int ask(const char *program, Rm__JobSpec *spec, bool *ret_asked, uint64_t *ret_job, struct rm_error *err) {
        Rm__SubmitJob submit = RM__SUBMIT_JOB__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;
        Rm__LocalReply *reply = NULL;
        struct client *client = NULL;
        int r = client_open(program, &client, err);

        if (r < 0)
                return r;
        *ret_asked = true;
        submit.spec = spec;
        request.body_case = RM__LOCAL_REQUEST__BODY_SUBMIT_JOB;
        request.submit_job = &submit;
        r = client_request(client, &request, RM__LOCAL_REPLY__BODY_OK, &reply, err);
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

static bool signal_waits(void) {
        sigset_t set;

        return sigpending(&set) == 0 && (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1);
}

int submit_job(const char *program, Rm__JobSpec *spec, uint64_t *ret_job, struct rm_error *err) {
        char token[2 * TOKEN_BYTES + 1] = "";
        char *before = spec->token;
        uint64_t start = now_usec();
        bool asked = false;
        bool said = false;
        int r = set_token(token, err);

        spec->token = token;
        while (r == 0) {
                struct rm_error why = { 0 };

                r = ask(program, spec, &asked, ret_job, &why);
                if (r == 0)
                        break;
                if (now_usec() - start >= patience_usec(r, asked)) {
                        *err = why;
                        break;
                }
                r = 0;
                if (!said)
                        (void) fprintf(stderr, "%s: %s; trying again\n", program, error_text(&why));
                said = true;
                if (signal_waits())
                        r = error_set(err, -EINTR, "interrupted while the job was being submitted: see 'rmctl list-jobs'");
                else
                        (void) usleep(AGAIN_USEC);
        }
        spec->token = before;
        return r;
}
