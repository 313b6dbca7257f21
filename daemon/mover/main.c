/* rm-mover: carries one capsule from one node to another, or takes it there; or stores checkpoints
 * of it, sends one, verifies them, or exchanges one with its owner. Started by rmd with its socket
 * as descriptor 3. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/mover/mover.h"

#define CONTROL_FD 3
#define DESCRIPTORS_MAX 20480U

static int usage(void) {
        (void) fputs("usage: rm-mover send|receive|save|load|verify|export|import\n"
                     "       rm-mover remove|unmount DIR\n"
                     "Part of rmd, which starts it, with a socket as descriptor 3; not to be run by hand.\n",
                     stderr);
        return 2;
}

/* rm-mover needs a descriptor for each directory on the way down, for each image that CRIU writes
 * at once, and four for each of IMAGE_PAGES_MAX processes whose memory is tracked. */
static void limits_raise(void) {
        struct rlimit limit = { .rlim_cur = DESCRIPTORS_MAX, .rlim_max = DESCRIPTORS_MAX };

        if (setrlimit(RLIMIT_NOFILE, &limit) == 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return;
        if (limit.rlim_cur < limit.rlim_max)
                limit.rlim_cur = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
}

typedef int (*role_fn)(struct control *control);

/* NULL: there is none of that name. */
static role_fn role_find(const char *name) {
        static const struct {
                const char *name;
                role_fn run;
        } roles[] = { { "send", mover_send },     { "receive", mover_receive }, { "save", mover_save },    { "load", mover_load },
                      { "verify", mover_verify }, { "export", mover_export },   { "import", mover_import } };

        for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
                if (strcmp(roles[i].name, name) == 0)
                        return roles[i].run;
        return NULL;
}

int main(int argc, char **argv) {
        struct control control;
        struct stat st;
        role_fn role = argc == 2 ? role_find(argv[1]) : NULL;
        int r;

        log_setup("rm-mover", LOG_INFO);
        if (argc == 3 && strcmp(argv[1], "remove") == 0)
                return mover_remove(argv[2]) < 0 ? 1 : 0;
        if (argc == 3 && strcmp(argv[1], "unmount") == 0)
                return mover_unmount(argv[2]) < 0 ? 1 : 0;
        if (!role || fstat(CONTROL_FD, &st) < 0 || !S_ISSOCK(st.st_mode))
                return usage();
        /* rmd may have gone before this line: then the socket is at its end, which the first look
         * shows. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) signal(SIGPIPE, SIG_IGN);
        (void) set_cloexec(CONTROL_FD, true);
        (void) umask(0077);
        limits_raise();
        control_init(&control, CONTROL_FD);
        r = role(&control);
        control_finish(&control);
        return r < 0 ? 1 : 0;
}
