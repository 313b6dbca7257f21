#include "daemon/job/bodies.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/job/body.h"
#include "daemon/job/body_store.h"
#include "daemon/job/runner.h"
#include "daemon/peers/parts.h"
#include "daemon/peers/peer_message.h"

/* The rest of a spec, without its body, may have so many bytes packed: it stays in the state of
 * every node until the job is forgotten. */
#define REST_MAX_BYTES 32768U
/* Bodies of submissions whose answer is not there yet are held, and kept in memory until the disk
 * has them: so many of one user, so many bytes of one user and of all, and for so long if no answer
 * comes, as proposals end before that. The limit on the number keeps one user's bodies from holding
 * up those of others, which wait for the same disk. */
#define HELD_USER_MAX 256U
#define HELD_USER_MAX_BYTES STATE_USER_BODIES_MAX_BYTES
#define HELD_MAX_BYTES (UINT64_C(64) << 20)
#define HELD_USEC UINT64_C(60000000)
/* Raft's hand-over takes an election timeout at most, or does not come about. Not again soon: the
 * others' disks may be full too, and the lead would go round with each submission. */
#define HAND_OVER_USEC UINT64_C(3000000)
#define HAND_OVER_AGAIN_USEC UINT64_C(60000000)
#define FETCHES_MAX 16U
#define SOURCES_MAX 16U
#define ANSWER_USEC UINT64_C(5000000)
#define AGAIN_USEC UINT64_C(1000000)
#define TICK_USEC 500000U

/* A body that was submitted, and is perhaps not yet in the state. */
struct held {
        uint8_t digest[STATE_DIGEST_BYTES];
        uint32_t size_bytes;
        uid_t uid;
        uint64_t until_usec;
        LIST_ENTRY(held) entry;
};

/* A body that is being brought here. Nodes that may have it are asked one after the other;
 * `lacking` of this round have said that they have not. */
struct fetch {
        uint64_t job;
        uint8_t digest[STATE_DIGEST_BYTES];
        struct parts parts;
        char *source; /* asked now; NULL: nobody until `due_usec` */
        uint64_t due_usec;
        unsigned asked; /* nodes of this round */
        unsigned lacking;
        bool lost; /* all nodes that may have it have not */
        LIST_ENTRY(fetch) entry;
};

struct bodies {
        struct rmd *rmd;
        struct body_store *store;
        struct event *tick; /* while something is being brought */
        struct event *wake;
        LIST_HEAD(, held) held;
        LIST_HEAD(, fetch) fetches;
        unsigned n_fetches;
        bool full;
        uint64_t handed_over_usec; /* the lead, for want of room here; 0: never */
        bool changed; /* jobs have, since the last sweep */
        bool scan_all; /* jobs that may need a body that is not here: any, or these */
        uint64_t *scan_one;
        size_t n_scan;
};

static const Rm__State *state_of(const struct bodies *bodies) {
        return cluster_state(bodies->rmd->cluster);
}

static const char *self_of(const struct bodies *bodies) {
        return cluster_self(bodies->rmd->cluster);
}

/* ---- which of them belong here ---- */

static bool has_capsule_here(const struct bodies *bodies, const Rm__Job *job) {
        for (size_t i = 0; i < job->n_capsules; i++)
                if (strcmp(job->capsules[i]->node, self_of(bodies)) == 0)
                        return true;
        return false;
}

static bool keeps(const struct bodies *bodies, const Rm__Job *job) {
        return job_has_body(job) && (cluster_is_leader(bodies->rmd->cluster) || state_is_voter(state_of(bodies), self_of(bodies)) ||
                                     strcmp(job->spec->submit_node, self_of(bodies)) == 0 || has_capsule_here(bodies, job));
}

/* Is the body to be brought here without being asked for? That is so while the job is still to be
 * launched. */
static bool is_needed(const struct bodies *bodies, const Rm__Job *job) {
        return (job->state == RM__JOB_STATE__JOB_PENDING || job->state == RM__JOB_STATE__JOB_STARTING) && keeps(bodies, job);
}

/* ---- submission ---- */

