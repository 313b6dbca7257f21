/* The node of the front end keeps bodies of submissions: for each user only so much, whatever is
 * submitted. */
#include "tests/unit/cluster/cluster_test.h"

#include <dirent.h>

#include "daemon/config/config.h"
#include "daemon/job/bodies.h"

/* The limits of bodies.c: how many of one user, how much of one user and of all users. */
#define USER_MAX 256U
#define USER_MAX_BYTES STATE_USER_BODIES_MAX_BYTES
#define MAX_BYTES (UINT64_C(64) << 20)

struct fixture {
        struct world world;
        struct config config;
        struct rmd rmd;
        char *store;
};

static int set_up(void **state) {
        struct fixture *f = xcalloc(1, sizeof(*f));
        struct rm_error err = { 0 };

        world_init(&f->world);
        (void) tnode_start(&f->world, 0, 0);
        EXPECT(&f->world, joined(&f->world, 1), 1000);
        f->config.state_dir = f->world.dir;
        f->store = xasprintf("%s/launch", f->world.dir);
        f->rmd = (struct rmd) { .base = f->world.base, .config = &f->config, .cluster = f->world.nodes[0].cluster };
        assert_int_equal(bodies_create(&f->rmd, &f->rmd.bodies, &err), 0);
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        bodies_destroy(f->rmd.bodies);
        world_finish(&f->world);
        free(f->store);
        free(f);
        return 0;
}

/* A job of `uid` with so long an environment, unlike that of any other `number`. */
static void offer(struct fixture *f, uid_t uid, unsigned number, size_t env_bytes) {
        Rm__JobSpec *spec = xcalloc(1, sizeof(*spec));
        char *text = xcalloc(1, env_bytes + 1);

        rm__job_spec__init(spec);
        memset(text, 'x', env_bytes);
        (void) snprintf(text, env_bytes, "N%u.%u=", (unsigned) uid, number);
        text[strlen(text)] = 'x';
        spec->uid = uid;
        spec->env = xcalloc(1, sizeof(*spec->env));
        spec->env[spec->n_env++] = text;
        bodies_offer(f->rmd.bodies, spec);
        /* The job goes to the leader whether its body is kept here or not. */
        assert_int_equal(spec->n_env, 0);
        assert_int_equal(spec->body_digest.len, STATE_DIGEST_BYTES);
        rm__job_spec__free_unpacked(spec, NULL);
}

static unsigned kept(const struct fixture *f) {
        DIR *dir = opendir(f->store);
        const struct dirent *entry;
        unsigned n = 0;

        assert_non_null(dir);
        while ((entry = readdir(dir)))
                n += entry->d_name[0] != '.';
        (void) closedir(dir);
        return n;
}

static void test_number(void **state) {
        struct fixture *f = *state;

        for (unsigned i = 0; i < USER_MAX + 50; i++)
                offer(f, 1000, i, 64);
        assert_int_equal(kept(f), USER_MAX);
        /* The others have theirs. */
        offer(f, 1001, 0, 64);
        assert_int_equal(kept(f), USER_MAX + 1);
}

/* A submission that is repeated until there is a leader counts once. */
static void test_again(void **state) {
        struct fixture *f = *state;

        for (unsigned i = 0; i < 2 * USER_MAX; i++)
                offer(f, 1000, 7, 64);
        assert_int_equal(kept(f), 1);
        offer(f, 1000, 8, 64);
        assert_int_equal(kept(f), 2);
}

/* Users enough to reach the limit of all. */
static void test_bytes(void **state) {
        struct fixture *f = *state;
        const size_t env_bytes = 900000;
        const unsigned of_one = USER_MAX_BYTES / (env_bytes + 100);
        const unsigned of_all = MAX_BYTES / (env_bytes + 100);

        for (unsigned i = 0; i < of_one + 5; i++)
                offer(f, 1000, i, env_bytes);
        assert_int_equal(kept(f), of_one);
        for (unsigned i = 0; i < of_all; i++)
                offer(f, 1001 + i / of_one, i, env_bytes);
        assert_int_equal(kept(f), of_all);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_number, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_again, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_bytes, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
