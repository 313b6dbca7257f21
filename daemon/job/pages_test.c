#include "daemon/job/pages_test.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/node/child_run.h"

#define PROGRAM RM_LIBEXEC_DIR "/rm-pages-test"
#define TEST_USEC (30U * 1000000U) /* it ends by itself in 20 s */
/* A busy machine says nothing about its kernel, so that the test is made again, less and less
 * often. */
#define AGAIN_FIRST_USEC (10U * 1000000U)
#define AGAIN_MOST_USEC (600U * 1000000U)
enum { EXIT_LATE = 3, TEXT_BYTES = 512 };

struct pages_test {
        struct event_base *base;
        char *criu_path;
        struct child_run *run; /* NULL: it does not run */
        struct event *timer;   /* begins the next test */
        uint64_t again_usec;
        bool known; /* a test has ended */
        bool passed;
        char text[TEXT_BYTES]; /* why it has not; "": it has */
};

static void finish(struct pages_test *test, bool passed, const char *text) {
        test->known = true;
        test->passed = passed;
        (void) text_format(test->text, sizeof(test->text), "%s", passed ? "" : text);
        test->text[strcspn(test->text, "\n")] = '\0';
        if (passed)
                log_info("moves can track the memory of groups: %.*s", (int) strcspn(text, "\n"), text);
        else
                log_warn("moves read the memory of groups again in the freeze, since its pages cannot be tracked here: %s",
                         test->text);
}

static void on_end(void *context, const struct child_end *end) {
        struct pages_test *test = context;
        bool exited = end->error == 0 && end->info.si_code == CLD_EXITED;

        test->run = NULL;
        if (exited && end->info.si_status == 0)
                finish(test, true, end->output);
        else if (exited)
                finish(test, false, end->output[0] ? end->output : "rm-pages-test failed and did not say why");
        else
                finish(test, false, "rm-pages-test was killed, or took too long");
        if (exited && end->info.si_status != EXIT_LATE)
                return;
        timer_arm(test->timer, test->again_usec);
        test->again_usec = test->again_usec < AGAIN_MOST_USEC / 2 ? 2 * test->again_usec : AGAIN_MOST_USEC;
}

static void begin(struct pages_test *test) {
        char *const argv[] = { (char *) "rm-pages-test", test->criu_path, NULL };
        const struct child_run_spec spec = { .program = PROGRAM,
                                             .argv = argv,
                                             .timeout_usec = TEST_USEC,
                                             .output_most_bytes = TEXT_BYTES,
                                             .done = on_end,
                                             .context = test };
        int r = child_run_start(test->base, &spec, &test->run);

        if (r < 0) {
                cleanup_free char *text = xasprintf("cannot start " PROGRAM ": %s", strerror(-r));

                finish(test, false, text);
        }
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
        begin(arg);
}

struct pages_test *pages_test_start(struct event_base *base, const char *criu_path) {
        struct pages_test *test = xcalloc(1, sizeof(*test));

        *test = (struct pages_test) { .base = base,
                                      .criu_path = xstrdup(criu_path),
                                      .again_usec = AGAIN_FIRST_USEC,
                                      .text = "the test of it that rmd makes at its start still runs" };
        test->timer = evtimer_new(base, on_timer, test);
        if (!test->timer)
                abort();
        begin(test);
        return test;
}

void pages_test_destroy(struct pages_test *test) {
        if (!test)
                return;
        child_run_abandon(test->run);
        event_free(test->timer);
        free(test->criu_path);
        free(test);
}

bool pages_test_runs(const struct pages_test *test) {
        return test && !test->known;
}

bool pages_test_passed(const struct pages_test *test, const char **ret_why) {
        if (!test || !test->passed)
                *ret_why = test ? test->text : "[move] tracking = no";
        return test && test->passed;
}
