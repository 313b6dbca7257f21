/* The common functions of the tests of scheduling: snapshots from text with ' for ", random ones,
 * and policies called in the process. */
#ifndef RM_TESTS_SCHED_TEST_H
#define RM_TESTS_SCHED_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/sched/plan.h"
#include "daemon/sched/round.h"
#include "daemon/sched/snapshot.h"

/* Fails the test when it cannot be parsed. */
struct snapshot *test_snapshot(const char *text);
/* The same with the error expected: returns it (static storage). Fails the test when parsing
 * succeeds. */
const char *test_snapshot_error(const char *text);

/* Small, reproducible numbers. */
struct dice {
        uint64_t state;
};
uint32_t dice_roll(struct dice *dice, uint32_t n); /* 0 .. n-1 */

/* A policy loaded into this process, from the directory in the environment variable
 * TEST_POLICY_DIR. */
struct test_policy {
        void *library;
        const struct rm_policy_plugin *plugin;
};
void test_policy_load(struct test_policy *policy, const char *name);
void test_policy_unload(struct test_policy *policy);
/* Places with 100 s to answer: the machine may be busy; the plan is the caller's. */
int test_policy_place(const struct test_policy *policy, const struct rm_snapshot *snapshot, struct rm_plan **ret_plan);

/* A whole round, every pass of it answered by the policy `name`. The result is the caller's. Fails
 * the test when anything is refused. */
struct round_result *test_round(const char *name, const struct rm_snapshot *snapshot, const struct round_job *jobs);

#endif
