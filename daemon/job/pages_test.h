/* Can the private memory of a group travel apart from CRIU's images here? rm-pages-test dumps and
 * restores a small process in this way, when rmd starts, and again where that took too long to
 * tell; the loop goes on meanwhile. */
#ifndef RM_JOB_PAGES_TEST_H
#define RM_JOB_PAGES_TEST_H

#include <stdbool.h>

struct event_base;
struct pages_test;

/* Starts the test; never returns NULL, since that the test cannot be run is a result too. */
struct pages_test *pages_test_start(struct event_base *base, const char *criu_path);
/* The test is killed if it still runs. NULL ok. */
void pages_test_destroy(struct pages_test *test);

/* The first test has not ended, which takes 30 s at most. `test` NULL: there is none, so that
 * nothing runs. */
bool pages_test_runs(const struct pages_test *test);
/* `test` NULL: there is none. False: `*ret_why` says why not, also that it is not known yet; one
 * line, valid until the loop goes on. */
bool pages_test_passed(const struct pages_test *test, const char **ret_why);

#endif