static void held_free(struct held *held) {
        LIST_REMOVE(held, entry);
        free(held);
}

static int check_held(const struct bodies *bodies, uid_t uid, size_t size_bytes, struct rm_error *err) {
        uint64_t user_bytes = size_bytes, bytes = size_bytes;
        unsigned user_held = 1;
        const struct held *held;

        LIST_FOREACH (held, &bodies->held, entry) {
                bytes += held->size_bytes;
                user_bytes += held->uid == uid ? held->size_bytes : 0;
                user_held += held->uid == uid;
        }
        if (user_held > HELD_USER_MAX || user_bytes > HELD_USER_MAX_BYTES || bytes > HELD_MAX_BYTES)
                return error_set(err, -EAGAIN, "too many jobs are being submitted at once; try again");
        return 0;
}

static void hold(struct bodies *bodies, const Rm__JobSpec *spec) {
        struct held *held = xcalloc(1, sizeof(*held));

        memcpy(held->digest, spec->body_digest.data, STATE_DIGEST_BYTES);
        held->size_bytes = spec->body_bytes;
        held->uid = spec->uid;
        held->until_usec = now_usec() + HELD_USEC;
        LIST_INSERT_HEAD(&bodies->held, held, entry);
        bodies->changed = true;
}

static struct held *held_find(const struct bodies *bodies, uid_t uid, const uint8_t *digest) {
        struct held *held;

        LIST_FOREACH (held, &bodies->held, entry)
                if (held->uid == uid && memcmp(held->digest, digest, STATE_DIGEST_BYTES) == 0)
                        return held;
        return NULL;
}

static void release(struct bodies *bodies, uid_t uid, const uint8_t *digest) {
        struct held *held = held_find(bodies, uid, digest);

        if (held)
                held_free(held);
}

static int check_space(struct bodies *bodies, const Rm__JobSpec *spec, struct rm_error *err) {
        int r = state_check_body(state_of(bodies), spec, err);

        if (r == 0)
                r = check_held(bodies, spec->uid, spec->body_bytes, err);
        if (r == 0 && body_store_bytes(bodies->store) > STATE_BODIES_MAX_BYTES)
                bodies_clean(bodies);
        if (r == 0 && body_store_bytes(bodies->store) > STATE_BODIES_MAX_BYTES + HELD_MAX_BYTES)
                r = error_set(err, -EAGAIN, "too much is kept of jobs that have just ended; try again");
        return r;
}

/* A body on its way to the disk. */
struct taking {
        struct bodies *bodies;
        uint8_t digest[STATE_DIGEST_BYTES];
        uid_t uid;
        bodies_taken_fn done;
        void *userdata;
};

/* Hands the lead to another voter, since this node's disk is full: a leader that has room gets the
 * submission from the node of the front end. */
static bool hands_over(struct bodies *bodies) {
        uint64_t now = now_usec();

        if (bodies->handed_over_usec && now - bodies->handed_over_usec < HAND_OVER_AGAIN_USEC)
                return now - bodies->handed_over_usec < HAND_OVER_USEC;
        if (!cluster_hand_over(bodies->rmd->cluster))
                return false;
        log_warn("the disk is full: another node is to lead");
        bodies->handed_over_usec = now;
        return true;
}

static void on_kept(void *userdata, int code) {
        struct taking *taking = userdata;
        struct bodies *bodies = taking->bodies;
        struct rm_error err = { 0 };

        bodies->full = code == -ENOSPC;
        if (code == -ENOSPC && hands_over(bodies))
                (void) error_set(&err, -EHOSTUNREACH, "the leader's disk is full, and another node is to lead");
        else if (code == -ENOSPC)
                (void) error_set(&err, code,
                                 "the leader's disk is full, so that no job can be taken until there is room; what runs goes on");
        else if (code < 0)
                (void) error_sys(&err, code, "the leader cannot keep the job's environment");
        if (code < 0)
                release(bodies, taking->uid, taking->digest);
        taking->done(taking->userdata, &err);
        free(taking);
}

