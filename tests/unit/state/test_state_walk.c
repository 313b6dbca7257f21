/* A hundred thousand commands in any order, good, stale and nonsense: what must always hold holds,
 * and the two states that were given the same commands stay the same to the byte. */
#include "state_test.h"
#include "tests/unit/repeat.h"

#define STEPS 200000
#define SEED UINT64_C(0x9e3779b97f4a7c15)
#define MAX_GROUPS 5U

static const char *const nodes[] = { "n1", "n2", "n3", "n4", "n5", "n9", "" };

struct walk {
        struct world world;
        uint64_t random;
        unsigned applied[32]; /* by body case - 10 */
        unsigned refused[32];
};

static uint32_t pick(struct walk *walk, uint32_t n) {
        /* xorshift64* */
        walk->random ^= walk->random >> 12;
        walk->random ^= walk->random << 25;
        walk->random ^= walk->random >> 27;
        return (uint32_t) ((walk->random * UINT64_C(2685821657736338717)) >> 33) % n;
}

static const char *some_node(struct walk *walk) {
        return nodes[pick(walk, pick(walk, 8) == 0 ? ARRAY_SIZE(nodes) : 5)];
}

static const Rm__Job *some_job(struct walk *walk) {
        const Rm__State *state = walk->world.state;

        return state->n_jobs ? state->jobs[pick(walk, (uint32_t) state->n_jobs)] : NULL;
}

static uint64_t some_job_id(struct walk *walk) {
        const Rm__Job *job = some_job(walk);

        return job && pick(walk, 20) ? job->id : pick(walk, 3000);
}

static uint64_t some_move_id(struct walk *walk) {
        const Rm__State *state = walk->world.state;
        size_t recent = state->n_moves < 8 ? state->n_moves : 8;

        if (recent == 0 || pick(walk, 20) == 0)
                return pick(walk, 3000);
        return state->moves[state->n_moves - 1 - pick(walk, (uint32_t) recent)]->id;
}

static int random_place(struct walk *walk) {
        const Rm__Job *job = some_job(walk);
        const char *where[MAX_GROUPS];
        uint32_t ranks[MAX_GROUPS];
        uint32_t left = job ? job->spec->ranks : 3;
        size_t n = 0;

        while (left > 0 && n < MAX_GROUPS) {
                where[n] = some_node(walk);
                ranks[n] = n == MAX_GROUPS - 1 ? left : 1 + pick(walk, left);
                if (pick(walk, 40) == 0)
                        ranks[n] = pick(walk, 2) ? 0 : UINT32_MAX;
                left -= ranks[n] < left ? ranks[n] : left;
                n++;
        }
        return place(&walk->world, job ? job->id : 1, some_node(walk), where, ranks, n);
}

static int random_available(struct walk *walk) {
        const char *names[3];
        uint32_t cores[3];
        size_t n = pick(walk, 4);

        for (size_t i = 0; i < n; i++) {
                names[i] = some_node(walk);
                cores[i] = pick(walk, 6);
        }
        return available(&walk->world, names, cores, n);
}

/* Mostly of a capsule that is there, and of its place. */
static int random_capsule(struct walk *walk, int (*command)(struct world *, uint64_t, int32_t, const char *)) {
        const Rm__Job *job = some_job(walk);
        int32_t index = job && job->n_capsules ? (int32_t) pick(walk, (uint32_t) job->n_capsules) - 1 : 0;
        const Rm__Capsule *capsule = job ? job_capsule(job, index) : NULL;
        cleanup_free char *node = xstrdup(capsule && pick(walk, 8) ? capsule->node : some_node(walk));

        if (pick(walk, 30) == 0)
                index = (int32_t) pick(walk, 10) - 3;
        return command(&walk->world, job ? job->id : 1, index, node);
}

