/* rmctl list-moves */
#include "launcher/rmctl/move.h"

#include <inttypes.h>

#include "common/util.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/pages.h"

/* Columns of the phases of moves, and of what went after them, have this or more: they are shown
 * with --wide. */
#define DETAILS 4

int move_list(struct call *call, uint64_t job, uint64_t since, Rm__LocalReply **ret_reply) {
        Rm__ListMoves list = RM__LIST_MOVES__INIT;

        list.job = job;
        list.since = since;
        return call_request_pages(call, &list.base, RM__LOCAL_REPLY__BODY_MOVES, ret_reply);
}

static const char *state_text(Rm__MoveState state) {
        static const char *const texts[] = { "RUNNING", "COMMITTED", "ABORTED", "DONE" };

        return (size_t) state < ARRAY_SIZE(texts) ? texts[state] : "?";
}

static char *figure(uint64_t usec) {
        return usec ? human_duration(usec) : NULL;
}

/* "zstd 3.4x": what was sent would have been so many times as much. NULL: not known. */
static char *codec_text(const Rm__Move *m) {
        static const char *const names[] = { NULL, "none", "lz4", "zstd" };
        const char *name = (size_t) m->codec < ARRAY_SIZE(names) ? names[m->codec] : "?";

        if (!name)
                return NULL;
        if (m->codec == RM__MOVE_CODEC__MOVE_CODEC_NONE || m->image_bytes == 0)
                return xstrdup(name);
        return xasprintf("%s %.1fx", name, (double) (m->image_bytes + m->saved_bytes) / (double) m->image_bytes);
}

static void table_moves(struct call *call, const Rm__MoveList *moves) {
        static const struct column columns[] = {
                { "MOVE", true, false, 0 },     { "JOB", true, false, 0 },     { "GROUP", true, false, 0 },
                { "FROM", false, true, 0 },     { "TO", false, true, 0 },      { "STATE", false, false, 0 },
                { "STARTED", false, false, 3 }, { "FREEZE", true, false, 0 },  { "DUMP", true, false, 5 },
                { "SEND", true, false, 5 },     { "RESTORE", true, false, 5 }, { "COMMIT", true, false, 6 },
                { "FILL", true, false, 4 },     { "MEMORY", true, false, 2 },  { "SENT", true, false, 0 },
                { "ROUNDS", true, false, 7 },   { "SLOWED", true, false, 7 },  { "LAST", true, false, 4 },
                { "LATER", true, false, 4 },    { "WAIT", true, false, 7 },    { "CODEC", false, false, 2 },
                { "REASON", false, true, 0 },
        };
        struct table *t = table_create(columns, ARRAY_SIZE(columns));
        uint64_t now = now_real_usec();

        if (!call_flag(call, "wide"))
                table_leave_out(t, DETAILS);
        for (size_t i = 0; i < moves->n_moves; i++) {
                const Rm__Move *m = moves->moves[i];
                const char *state = state_text(m->state);

                table_printf(t, "%" PRIu64, m->id);
                table_printf(t, "%" PRIu64, m->job);
                if (m->capsule < 0)
                        table_cell(t, "head");
                else
                        table_printf(t, "%d", m->capsule);
                table_cell(t, m->from);
                table_cell(t, m->to);
                table_colour(t, state, colour_of_state(state));
                table_take(t, human_ago(m->start_usec, now));
                table_take(t, figure(m->freeze_usec));
                table_take(t, figure(m->dump_usec));
                table_take(t, figure(m->transfer_usec));
                table_take(t, figure(m->restore_usec));
                table_take(t, figure(m->commit_usec));
                table_take(t, figure(m->fill_usec));
                table_take(t, m->memory_bytes ? human_bytes(m->memory_bytes) : NULL);
                table_take(t, m->image_bytes ? human_bytes(m->image_bytes) : NULL);
                table_take(t, m->ahead_rounds ? xasprintf("%u", m->ahead_rounds) : NULL);
                table_take(t, m->slow_usec ? figure(m->slow_usec) : NULL);
                table_take(t, m->tracked ? human_bytes(m->last_bytes) : NULL);
                table_take(t, m->later_bytes ? human_bytes(m->later_bytes) : NULL);
                table_take(t, m->later_faults ? xasprintf("%.1f ms", (double) m->later_p99_usec / 1e3) : NULL);
                table_take(t, codec_text(m));
                table_cell(t, *m->error ? m->error : *m->waiting ? m->waiting : m->reason);
        }
        call_print_table(call, t);
}