void bodies_take(struct bodies *bodies, Rm__JobSpec *spec, bodies_taken_fn done, void *userdata) {
        size_t size_bytes = 0;
        cleanup_free uint8_t *data = body_split(spec, &size_bytes);
        struct rm_error err = { 0 };
        struct taking *taking;

        if (rm__job_spec__get_packed_size(spec) > REST_MAX_BYTES)
                (void) error_set(&err, -E2BIG, "names and paths of the job are too long");
        else if (data)
                (void) check_space(bodies, spec, &err);
        if (!data || err.code < 0) {
                done(userdata, &err);
                return;
        }
        hold(bodies, spec);
        taking = xcalloc(1, sizeof(*taking));
        *taking = (struct taking) { .bodies = bodies, .uid = spec->uid, .done = done, .userdata = userdata };
        memcpy(taking->digest, spec->body_digest.data, STATE_DIGEST_BYTES);
        body_store_put_safely(bodies->store, taking->digest, take_ptr(data), size_bytes, on_kept, taking);
}

void bodies_offer(struct bodies *bodies, Rm__JobSpec *spec) {
        size_t size_bytes = 0;
        cleanup_free uint8_t *data = body_split(spec, &size_bytes);
        struct held *held = data ? held_find(bodies, spec->uid, spec->body_digest.data) : NULL;
        struct rm_error err = { 0 };

        /* Offered again, as while there was no leader to take the job. */
        if (held) {
                held->until_usec = now_usec() + HELD_USEC;
                return;
        }
        if (!data || check_held(bodies, spec->uid, size_bytes, &err) < 0 || !body_store_has_space(bodies->store, size_bytes))
                return;
        hold(bodies, spec);
        body_store_put(bodies->store, spec->body_digest.data, data, size_bytes);
}

bool bodies_disk_full(const struct bodies *bodies) {
        return bodies && bodies->full && !body_store_has_space(bodies->store, 0);
}

/* ---- bringing one here ---- */

static struct fetch *fetch_find(const struct bodies *bodies, uint64_t job) {
        struct fetch *fetch;

        LIST_FOREACH (fetch, &bodies->fetches, entry)
                if (fetch->job == job)
                        return fetch;
        return NULL;
}

static void fetch_free(struct bodies *bodies, struct fetch *fetch) {
        LIST_REMOVE(fetch, entry);
        bodies->n_fetches--;
        parts_reset(&fetch->parts);
        free(fetch->source);
        free(fetch);
        if (bodies->scan_all)
                event_active(bodies->wake, EV_TIMEOUT, 0);
}

static void add_source(const struct bodies *bodies, const char **sources, unsigned *n, const char *node) {
        if (!node || !node[0] || strcmp(node, self_of(bodies)) == 0 || *n >= SOURCES_MAX)
                return;
        for (unsigned i = 0; i < *n; i++)
                if (strcmp(sources[i], node) == 0)
                        return;
        sources[(*n)++] = node;
}

/* The leader first: it has them all. */
static unsigned find_sources(const struct bodies *bodies, const Rm__Job *job, const char *sources[static SOURCES_MAX]) {
        unsigned n = 0;

        add_source(bodies, sources, &n, cluster_leader(bodies->rmd->cluster));
        add_source(bodies, sources, &n, job->spec->submit_node);
        for (size_t i = 0; i < state_of(bodies)->n_voters; i++)
                add_source(bodies, sources, &n, state_of(bodies)->voters[i]);
        for (size_t i = 0; i < job->n_capsules; i++)
                add_source(bodies, sources, &n, job->capsules[i]->node);
        return n;
}

/* A node that is down will not answer, and the bodies that it has may be gone with it. */
static bool is_down(const struct bodies *bodies, const char *name) {
        const Rm__Node *node = state_node(state_of(bodies), name);

        return !node || node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN;
}

static int ask(struct bodies *bodies, struct fetch *fetch) {
        Rm__BodyGet get = RM__BODY_GET__INIT;

        get.digest = (ProtobufCBinaryData) { .len = STATE_DIGEST_BYTES, .data = fetch->digest };
        get.offset = fetch->parts.received_bytes;
        fetch->due_usec = now_usec() + ANSWER_USEC;
        return cluster_send(bodies->rmd->cluster, fetch->source, &PEER_MESSAGE(&get));
}

