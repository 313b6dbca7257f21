#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/policy/broken/broken.h"

/* Tries what a policy has no business doing; answers only when all of it was refused. */
static int place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || open("/tmp/rm-policy-escaped", O_WRONLY | O_CREAT, 0600) >= 0 ||
            kill(getppid(), 0) == 0 || geteuid() == 0 || execl("/bin/true", "true", NULL) == 0)
                abort();
        return place_nothing(self, snapshot, run, plan);
}

BROKEN_POLICY("escapes", place);
