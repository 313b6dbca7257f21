#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "common/message_body.h"
#include "common/util.h"
#include "daemon/capsule/private.h"

/* `seq` 0: no answer is wanted. */
static int send_request(struct capsule *capsule, Capsule__Request *request, uint64_t seq) {
        cleanup_free uint8_t *frame = NULL;
        size_t size;

        request->seq = seq;
        if (!capsule->connection)
                return -ENOTCONN;
        if (protobuf_c_message_get_packed_size(&request->base) > FRAME_MAX_CAPSULE_BYTES)
                return -E2BIG;
        frame = frame_pack(FRAME_MAGIC_CAPSULE, &request->base, &size);
        return bufferevent_write(capsule->connection, frame, size) < 0 ? -EIO : 0;
}

/* For a request that is not answered. */
static int send_body(struct capsule *capsule, const ProtobufCMessage *body) {
        Capsule__Request request = CAPSULE__REQUEST__INIT;

        message_set_body(&request.base, body);
        return send_request(capsule, &request, 0);
}

static int submit_request(struct capsule *capsule, Capsule__Request *request, struct answer answer) {
        struct pending *p;
        int r = send_request(capsule, request, capsule->last_seq + 1);

        if (r < 0)
                return r;
        p = xcalloc(1, sizeof(*p));
        p->seq = ++capsule->last_seq;
        p->answer = answer;
        STAILQ_INSERT_TAIL(&capsule->pendings, p, entry);
        return 0;
}

static int submit_for(struct capsule *capsule, const ProtobufCMessage *body, struct answer answer) {
        Capsule__Request request = CAPSULE__REQUEST__INIT;

        message_set_body(&request.base, body);
        return submit_request(capsule, &request, answer);
}

static int submit(struct capsule *capsule, const ProtobufCMessage *body, capsule_done_fn done, void *arg) {
        return submit_for(capsule, body, (struct answer) { .done = done, .arg = arg });
}

/* Submits a request without content: all members of the union are pointers to messages. */
static int submit_plain(struct capsule *capsule, Capsule__Request__OpCase op, struct answer answer) {
        Capsule__Request request = CAPSULE__REQUEST__INIT;
        Capsule__Empty empty = CAPSULE__EMPTY__INIT;

        request.op_case = op;
        request.freeze = &empty;
        return submit_request(capsule, &request, answer);
}

static size_t count(const char *const *strings) {
        size_t n = 0;

        while (strings && strings[n])
                n++;
        return n;
}

int capsule_run(struct capsule *capsule, const struct capsule_command *command, capsule_done_fn done, void *arg) {
        Capsule__Run run = CAPSULE__RUN__INIT;
        Capsule__Limit limits[RLIM_NLIMITS];
        Capsule__Limit *pointers[RLIM_NLIMITS];

        for (unsigned i = 0; i < RLIM_NLIMITS && command->rlimits; i++) {
                capsule__limit__init(&limits[i]);
                limits[i].resource = i;
                limits[i].soft = command->rlimits[i].rlim_cur;
                limits[i].hard = command->rlimits[i].rlim_max;
                pointers[i] = &limits[i];
        }
        run.argv = (char **) command->argv;
        run.n_argv = count(command->argv);
        run.env = (char **) command->env;
        run.n_env = count(command->env);
        run.cwd = (char *) command->cwd;
        run.umask = command->umask;
        run.nice = (uint32_t) command->nice;
        run.io_priority = command->io_priority;
        run.scheduling = command->scheduling;
        run.stdin_null = command->stdin_null;
        run.limits = pointers;
        run.n_limits = command->rlimits ? RLIM_NLIMITS : 0;
        return submit(capsule, &run.base, done, arg);
}

int capsule_signal(struct capsule *capsule, int signo, bool all, capsule_done_fn done, void *arg) {
        Capsule__Signal signal = CAPSULE__SIGNAL__INIT;

        signal.signo = signo;
        signal.all = all;
        return submit(capsule, &signal.base, done, arg);
}

