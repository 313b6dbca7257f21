#include <stdlib.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/mover/mover.h"
#include "daemon/mover/pace.h"
#include "daemon/mover/priority.h"
#include "daemon/mover/store_stream.h"

struct verifier {
        struct control *control;
        const Rm__MoverVerify *setup;
        struct store *store;
        struct pace pace;
        uint64_t read_bytes; /* about: `poll_verify` is called for each MiB */
        uint64_t start_usec;
        Rm__MoverVerified result; /* owns its verdicts */
};

#define POLL_BYTES (UINT64_C(1) << 20)

static int poll_verify(void *ctx, const char *what, struct rm_error *err) {
        struct verifier *v = ctx;
        uint64_t wait_usec;
        int r = control_check(v->control, err);

        v->read_bytes += POLL_BYTES;
        control_send_progress(v->control, v->read_bytes, 0, now_usec() - v->start_usec, what);
        while (r == 0 && (wait_usec = pace_wait_usec(&v->pace, v->read_bytes, now_usec())) > 0) {
                struct pollfd control_fd;

                r = control_poll(v->control, &control_fd, 1, (int) (wait_usec / 1000 + 1), err);
                r = r < 0 ? r : 0;
        }
        return r;
}

/* True of errors that a second reading would not mend: damage, and blocks that the disk does not
 * give back. */
static bool is_damage(int code) {
        return code == -EBADMSG || code == -ENODATA || code == -EIO;
}

static void verdict_add(struct verifier *v, uint64_t checkpoint, const struct rm_error *err) {
        Rm__MoverVerdict *verdict = xcalloc(1, sizeof(*verdict));

        rm__mover_verdict__init(verdict);
        verdict->checkpoint = checkpoint;
        verdict->code = err->code;
        verdict->text = xstrdup(err->code < 0 ? error_text(err) : "");
        v->result.verdicts = xgrow(v->result.verdicts, v->result.n_verdicts, sizeof(Rm__MoverVerdict *));
        v->result.verdicts[v->result.n_verdicts++] = verdict;
}

static int one(struct verifier *v, uint64_t checkpoint, struct rm_error *err) {
        struct rm_error damage = { 0 };
        int r = store_verify(v->store, checkpoint, poll_verify, v, &damage);

        /* The checkpoint was removed while it was read. */
        if (r == -ENOENT)
                return 0;
        if (r < 0 && !is_damage(r))
                return *err = damage, r;
        verdict_add(v, checkpoint, &damage);
        if (r < 0)
                log_warn("verify: %s: %s", v->setup->store->dir, error_text(&damage));
        return r < 0 ? store_remove(v->store, checkpoint, err) : 0;
}

static int run(struct verifier *v, struct rm_error *err) {
        cleanup_free uint64_t *numbers = NULL;
        struct priority priority = { 0 };
        size_t n = 0;
        int r = control_wait_setup(v->control, RM__MOVER_COMMAND__BODY_VERIFY, err);

        if (r < 0)
                return r;
        v->setup = v->control->setup->verify;
        v->start_usec = now_usec();
        v->pace.bytes_per_sec = v->setup->bytes_per_sec;
        priority_lower(&priority);
        r = fault_wait("mover.verify.open", err);
        if (r == 0)
                r = store_stream_open(v->setup->store, &v->store, err);
        if (r == 0)
                r = store_list(v->store, &numbers, &n, err);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = one(v, numbers[i], err);
        return r;
}

int mover_verify(struct control *control) {
        struct verifier v = { .control = control, .result = RM__MOVER_VERIFIED__INIT };
        struct rm_error err = { 0 };
        int r = run(&v, &err);

        if (r < 0) {
                control_send_failed(control, &err, false, false);
        } else {
                control_send_verified(control, &v.result);
        }
        for (size_t i = 0; i < v.result.n_verdicts; i++) {
                free(v.result.verdicts[i]->text);
                free(v.result.verdicts[i]);
        }
        free(v.result.verdicts);
        store_close(v.store);
        return r;
}
