/* rmctl events */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/util.h"
#include "launcher/client/suggest.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/verb.h"
#include "proto/json.h"

#define AWAY_USEC (60U * 1000000U)
/* Without --follow the answer comes at once. */
#define ANSWER_USEC (60U * 1000000U)

/* All kinds of events that rmd makes, as in rmctl(1); docs/check-manuals compares the three. */
static const char *const kinds[] = {
        "availability",
        "availability-error",
        "checkpoint-captured",
        "checkpoint-copied-again",
        "checkpoint-copy-lost",
        "checkpoint-done",
        "checkpoint-failed",
        "checkpoint-imported",
        "checkpoint-removed",
        "checkpoint-started",
        "checkpoint-uncopied",
        "drill-done",
        "drill-failed",
        "drill-started",
        "job-cancel",
        "job-ended",
        "job-own-state",
        "job-placed",
        "job-ranks-lost",
        "job-released",
        "job-requeued",
        "job-resize",
        "job-resize-cancelled",
        "job-resize-refused",
        "job-resized",
        "job-restarted",
        "job-spares",
        "job-started",
        "job-submitted",
        "job-waits",
        "move-done",
        "move-failed",
        "move-filled",
        "move-hurried",
        "move-postcopy",
        "move-started",
        "move-waiting",
        "node-condition",
        "node-down",
        "node-drain",
        "node-drained",
        "node-empty",
        "node-fence",
        "node-fenced",
        "node-joined",
        "node-leaves",
        "node-overdue",
        "node-removed",
        "node-resumed",
        "node-unknown",
        "node-up",
        "note",
        "policy-error",
        "topology",
        "voter-added",
        "voter-removed",
};

struct follower {
        struct call *call;
        bool follow;
        const char *wait_kind;  /* NULL: none */
        uint64_t since;
        uint64_t deadline_usec; /* 0: none */
        json_t *array;          /* of --json without --follow */
        bool end;
        bool came;              /* what --wait waits for */
};

static enum colour colour_of_kind(const char *kind) {
        if (strstr(kind, "down") || strstr(kind, "fail") || strstr(kind, "abort") || strstr(kind, "error"))
                return COLOUR_RED;
        if (strncmp(kind, "move", 4) == 0)
                return COLOUR_YELLOW;
        return COLOUR_NONE;
}

static void print_line(const struct follower *f, const Rm__Event *event) {
        time_t s = (time_t) (event->time_usec / 1000000U);
        struct tm tm = { 0 };
        char clock[32] = "";
        cleanup_free char *text = human_clean(event->text);
        cleanup_free char *kind = human_clean(event->kind);
        enum colour colour = f->call->colours ? colour_of_kind(kind) : COLOUR_NONE;

        (void) localtime_r(&s, &tm);
        (void) strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
        (void) printf("%s.%03u  %6" PRIu64 "  %s%-18s%s  %s\n", clock, (unsigned) (event->time_usec % 1000000U / 1000U),
                      event->index, colour_begin(colour), kind, colour_end(colour), text);
}

static void take_event(struct follower *f, const Rm__Event *event) {
        f->since = event->index;
        if (f->wait_kind && strcmp(event->kind, f->wait_kind) == 0)
                f->came = true;
        if (f->wait_kind && !f->came && !f->follow)
                return;
        if (!f->call->json) {
                print_line(f, event);
        } else if (f->array) {
                (void) json_array_append_new(f->array, json_from_message(&event->base));
        } else {
                /* Each event is a line, so that a reader need not wait for the end. */
                json_t *object = json_from_message(&event->base);

                (void) json_object_set_new(object, "version", json_integer(1));
                (void) json_dumpf(object, stdout, JSON_COMPACT);
                (void) putchar('\n');
                json_decref(object);
        }
}

static void print_header(const struct follower *f) {
        if (!f->call->json && f->call->header && !f->wait_kind)
                (void) printf("%-12s  %6s  %-18s  %s\n", "TIME", "INDEX", "EVENT", "WHAT");
}