/* A round is over when all were asked: either nobody has it, or some could not be asked, and then
 * it begins again. */
static void ask_next(struct bodies *bodies, struct fetch *fetch, const Rm__Job *job) {
        const char *sources[SOURCES_MAX];
        unsigned n = find_sources(bodies, job, sources);

        parts_reset(&fetch->parts);
        free(take_ptr(fetch->source));
        while (fetch->asked < n) {
                const char *node = sources[fetch->asked++];

                if (is_down(bodies, node)) {
                        fetch->lacking++;
                        continue;
                }
                fetch->source = xstrdup(node);
                if (ask(bodies, fetch) == 0)
                        return;
                free(take_ptr(fetch->source));
        }
        if (fetch->lacking >= n && !fetch->lost) {
                log_warn("job %" PRIu64 ": no node has its environment and command line any more", job->id);
                fetch->lost = true;
                runner_wake(bodies->rmd->runner);
        }
        fetch->asked = fetch->lacking = 0;
        fetch->due_usec = now_usec() + AGAIN_USEC;
}

static void start_ticking(struct bodies *bodies) {
        if (!LIST_EMPTY(&bodies->fetches) && !evtimer_pending(bodies->tick, NULL))
                timer_arm(bodies->tick, TICK_USEC);
}

static struct fetch *fetch_begin(struct bodies *bodies, const Rm__Job *job) {
        struct fetch *fetch;

        if (bodies->n_fetches >= FETCHES_MAX) {
                bodies->scan_all = true; /* in its turn */
                return NULL;
        }
        fetch = xcalloc(1, sizeof(*fetch));
        fetch->job = job->id;
        memcpy(fetch->digest, job->spec->body_digest.data, STATE_DIGEST_BYTES);
        LIST_INSERT_HEAD(&bodies->fetches, fetch, entry);
        bodies->n_fetches++;
        ask_next(bodies, fetch, job);
        start_ticking(bodies);
        return fetch;
}

static void take_part(struct bodies *bodies, struct fetch *fetch, const Rm__Job *job, const Rm__BodyPart *part) {
        uint8_t digest[STATE_DIGEST_BYTES];
        int r;

        if (part->total_bytes == 0) {
                fetch->lacking++;
                ask_next(bodies, fetch, job);
                return;
        }
        r = parts_add(&fetch->parts, part->total_bytes, part->offset, part->data.data, part->data.len, STATE_BODY_MAX_BYTES);
        if (r == 0) {
                if (ask(bodies, fetch) < 0)
                        ask_next(bodies, fetch, job);
                return;
        }
        if (r > 0) {
                body_digest(fetch->parts.data, fetch->parts.received_bytes, digest);
                if (memcmp(digest, fetch->digest, sizeof(digest)) == 0) {
                        body_store_put(bodies->store, digest, fetch->parts.data, fetch->parts.received_bytes);
                        fetch_free(bodies, fetch);
                        runner_wake(bodies->rmd->runner);
                        event_active(bodies->wake, EV_TIMEOUT, 0); /* the next one's turn */
                        return;
                }
        }
        log_warn("job %" PRIu64 ": what node %s has of its environment is of no use", job->id, fetch->source);
        fetch->lacking++;
        ask_next(bodies, fetch, job);
}

static void on_part(struct bodies *bodies, const char *node, const Rm__BodyPart *part) {
        struct fetch *fetch, *next;

        for (fetch = LIST_FIRST(&bodies->fetches); fetch; fetch = next) {
                const Rm__Job *job = state_job(state_of(bodies), fetch->job);

                next = LIST_NEXT(fetch, entry);
                if (job && fetch->source && strcmp(fetch->source, node) == 0 && part->digest.len == STATE_DIGEST_BYTES &&
                    memcmp(part->digest.data, fetch->digest, STATE_DIGEST_BYTES) == 0 &&
                    part->offset == fetch->parts.received_bytes) {
                        take_part(bodies, fetch, job, part);
                        return;
                }
        }
}

