/* Following a leader, with and without a log of one's own; the copy of the state on disk. */
#include "cluster_test.h"

#include "daemon/cluster/following.h"
#include "daemon/cluster/state_cache.h"
#include "daemon/peers/peer_message.h"

#define LOG 7U

struct fake {
        struct following *following;
        Rm__State *state;
        unsigned follows; /* that were sent */
        Rm__Follow last; /* of them */
        unsigned applied;
        unsigned installed;
        unsigned failed;
        uint64_t number; /* raft's, of its log */
};

static const Rm__State *fake_state(void *userdata) {
        struct fake *fake = userdata;

        return fake->state;
}

static void fake_replace(void *userdata, Rm__State *state) {
        struct fake *fake = userdata;

        rm__state__free_unpacked(fake->state, NULL);
        fake->state = state;
}

static int fake_apply(void *userdata, uint64_t index, const Rm__Command *command, struct rm_error *err) {
        struct fake *fake = userdata;

        fake->applied++;
        fake->state->index = index;
        return 0;
}

static int fake_send(void *userdata, const Rm__PeerMessage *message) {
        struct fake *fake = userdata;

        assert_int_equal(message->body_case, RM__PEER_MESSAGE__BODY_FOLLOW);
        fake->follows++;
        fake->last = *message->follow;
        return 0;
}

static uint64_t fake_number(void *userdata) {
        return ((const struct fake *) userdata)->number;
}

static void fake_installed(void *userdata) {
        ((struct fake *) userdata)->installed++;
}

static void fake_failed(void *userdata, const struct rm_error *why) {
        ((struct fake *) userdata)->failed++;
}

static void fake_init(struct fake *fake, uint64_t log_id) {
        static const struct following_ops ops = { .get_state = fake_state,
                                                  .replace = fake_replace,
                                                  .apply = fake_apply,
                                                  .get_number = fake_number,
                                                  .send = fake_send,
                                                  .on_installed = fake_installed,
                                                  .on_failed = fake_failed };
        const struct following_config config = { .cluster = "testers", .log_id = log_id };

        memset(fake, 0, sizeof(*fake));
        fake->state = state_create("testers");
        fake->following = following_create(&config, &ops, fake);
}

static void fake_finish(struct fake *fake) {
        following_destroy(fake->following);
        rm__state__free_unpacked(fake->state, NULL);
}

static void take_followed(struct fake *fake, uint64_t log, uint64_t index) {
        Rm__Followed followed = RM__FOLLOWED__INIT;

        followed.log = log;
        followed.index = index;
        following_take(fake->following, &PEER_MESSAGE(&followed));
}

/* The node's own log has applied entries up to `index`. */
static void apply_until(struct fake *fake, uint64_t index) {
        fake->state->index = index;
        following_applied(fake->following);
}

static void test_with_a_log(void **state) {
        struct fake fake;

        fake_init(&fake, LOG);
        apply_until(&fake, 3);
        assert_false(following_synced(fake.following)); /* there is no leader that could have said so */
        following_set_leader(fake.following, "n1");
        assert_int_equal(fake.follows, 1);
        assert_true(fake.last.voter);
        assert_int_equal(fake.last.log, LOG);
        take_followed(&fake, LOG, 5);
        assert_false(following_synced(fake.following));
        apply_until(&fake, 4);
        assert_false(following_synced(fake.following));
        apply_until(&fake, 5);
        assert_true(following_synced(fake.following));
        assert_int_equal(fake.installed, 1);
        apply_until(&fake, 6);
        assert_int_equal(fake.installed, 1);
        fake_finish(&fake);
}

static void test_leader_is_lost_and_found(void **state) {
        struct fake fake;

        fake_init(&fake, LOG);
        following_set_leader(fake.following, "n1");
        take_followed(&fake, LOG, 0);
        assert_true(following_synced(fake.following)); /* it has all already */
        following_set_leader(fake.following, NULL);
        assert_false(following_synced(fake.following));
        apply_until(&fake, 5);
        assert_false(following_synced(fake.following));
        following_set_leader(fake.following, "n2");
        assert_int_equal(fake.follows, 2);
        apply_until(&fake, 6); /* what the leader before had said does not count */
        assert_false(following_synced(fake.following));
        take_followed(&fake, LOG, 6);
        assert_true(following_synced(fake.following));
        assert_int_equal(fake.installed, 2);
        fake_finish(&fake);
}

static void test_leader_of_another_log(void **state) {
        struct fake fake;

        fake_init(&fake, LOG);
        following_set_leader(fake.following, "n1");
        take_followed(&fake, LOG + 1, 0);
        assert_false(following_synced(fake.following));
        apply_until(&fake, 1);
        assert_false(following_synced(fake.following));
        following_heartbeat(fake.following);
        assert_int_equal(fake.follows, 1); /* it asks again, but not at once */
        fake_finish(&fake);
}

/* The commands of a node with a log come through raft only: twice, they would be done twice. */
static void test_sent_what_the_log_has(void **state) {
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__Append append = RM__APPEND__INIT;
        Rm__InstallPart part = RM__INSTALL_PART__INIT;
        struct fake fake;

        fake_init(&fake, LOG);
        following_set_leader(fake.following, "n1");
        append.index = 1;
        message.body_case = RM__PEER_MESSAGE__BODY_APPEND;
        message.append = &append;
        following_take(fake.following, &message);
        part.log = LOG;
        part.total_bytes = 10;
        part.data.data = (uint8_t *) "0123456789";
        part.data.len = 10;
        message.body_case = RM__PEER_MESSAGE__BODY_INSTALL_PART;
        message.install_part = &part;
        following_take(fake.following, &message);
        assert_int_equal(fake.applied, 0);
        assert_int_equal(fake.state->index, 0);
        assert_int_equal(fake.installed, 0);
        fake_finish(&fake);
}

static const Rm__State *get_state(void *userdata, uint64_t *ret_log) {
        *ret_log = 99;
        return userdata;
}

static void test_cache(void **unused) {
        char dir[] = "/tmp/test-cache-XXXXXX";
        struct event_base *base = event_base_new();
        Rm__State *state = state_create("testers");
        Rm__State *loaded = NULL;
        struct state_cache *cache;
        uint64_t log = 0;

        assert_non_null(mkdtemp(dir));
        cleanup_free char *path = xasprintf("%s/state", dir);

        assert_int_equal(state_cache_load(path, &loaded, &log), -ENOENT);
        state->index = 42;
        cache = state_cache_create(base, path, get_state, state);
        state_cache_touch(cache);
        state_cache_destroy(cache); /* writes at the end */
        assert_int_equal(state_cache_load(path, &loaded, &log), 0);
        assert_int_equal(loaded->index, 42);
        assert_int_equal(log, 99);
        rm__state__free_unpacked(loaded, NULL);
        assert_int_equal(truncate(path, 20), 0);
        assert_int_equal(state_cache_load(path, &loaded, &log), -EBADMSG);
        assert_int_equal(truncate(path, 3), 0);
        assert_int_equal(state_cache_load(path, &loaded, &log), -EBADMSG);
        rm__state__free_unpacked(state, NULL);
        event_base_free(base);
        (void) remove_tree(dir);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_with_a_log),
                cmocka_unit_test(test_leader_is_lost_and_found),
                cmocka_unit_test(test_leader_of_another_log),
                cmocka_unit_test(test_sent_what_the_log_has),
                cmocka_unit_test(test_cache),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