/* Prints the events of one connection. */
static int follow_once(struct follower *f, bool *ret_received) {
        struct call *call = f->call;
        Rm__FollowEvents follow = RM__FOLLOW_EVENTS__INIT;
        int r = call_connect(call);

        if (r < 0)
                return r;
        follow.since = f->since;
        follow.follow = f->follow || f->wait_kind;
        r = client_send(call->client, &follow.base, NULL, &call->err);
        while (r == 0 && !f->end && !f->came) {
                Rm__LocalReply *reply = NULL;
                uint64_t timeout_usec = follow.follow ? 0 : ANSWER_USEC;

                *ret_received = true;
                if (f->deadline_usec > 0)
                        timeout_usec = f->deadline_usec > now_usec() ? f->deadline_usec - now_usec() : 1;
                r = client_receive(call->client, timeout_usec, &reply, &call->err);
                if (r < 0)
                        break;
                for (size_t i = 0; reply->body_case == RM__LOCAL_REPLY__BODY_EVENTS && i < reply->events->n_events && !f->came; i++)
                        take_event(f, reply->events->events[i]);
                f->end = reply->body_case == RM__LOCAL_REPLY__BODY_EVENTS && reply->events->end && !follow.follow;
                rm__local_reply__free_unpacked(reply, NULL);
                if (fflush(stdout) != 0)
                        return error_sys(&call->err, -errno, "cannot write");
        }
        return r;
}

/* Follows the events, and connects again as often as rmd comes back. */
static int follow(struct follower *f) {
        uint64_t seen_usec = now_usec();
        bool ever = false;

        for (;;) {
                bool received = false;
                int r = follow_once(f, &received);

                ever = ever || received;
                if (received)
                        seen_usec = now_usec();
                if (r != CLIENT_NO_DAEMON || !ever || !(f->follow || f->wait_kind) || now_usec() > seen_usec + AWAY_USEC)
                        return r;
                call_disconnect(f->call);
                if (!call_pause(f->deadline_usec))
                        return r;
        }
}

/* The latest event: a caller that follows or waits means the events from now on. */
static int latest(struct call *call, uint64_t *ret_index) {
        Rm__GetStatus get = RM__GET_STATUS__INIT;
        Rm__LocalReply *reply = NULL;
        int r;

        r = call_request(call, &get.base, RM__LOCAL_REPLY__BODY_STATUS, &reply);
        if (r < 0)
                return r;
        *ret_index = reply->status->log_index;
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

/* An event that never comes would be waited for without end. */
static int check_kind(struct call *call, const char *kind) {
        const char *nearest = kinds[0];

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                if (strcmp(kinds[i], kind) == 0)
                        return 0;
                if (suggest_distance(kind, kinds[i]) < suggest_distance(kind, nearest))
                        nearest = kinds[i];
        }
        return call_usage(call, "--wait: there is no event '%s' (did you mean '%s'? rmctl(1) lists them)", kind, nearest);
}

static int run(struct call *call) {
        struct follower f = { .call = call, .follow = call_flag(call, "follow") != NULL, .wait_kind = call_flag(call, "wait") };
        const char *since_text = call_flag(call, "since");
        uint64_t timeout_usec = 0;
        int64_t since = 0;
        int r = call_duration(call, "timeout", &timeout_usec);

        if (r < 0)
                return r;
        if (since_text && parse_i64(since_text, 0, INT64_MAX, &since) < 0)
                return call_usage(call, "--since: '%s' is not an event's index", since_text);
        if (f.wait_kind && check_kind(call, f.wait_kind) < 0)
                return -EINVAL;
        f.since = (uint64_t) since;
        if (!since_text && (f.follow || f.wait_kind))
                r = latest(call, &f.since);
        if (r < 0)
                return r;
        if (timeout_usec > 0)
                f.deadline_usec = now_usec() + timeout_usec;
        if (call->json && !f.follow && !f.wait_kind)
                f.array = json_array();
        print_header(&f);
        r = follow(&f);
        if (r == -ETIMEDOUT && f.wait_kind)
                (void) error_set(&call->err, r, "no '%s' within %" PRIu64 " s", f.wait_kind, timeout_usec / 1000000U);
        else if (r == -ETIMEDOUT && f.follow)
                r = 0;
        if (r == 0 && f.array)
                call_print_json("events", f.array);
        else
                json_decref(f.array);
        return r;
}

const struct verb verb_events = {
        .name = "events",
        .args = "",
        .help = "show the events of the cluster\n"
                "With --json and --follow or --wait, each object is on one line.",
        .flags = { { "follow", NULL, "print new events as they occur" },
                   { "since", "INDEX", "only events after this one" },
                   { "wait", "EVENT", "return at the next event of this kind, and print it" },
                   { "timeout", "TIME", "stop after TIME (exit status 1 with --wait)" } },
        .run = run,
};
