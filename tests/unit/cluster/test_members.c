/* The choice of voters: steps are taken until none is left. */
#include "cluster_test.h"

#include "daemon/cluster/members.h"

#define NODES 8

struct model {
        struct members_node nodes[NODES];
        char names[NODES][4];
        size_t n;
};

static void model_init(struct model *m, size_t n) {
        memset(m, 0, sizeof(*m));
        m->n = n;
        for (size_t i = 0; i < n; i++) {
                (void) snprintf(m->names[i], sizeof(m->names[i]), "n%zu", i + 1);
                m->nodes[i] = (struct members_node) { .name = m->names[i], .switch_at = -1, .usable = true };
        }
        m->nodes[0].self = true;
        m->nodes[0].role = RAFTLOG_VOTER;
        m->nodes[0].id = 1;
        m->nodes[0].current = true;
}

static void take(struct model *m, const struct members_step *step) {
        struct members_node *node = &m->nodes[step->node - m->nodes];

        switch (step->action) {
        case MEMBERS_INVITE:
                assert_int_equal(node->id, 0);
                node->id = (uint64_t) (node - m->nodes) + 1;
                break;
        case MEMBERS_ADD:
                assert_int_equal(node->role, RAFTLOG_NONE);
                node->role = RAFTLOG_SPARE;
                break;
        case MEMBERS_FILL:
                assert_int_equal(node->role, RAFTLOG_SPARE);
                node->role = RAFTLOG_STANDBY;
                node->current = true;
                break;
        case MEMBERS_PROMOTE:
                assert_int_equal(node->role, RAFTLOG_STANDBY);
                assert_true(node->current);
                node->role = RAFTLOG_VOTER;
                break;
        case MEMBERS_REMOVE:
                assert_false(node->self);
                node->role = RAFTLOG_NONE;
                node->id = 0;
                node->current = false;
                break;
        case MEMBERS_TRANSFER:
                assert_int_equal(node->role, RAFTLOG_VOTER);
                for (size_t i = 0; i < m->n; i++)
                        m->nodes[i].self = &m->nodes[i] == node;
                break;
        default:
                fail();
        }
}

/* Until there is nothing to do; the voters as "n1 n3", the leader with a star. */
static const char *settle(struct model *m, unsigned requested) {
        static char text[64];
        struct members_step step;
        unsigned steps = 0;
        size_t used = 0;

        while ((step = members_next(m->nodes, m->n, requested)).action != MEMBERS_NOTHING) {
                take(m, &step);
                assert_true(++steps < 40);
        }
        text[0] = 0;
        for (size_t i = 0; i < m->n; i++)
                if (m->nodes[i].role != RAFTLOG_NONE)
                        used += (size_t) snprintf(text + used, sizeof(text) - used, "%s%s%s%s", used ? " " : "", m->nodes[i].name,
                                                  m->nodes[i].self ? "*" : "", m->nodes[i].role == RAFTLOG_VOTER ? "" : "?");
        return text;
}

static void test_odd(void **state) {
        static const char *const three[] = { "", "n1*", "n1*", "n1* n2 n3", "n1* n2 n3", "n1* n2 n3" };
        static const char *const five[] = { "", "n1*", "n1*", "n1* n2 n3", "n1* n2 n3", "n1* n2 n3 n4 n5" };
        struct model m;

        for (size_t n = 1; n <= 5; n++) {
                model_init(&m, n);
                assert_string_equal(settle(&m, 1), "n1*");
                assert_string_equal(settle(&m, 3), three[n]);
                assert_string_equal(settle(&m, 5), five[n]);
                assert_string_equal(settle(&m, 3), three[n]);
                assert_string_equal(settle(&m, 1), "n1*");
        }
}