/* Half of the jobs may restart; mostly the attempt is right. */
static int random_restart(struct walk *walk) {
        const Rm__Job *job = some_job(walk);
        const Rm__Capsule *capsule = job && job->n_capsules ? job->capsules[pick(walk, (uint32_t) job->n_capsules)] : NULL;
        cleanup_free char *node = xstrdup(capsule && pick(walk, 4) ? capsule->node : some_node(walk));
        bool down = pick(walk, 2);

        if (!job || pick(walk, 4))
                return 0;
        if (job->id % 2 && job->attempt < 2)
                let_restart(&walk->world, job->id, 3);
        if (down && pick(walk, 2))
                (void) health(&walk->world, node, RM__NODE_HEALTH__NODE_HEALTH_DOWN);
        return restart(&walk->world, job->id,
                       job->attempt + (pick(walk, 4) ? job->state != RM__JOB_STATE__JOB_RECOVERING : pick(walk, 3)), node, down);
}

static int random_condition(struct walk *walk) {
        static const char *const sources[] = { "report", "edac", "hwmon", "" };
        int value = pick(walk, 8) ? 0 : 1 + (int) pick(walk, 3);

        return condition(&walk->world, some_node(walk), sources[pick(walk, pick(walk, 8) ? 3 : 4)], value,
                         pick(walk, 8) ? "hot" : "");
}

/* Submits jobs of which half have ranks in reserve, and of the others half go on without lost
 * ones. */
static int random_submit(struct walk *walk) {
        uint32_t ranks = pick(walk, 9), active = 0;

        if (ranks > 0 && pick(walk, 2))
                active = 1 + pick(walk, ranks + (pick(walk, 10) == 0));
        else if (pick(walk, 2))
                return pick(walk, 2) ? submit_enduring(&walk->world, ranks)
                                     : submit_critical(&walk->world, ranks + 2, 1 + pick(walk, 2), "0");
        return submit_resizable(&walk->world, ranks, active, active > 0 ? pick(walk, active + 1) : 0);
}

/* Mostly of the change that is under way. */
static int random_resize(struct walk *walk) {
        const Rm__Job *job = some_job(walk);
        uint64_t epoch = job && job->resize ? job->resize->epoch : 1;
        uint32_t ranks = job && job->resize && job->resize->requested && pick(walk, 4) ? job->resize->requested : pick(walk, 10);

        switch (job ? pick(walk, 4) : 3) {
        case 0:
                return resize(&walk->world, job->id, pick(walk, 10));
        case 1:
                return resize_reported(&walk->world, job->id, pick(walk, 6) ? epoch : pick(walk, 5), 0, 0, pick(walk, 40) == 0);
        case 2:
                return resize_reported(&walk->world, job->id, epoch, pick(walk, 6) ? epoch : pick(walk, 5), ranks, false);
        default:
                return resize(&walk->world, some_job_id(walk), pick(walk, 10));
        }
}

/* Mostly of a group that is there. */
static int random_reported(struct walk *walk) {
        const Rm__Job *job = some_job(walk);
        int32_t group = job && job->n_capsules > 1 ? (int32_t) pick(walk, (uint32_t) job->n_capsules - 1) : (int32_t) pick(walk, 3);
        const Rm__Capsule *capsule = job ? job_capsule(job, group) : NULL;
        uint32_t first = capsule ? job_first_rank(job, capsule) : 0;
        uint32_t lost[] = { first + pick(walk, 4), first + pick(walk, 4) };

        return ranks_reported(&walk->world, job ? job->id : 1, group, capsule && pick(walk, 6) ? capsule->node : some_node(walk),
                              lost, pick(walk, 3), pick(walk, 2));
}