int capsule_end_ranks(struct capsule *capsule, int signo, uint64_t wait_usec, capsule_done_fn done, void *arg) {
        Capsule__EndRanks end_ranks = CAPSULE__END_RANKS__INIT;

        end_ranks.signo = signo;
        end_ranks.wait_usec = wait_usec;
        return submit(capsule, &end_ranks.base, done, arg);
}

int capsule_freeze(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return submit_plain(capsule, CAPSULE__REQUEST__OP_FREEZE, (struct answer) { .done = done, .arg = arg });
}

int capsule_thaw(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return submit_plain(capsule, CAPSULE__REQUEST__OP_THAW, (struct answer) { .done = done, .arg = arg });
}

int capsule_cut(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return submit_plain(capsule, CAPSULE__REQUEST__OP_CUT, (struct answer) { .done = done, .arg = arg });
}

int capsule_open(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return submit_plain(capsule, CAPSULE__REQUEST__OP_OPEN, (struct answer) { .done = done, .arg = arg });
}

int capsule_criu_preload(struct capsule *capsule, capsule_done_fn done, void *arg) {
        return submit_plain(capsule, CAPSULE__REQUEST__OP_PRELOAD, (struct answer) { .done = done, .arg = arg });
}

_Static_assert((int) CAPSULE_MOVE == (int) CAPSULE__CAPTURE__CAPTURE_MOVE &&
                       (int) CAPSULE_CHECKPOINT == (int) CAPSULE__CAPTURE__CAPTURE_CHECKPOINT &&
                       (int) CAPSULE_DROP == (int) CAPSULE__CAPTURE__CAPTURE_DROP &&
                       (int) CAPSULE_PLACE == (int) CAPSULE__CAPTURE__CAPTURE_PLACE,
               "captures differ");

int capsule_announce(struct capsule *capsule, enum capsule_capture capture, uint64_t wait_usec, capsule_done_fn done, void *arg) {
        Capsule__Announce body = CAPSULE__ANNOUNCE__INIT;

        body.capture = (Capsule__Capture) capture;
        body.wait_usec = wait_usec;
        return submit(capsule, &body.base, done, arg);
}

int capsule_announce_over(struct capsule *capsule, enum capsule_capture capture) {
        Capsule__Announce body = CAPSULE__ANNOUNCE__INIT;

        body.capture = (Capsule__Capture) capture;
        body.over = true;
        return submit(capsule, &body.base, NULL, NULL);
}

int capsule_dump(struct capsule *capsule, const char *images_dir, bool stream, bool pages, uint64_t timeout_usec,
                 capsule_done_fn done, void *arg) {
        Capsule__Dump dump = CAPSULE__DUMP__INIT;

        dump.images_dir = (char *) images_dir;
        dump.stream = stream;
        dump.pages = pages;
        dump.timeout_usec = timeout_usec;
        return submit(capsule, &dump.base, done, arg);
}

int capsule_get_saved_state_and_files(struct capsule *capsule, const char *files_dir, uint64_t max_bytes,
                                      capsule_saved_state_fn done, void *arg) {
        Capsule__GetSavedState body = CAPSULE__GET_SAVED_STATE__INIT;

        body.files_dir = (char *) files_dir;
        body.max_bytes = max_bytes;
        body.checkpoint = true;
        return submit_for(capsule, &body.base, (struct answer) { .saved_state = done, .arg = arg });
}

int capsule_get_saved_state(struct capsule *capsule, capsule_saved_state_fn done, void *arg) {
        Capsule__GetSavedState body = CAPSULE__GET_SAVED_STATE__INIT;

        return submit_for(capsule, &body.base, (struct answer) { .saved_state = done, .arg = arg });
}

int capsule_get_flows(struct capsule *capsule, capsule_flows_fn done, void *arg) {
        return submit_plain(capsule, CAPSULE__REQUEST__OP_GET_FLOWS, (struct answer) { .flows = done, .arg = arg });
}