/* Another node asks for a part of a body. */
static void on_get(struct bodies *bodies, const char *node, const Rm__BodyGet *get) {
        Rm__BodyPart part = RM__BODY_PART__INIT;
        cleanup_free uint8_t *data = NULL;
        size_t size_bytes = 0;

        if (get->digest.len != STATE_DIGEST_BYTES)
                return;
        part.digest = get->digest;
        if (body_store_get(bodies->store, get->digest.data, &data, &size_bytes) == 0 && get->offset < size_bytes) {
                part.total_bytes = size_bytes;
                part.offset = get->offset;
                part.data.data = data + get->offset;
                part.data.len = size_bytes - get->offset < PART_BYTES ? size_bytes - (size_t) get->offset : PART_BYTES;
        }
        (void) cluster_send(bodies->rmd->cluster, node, &PEER_MESSAGE(&part));
}

bool bodies_on_message(struct bodies *bodies, const char *node, const Rm__PeerMessage *message) {
        if (message->body_case == RM__PEER_MESSAGE__BODY_BODY_GET)
                on_get(bodies, node, message->body_get);
        else if (message->body_case == RM__PEER_MESSAGE__BODY_BODY_PART)
                on_part(bodies, node, message->body_part);
        else
                return false;
        return true;
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
        struct bodies *bodies = arg;
        struct fetch *fetch, *next;
        uint64_t now = now_usec();

        for (fetch = LIST_FIRST(&bodies->fetches); fetch; fetch = next) {
                const Rm__Job *job = state_job(state_of(bodies), fetch->job);

                next = LIST_NEXT(fetch, entry);
                if (!job || !keeps(bodies, job))
                        fetch_free(bodies, fetch);
                else if (now >= fetch->due_usec)
                        ask_next(bodies, fetch, job);
        }
        start_ticking(bodies);
}

static void bring(struct bodies *bodies, const Rm__Job *job) {
        if (is_needed(bodies, job) && !body_store_has(bodies->store, job->spec->body_digest.data) && !fetch_find(bodies, job->id))
                (void) fetch_begin(bodies, job);
}

/* After a command about one job only that one needs a look. */
static void on_wake(evutil_socket_t fd, short what, void *arg) {
        struct bodies *bodies = arg;
        const Rm__State *state = state_of(bodies);
        bool all = bodies->scan_all;

        if (!cluster_synced(bodies->rmd->cluster))
                return; /* and told when it is */
        bodies->scan_all = false;
        for (size_t i = 0; i < state->n_jobs && all; i++)
                bring(bodies, state->jobs[i]);
        for (size_t i = 0; i < bodies->n_scan && !all; i++) {
                const Rm__Job *job = state_job(state, bodies->scan_one[i]);

                if (job)
                        bring(bodies, job);
        }
        bodies->n_scan = 0;
}

static void scan_one(struct bodies *bodies, uint64_t job) {
        bodies->scan_one = xgrow(bodies->scan_one, bodies->n_scan, sizeof(*bodies->scan_one));
        bodies->scan_one[bodies->n_scan++] = job;
}

int bodies_get(struct bodies *bodies, const Rm__Job *job, Rm__JobSpec **ret, struct rm_error *err) {
        cleanup_free uint8_t *data = NULL;
        const struct fetch *fetch;
        size_t size_bytes = 0;

        if (!job_has_body(job)) {
                *ret = (Rm__JobSpec *) message_copy(&job->spec->base);
                return 0;
        }
        if (body_store_get(bodies->store, job->spec->body_digest.data, &data, &size_bytes) == 0) {
                *ret = body_join(job->spec, data, size_bytes);
                return *ret ? 0
                            : error_set(err, -EBADMSG, "job %" PRIu64 ": cannot read its command line and environment", job->id);
        }
        fetch = fetch_find(bodies, job->id);
        if (!fetch)
                fetch = fetch_begin(bodies, job);
        if (fetch && fetch->lost)
                return error_set(err, -ENOENT,
                                 "its environment and command line are lost: neither the leader nor node %s has them any more",
                                 job->spec->submit_node);
        return error_set(err, -EAGAIN, "its environment and command line have not arrived yet");
}

/* ---- dropping ---- */