/* The second does not get its vote before the third could: two are worse than one. */
static void test_together(void **state) {
        struct model m;
        struct members_step step;

        model_init(&m, 3);
        while ((step = members_next(m.nodes, m.n, 3)).action != MEMBERS_PROMOTE) {
                assert_int_not_equal(step.action, MEMBERS_NOTHING);
                take(&m, &step);
                if (step.action == MEMBERS_FILL && step.node == &m.nodes[2]) {
                        m.nodes[2].current = false;
                        assert_int_equal(members_next(m.nodes, m.n, 3).action, MEMBERS_NOTHING);
                        m.nodes[2].current = true;
                }
        }
        assert_int_equal(m.nodes[1].role, RAFTLOG_STANDBY);
        assert_int_equal(m.nodes[2].role, RAFTLOG_STANDBY);
}

static void test_switches(void **state) {
        struct model m;

        model_init(&m, 6);
        for (size_t i = 0; i < 6; i++)
                m.nodes[i].switch_at = (int32_t) (i / 2);
        assert_string_equal(settle(&m, 3), "n1* n3 n5");
        m.nodes[2].lost = true;
        m.nodes[2].usable = false;
        assert_string_equal(settle(&m, 3), "n1* n4 n5");
}

static void test_lost(void **state) {
        struct model m;

        model_init(&m, 3);
        assert_string_equal(settle(&m, 3), "n1* n2 n3");
        m.nodes[2].usable = false;
        assert_string_equal(settle(&m, 3), "n1* n2 n3"); /* it may come back */
        m.nodes[2].lost = true;
        assert_string_equal(settle(&m, 3), "n1* n2 n3"); /* there is no other */
        m.nodes[3] = (struct members_node) { .name = "n4", .switch_at = -1, .usable = true };
        m.n = 4;
        assert_string_equal(settle(&m, 3), "n1* n2 n4");
        m.nodes[2].usable = true;
        m.nodes[2].lost = false;
        assert_string_equal(settle(&m, 3), "n1* n2 n4");
}

static void test_drained(void **state) {
        struct model m;

        model_init(&m, 4);
        assert_string_equal(settle(&m, 3), "n1* n2 n3");
        m.nodes[0].drained = true;
        assert_string_equal(settle(&m, 3), "n2* n3 n4");
        m.nodes[2].drained = true;
        assert_string_equal(settle(&m, 3), "n2* n3 n4"); /* all others are drained or voters */
        m.nodes[1].drained = true;
        assert_string_equal(settle(&m, 3), "n2 n3 n4*");
}

static void test_leaving(void **state) {
        struct model m;

        model_init(&m, 4);
        assert_string_equal(settle(&m, 3), "n1* n2 n3");
        m.nodes[0].leaving = true;
        assert_string_equal(settle(&m, 3), "n2* n3 n4");
        m.nodes[2].leaving = true; /* two are left that could */
        assert_string_equal(settle(&m, 3), "n2*");
        m.nodes[1].leaving = true;
        assert_string_equal(settle(&m, 3), "n4*");
        m.nodes[3].leaving = true; /* nobody else can */
        assert_string_equal(settle(&m, 3), "n4*");
}

/* A node that was to become a voter goes away in the middle. */
static void test_interrupted(void **state) {
        struct model m;
        struct members_step step;

        for (unsigned stop = 1; stop < 8; stop++) {
                unsigned steps = 0;

                model_init(&m, 4);
                while (steps < stop && (step = members_next(m.nodes, m.n, 3)).action != MEMBERS_NOTHING) {
                        take(&m, &step);
                        steps++;
                }
                if (m.nodes[1].role == RAFTLOG_VOTER)
                        continue;
                m.nodes[1].usable = m.nodes[1].current = false;
                assert_string_equal(settle(&m, 3), "n1* n3 n4");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_odd),         cmocka_unit_test(test_together), cmocka_unit_test(test_switches),
                cmocka_unit_test(test_lost),        cmocka_unit_test(test_drained),  cmocka_unit_test(test_leaving),
                cmocka_unit_test(test_interrupted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