static int step(struct walk *walk, uint32_t which) {
        struct world *w = &walk->world;

        switch (which) {
        case 0:
                w->boot = pick(walk, 3);
                return join(w, some_node(walk), 1 + pick(walk, 4));
        case 1:
                if (pick(walk, 4) == 0)
                        return random_condition(walk);
                return health(w, some_node(walk), pick(walk, 5) ? 1 : (int) pick(walk, 5) - 1);
        case 2:
                if (pick(walk, 3) == 0)
                        return overdue(w, some_node(walk), 1 + pick(walk, 2));
                return pick(walk, 2) ? drain(w, some_node(walk), pick(walk, 2) ? "" : "disk", pick(walk, 2))
                                     : drain_until(w, some_node(walk), 1 + pick(walk, 2), pick(walk, 2));
        case 3:
                return pick(walk, 4) ? resume(w, some_node(walk)) : remove_node(w, some_node(walk));
        case 4:
                return pick(walk, 2) ? random_available(walk) : available_error(w, pick(walk, 2) ? "" : "/f:1: what");
        case 5:
                return w->state->n_jobs < 30 ? random_submit(walk) : 0;
        case 6:
                return job_available(w, some_job_id(walk), pick(walk, 2) ? some_node(walk) : NULL, pick(walk, 4),
                                     pick(walk, 3) ? "" : "/j:1: what");
        case 7:
                return job_wait(w, some_job_id(walk), pick(walk, 2) ? "waits for cores" : "", pick(walk, 2));
        case 8:
        case 9:
                return random_place(walk);
        case 10:
                return random_capsule(walk, ready);
        case 11:
        case 12:
        case 13:
                return random_capsule(walk, gone);
        case 14:
                return running(w, some_job_id(walk));
        case 15:
                return pick(walk, 4) ? 0 : cancel(w, some_job_id(walk), pick(walk, 20), pick(walk, 3) == 0);
        case 16:
                return pick(walk, 4) ? 0
                                     : ends(w, some_job_id(walk), (int32_t) pick(walk, 3),
                                            pick(walk, 3) ? 0 : (int) pick(walk, 16) - 1, "");
        case 17:
                return forget(w, some_job_id(walk));
        case 18:
                return output_done(w, some_job_id(walk));
        case 19:
        case 20:
        case 21:
        case 22: {
                const Rm__Job *job = some_job(walk);

                return move_start(w, job ? job->id : 1, (int32_t) pick(walk, 7) - 2, some_node(walk));
        }
        case 23:
                return move_commit(w, some_move_id(walk));
        case 24:
                return move_abort(w, some_move_id(walk), "why");
        case 25:
                return move_done(w, some_move_id(walk), pick(walk, 1000), pick(walk, 1000));
        case 26:
                return pick(walk, 2) ? move_filled(w, some_move_id(walk), 1 + pick(walk, 1000))
                                     : move_waiting(w, some_move_id(walk), pick(walk, 3) ? "1 MB" : "");
        case 27: {
                const char *kept[] = { some_node(walk), some_node(walk) };

                return spares(w, some_job_id(walk), kept, pick(walk, 3));
        }
        case 28:
                return random_restart(walk);
        case 29:
                return pick(walk, 2) ? random_resize(walk) : random_reported(walk);
        default:
                return note(w, "x");
        }
}

static void test_walk(void **state) {
        struct walk walk = { .random = SEED };

        world_init(&walk.world);
        for (unsigned i = 0; i < repetitions(STEPS); i++) {
                uint32_t which = pick(&walk, 30);
                int code;

                walk.world.thorough = i % 16 == 0 || i < 2000;
                code = step(&walk, which);
                (code < 0 ? walk.refused : walk.applied)[which > 19 && which <= 22 ? 19 : which]++; /* these are one command */
        }
        state_check(walk.world.indexed);
        index_check_addresses(walk.world.indexed);
        assert_int_equal(walk.world.state->index, walk.world.index);
        /* A walk that never gets anywhere proves nothing. */
        for (unsigned i = 0; i < 28; i++) {
                if (i > 19 && i <= 22)
                        continue;
                if (walk.applied[i] < repetitions(20) || (walk.refused[i] < repetitions(12) && i != 4))
                        fail_msg("command %u: applied %u, refused %u", i, walk.applied[i], walk.refused[i]);
        }
        assert_true(walk.world.state->next_job > repetitions(300));
        assert_true(walk.world.state->next_move > repetitions(300));
        world_finish(&walk.world);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_walk) };

        return cmocka_run_group_tests_name("state_walk", tests, NULL, NULL);
}
