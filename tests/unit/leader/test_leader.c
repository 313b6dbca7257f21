/* The leader's object, made and destroyed several times in one process: a destroyed one acts no
 * more. */
#include "tests/unit/cluster/cluster_test.h"

#include "daemon/config/config.h"
#include "daemon/context.h"
#include "daemon/leader/leader.h"

struct fixture {
        struct world world;
        struct config config;
        struct rmd rmd;
        char *file; /* of availability */
};

static int set_up(void **state) {
        struct fixture *f = xcalloc(1, sizeof(*f));
        cleanup_free char *path = NULL;
        cleanup_free char *text = NULL;
        struct rm_error err = { 0 };

        world_init(&f->world);
        (void) tnode_start(&f->world, 0, 0);
        EXPECT(&f->world, joined(&f->world, 1) && cluster_state(f->world.nodes[0].cluster)->n_voters == 1, 1000);
        f->file = xasprintf("%s/availability", f->world.dir);
        path = xasprintf("%s/rmd.conf", f->world.dir);
        text = xasprintf("[cluster]\nbootstrap = yes\n[availability]\nfile = %s\npoll = 50ms\n", f->file);
        assert_int_equal(write_file_atomic(path, text, strlen(text), 0600, false), 0);
        if (config_load(path, &f->config, &err) < 0)
                fail_msg("%s", err.text);
        f->rmd = (struct rmd) { .base = f->world.base, .config = &f->config, .cluster = f->world.nodes[0].cluster };
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        leader_destroy(f->rmd.leader);
        config_finish(&f->config);
        world_finish(&f->world);
        free(f->file);
        free(f);
        return 0;
}

static void write_cores(struct fixture *f, unsigned cores) {
        cleanup_free char *text = xasprintf("n1:%u\n", cores);

        assert_int_equal(write_file_atomic(f->file, text, strlen(text), 0600, false), 0);
}

static uint32_t usable_cores(const struct fixture *f) {
        return node_usable_cores(state_node(cluster_state(f->rmd.cluster), "n1"));
}

/* The leader's decisions of before are on their way in the log; after them nothing comes any more,
 * whatever the file says. */
static void destroy_leader(struct fixture *f) {
        struct answer done = { 0 };
        unsigned changes, cores;

        leader_destroy(take_ptr(f->rmd.leader));
        propose_note(&f->world.nodes[0], "behind what it has decided", &done);
        EXPECT(&f->world, done.calls == 1, 1000);
        changes = f->world.nodes[0].of_leader;
        cores = usable_cores(f);
        write_cores(f, 3);
        RUN_UNTIL(&f->world, false, 1500); /* longer than its files wait, and its ticks are apart */
        assert_int_equal(f->world.nodes[0].of_leader, changes);
        assert_int_equal(usable_cores(f), cores);
}

static void test_made_again(void **state) {
        struct fixture *f = *state;

        for (unsigned round = 0; round < 3; round++) {
                write_cores(f, 1 + round % 2);
                f->rmd.leader = leader_create(&f->rmd);
                EXPECT(&f->world, usable_cores(f) == 1 + round % 2, 1000);
                destroy_leader(f);
                assert_int_equal(usable_cores(f), 1 + round % 2);
        }
}

/* Before its file is read, and a round is made. */
static void test_destroyed_at_once(void **state) {
        struct fixture *f = *state;

        write_cores(f, 1);
        for (unsigned round = 0; round < 5; round++) {
                f->rmd.leader = leader_create(&f->rmd);
                leader_destroy(take_ptr(f->rmd.leader));
        }
        RUN_UNTIL(&f->world, false, 500);
        assert_int_equal(f->world.nodes[0].of_leader, 0);
        assert_int_equal(usable_cores(f), 4);
}

/* The leader is destroyed while its file is read: how far that has come after some turns of the
 * loop depends on the machine. */
static void test_destroyed_soon(void **state) {
        struct fixture *f = *state;

        for (unsigned turns = 1; turns <= 8; turns *= 2) {
                write_cores(f, 1);
                f->rmd.leader = leader_create(&f->rmd);
                for (unsigned i = 0; i < turns; i++) {
                        (void) event_base_loop(f->world.base, EVLOOP_NONBLOCK);
                        (void) usleep(2000);
                }
                destroy_leader(f);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_made_again, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_destroyed_at_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_destroyed_soon, set_up, tear_down),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