static int compare_digests(const void *a, const void *b) {
        return memcmp(*(const uint8_t *const *) a, *(const uint8_t *const *) b, STATE_DIGEST_BYTES);
}

struct kept {
        const uint8_t **digests; /* sorted */
        size_t n;
};

static bool is_kept(void *userdata, const uint8_t *digest) {
        const struct kept *kept = userdata;

        return bsearch(&digest, kept->digests, kept->n, sizeof(*kept->digests), compare_digests) != NULL;
}

static void expire_held(struct bodies *bodies) {
        struct held *held, *next;
        uint64_t now = now_usec();

        for (held = LIST_FIRST(&bodies->held); held; held = next) {
                next = LIST_NEXT(held, entry);
                if (now >= held->until_usec) {
                        held_free(held);
                        bodies->changed = true;
                }
        }
}

void bodies_clean(struct bodies *bodies) {
        const Rm__State *state = state_of(bodies);
        struct kept kept = { 0 };
        const struct held *held;
        size_t max = state->n_jobs;

        expire_held(bodies);
        if (!bodies->changed || !cluster_synced(bodies->rmd->cluster))
                return; /* what we know may be old: drop nothing by it */
        LIST_FOREACH (held, &bodies->held, entry)
                max++;
        kept.digests = xcalloc(max, sizeof(*kept.digests));
        for (size_t i = 0; i < state->n_jobs; i++)
                if (keeps(bodies, state->jobs[i]))
                        kept.digests[kept.n++] = state->jobs[i]->spec->body_digest.data;
        LIST_FOREACH (held, &bodies->held, entry)
                kept.digests[kept.n++] = held->digest;
        qsort(kept.digests, kept.n, sizeof(*kept.digests), compare_digests);
        body_store_sweep(bodies->store, is_kept, &kept);
        free(kept.digests);
        bodies->changed = false;
}

void bodies_applied(struct bodies *bodies, const Rm__Command *command) {
        const Rm__JobSpec *spec = command && command->body_case == RM__COMMAND__BODY_JOB_SUBMIT ? command->job_submit->spec : NULL;
        const Rm__State *state = state_of(bodies);

        if (spec && spec->body_digest.len == STATE_DIGEST_BYTES)
                release(bodies, spec->uid, spec->body_digest.data);
        bodies->changed = true;
        if (!command)
                bodies->scan_all = true;
        else if (spec && state->n_jobs > 0)
                scan_one(bodies, state->jobs[state->n_jobs - 1]->id);
        else if (command->body_case == RM__COMMAND__BODY_JOB_PLACE)
                scan_one(bodies, command->job_place->job);
        else
                return; /* no body is needed that was not before */
        event_active(bodies->wake, EV_TIMEOUT, 0);
}

/* ---- life ---- */

int bodies_create(struct rmd *rmd, struct bodies **ret, struct rm_error *err) {
        struct bodies *bodies = xcalloc(1, sizeof(*bodies));
        cleanup_free char *dir = xasprintf("%s/launch", rmd->config->state_dir);
        int r;

        bodies->rmd = rmd;
        bodies->changed = true;
        LIST_INIT(&bodies->held);
        LIST_INIT(&bodies->fetches);
        bodies->tick = evtimer_new(rmd->base, on_tick, bodies);
        bodies->wake = evtimer_new(rmd->base, on_wake, bodies);
        if (!bodies->tick || !bodies->wake)
                abort();
        r = body_store_open(rmd->base, dir, &bodies->store, err);
        if (r < 0) {
                bodies_destroy(bodies);
                return r;
        }
        *ret = bodies;
        return 0;
}

void bodies_destroy(struct bodies *bodies) {
        if (!bodies)
                return;
        body_store_close(bodies->store); /* answers those that wait for it */
        while (!LIST_EMPTY(&bodies->fetches))
                fetch_free(bodies, LIST_FIRST(&bodies->fetches));
        while (!LIST_EMPTY(&bodies->held))
                held_free(LIST_FIRST(&bodies->held));
        event_free(bodies->tick);
        event_free(bodies->wake);
        free(bodies->scan_one);
        free(bodies);
}