static int run_list(struct call *call) {
        const char *job_text = call_flag(call, "job");
        const char *since_text = call_flag(call, "since");
        Rm__LocalReply *reply = NULL;
        int64_t job = 0;
        int64_t since = 0;
        int r;

        if (job_text && parse_i64(job_text, 1, INT64_MAX, &job) < 0)
                return call_usage(call, "--job: '%s' is not a job's number", job_text);
        if (since_text && parse_i64(since_text, 0, INT64_MAX, &since) < 0)
                return call_usage(call, "--since: '%s' is not a move's number", since_text);
        r = move_list(call, (uint64_t) job, (uint64_t) since, &reply);
        if (r < 0)
                return r;
        if (call->json)
                call_print_list("moves", (ProtobufCMessage *const *) reply->moves->moves, reply->moves->n_moves);
        else
                table_moves(call, reply->moves);
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

static void show_progress(const Rm__Move *m) {
        cleanup_free char *since = human_ago(m->start_usec, now_real_usec());
        cleanup_free char *text = xasprintf("%s to %s, begun %s%s%s", m->from, m->to, since, *m->waiting ? ": " : "", m->waiting);

        call_progress(text);
}

struct awaited {
        uint64_t job, move;
};

/* Looks once: 1 when it is committed, 0 when it is under way. */
static int scan(struct call *call, void *arg) {
        const struct awaited *awaited = arg;
        Rm__LocalReply *reply = NULL;
        int r = move_list(call, awaited->job, 0, &reply);

        for (size_t i = 0; r == 0 && i < reply->moves->n_moves; i++) {
                const Rm__Move *m = reply->moves->moves[i];

                if (m->id != awaited->move)
                        continue;
                if (m->state == RM__MOVE_STATE__MOVE_COMMITTED || m->state == RM__MOVE_STATE__MOVE_DONE)
                        r = 1;
                else if (m->state == RM__MOVE_STATE__MOVE_ABORTED)
                        r = error_set(&call->err, -ECANCELED, "the move from %s to %s was aborted: %s", m->from, m->to, m->error);
                else
                        show_progress(m);
        }
        if (reply)
                rm__local_reply__free_unpacked(reply, NULL);
        return r;
}

int move_wait(struct call *call, uint64_t job, uint64_t move, uint64_t timeout_usec) {
        struct awaited awaited = { job, move };
        int r = call_await(call, scan, &awaited, timeout_usec);

        if (r == 0)
                return error_set(&call->err, -ETIMEDOUT, "not moved after %" PRIu64 " s; the move goes on",
                                 timeout_usec / 1000000U);
        return r < 0 ? r : 0;
}

const struct verb verb_list_moves = {
        .name = "list-moves",
        .args = "",
        .help = "list moves of groups, with their freeze times\n"
                "FREEZE is the time from the freeze at the source until the group runs at its new node.\n"
                "CODEC is how the data was compressed; 2.0x: without it, SENT would be twice as much.\n"
                "With --wide: DUMP, SEND, RESTORE and COMMIT are the parts of FREEZE, FILL the time from then\n"
                "until the group has all of its memory. ROUNDS is how often memory was sent before the freeze, LAST what the "
                "group\n"
                "had written since, and was sent in it; only of tracked memory. LATER is what was still at its old node when it "
                "ran at the\n"
                "new one (post-copy), WAIT how long it waited for a page of that at most, in 99 of 100 cases.",
        .flags = { { "job", "JOB", "only moves of this job" },
                   { "since", "MOVE", "only moves after this one" },
                   { "wide", NULL, "all columns, for a terminal of more than 120 columns" } },
        .run = run_list,
};