int capsule_get_rank_ends(struct capsule *capsule, capsule_rank_ends_fn done, void *arg) {
        return submit_plain(capsule, CAPSULE__REQUEST__OP_GET_RANK_ENDS, (struct answer) { .rank_ends = done, .arg = arg });
}

int capsule_restore_prepare(struct capsule *capsule, const void *saved_state, size_t size, capsule_done_fn done, void *arg) {
        Capsule__RestorePrepare prepare = CAPSULE__RESTORE_PREPARE__INIT;
        Capsule__SavedState *unpacked = NULL;
        int r;

        if (saved_state) {
                unpacked = size <= CAPSULE_SAVED_STATE_MAX ? capsule__saved_state__unpack(NULL, size, saved_state) : NULL;
                if (!unpacked)
                        return -EBADMSG;
        }
        prepare.saved_state = unpacked;
        r = submit(capsule, &prepare.base, done, arg);
        capsule__saved_state__free_unpacked(unpacked, NULL);
        return r;
}

int capsule_restore(struct capsule *capsule, const char *images_dir, bool pages, uint64_t timeout_usec, capsule_done_fn done,
                    void *arg) {
        Capsule__Restore body = CAPSULE__RESTORE__INIT;

        body.images_dir = (char *) images_dir;
        body.pages = pages;
        body.timeout_usec = timeout_usec;
        return submit(capsule, &body.base, done, arg);
}

int capsule_restore_back(struct capsule *capsule, const char *images_dir, bool pages, const struct capsule_rollback *rollback,
                         uint64_t timeout_usec, capsule_done_fn done, void *arg) {
        Capsule__Restore body = CAPSULE__RESTORE__INIT;

        body.images_dir = (char *) images_dir;
        body.pages = pages;
        body.rollback = true;
        body.other_files = rollback->other_files;
        body.left_ago_usec = rollback->left_ago_usec;
        body.timeout_usec = timeout_usec;
        return submit(capsule, &body.base, done, arg);
}

int capsule_input(struct capsule *capsule, uint64_t offset, const void *data, size_t size, capsule_done_fn done, void *arg) {
        Capsule__Input input = CAPSULE__INPUT__INIT;

        input.offset = offset;
        input.data.data = (uint8_t *) data;
        input.data.len = size;
        return submit(capsule, &input.base, done, arg);
}

int capsule_output_ack(struct capsule *capsule, int stream, uint64_t offset) {
        Capsule__OutputAck ack = CAPSULE__OUTPUT_ACK__INIT;

        ack.stream = (uint32_t) stream;
        ack.offset = offset;
        return send_body(capsule, &ack.base);
}

int capsule_resize_order(struct capsule *capsule, const Capsule__ResizeOrder *order) {
        return send_body(capsule, &order->base);
}

int capsule_rank_order(struct capsule *capsule, uint32_t first, uint32_t ranks, const uint32_t *lost, size_t n_lost, bool speaks) {
        Capsule__RankOrder body = CAPSULE__RANK_ORDER__INIT;

        body.first = first;
        body.ranks = ranks;
        body.lost = (uint32_t *) lost;
        body.n_lost = n_lost;
        body.speaks = speaks;
        return send_body(capsule, &body.base);
}

int capsule_renew_lease(struct capsule *capsule, uint64_t end_boot_usec) {
        Capsule__Lease lease = CAPSULE__LEASE__INIT;

        lease.end_boot_usec = end_boot_usec;
        return send_body(capsule, &lease.base);
}

int capsule_agent_reply(struct capsule *capsule, const char *id, int status, capsule_done_fn done, void *arg) {
        Capsule__AgentReply reply = CAPSULE__AGENT_REPLY__INIT;

        reply.id = (char *) id;
        reply.status = status;
        return submit(capsule, &reply.base, done, arg);
}
