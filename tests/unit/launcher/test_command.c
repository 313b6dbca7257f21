#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "launcher/mpirun/command.h"
#include "launcher/mpirun/options.h"

struct seen {
        char text[256];
};

static int see(void *context, size_t option, const char *value, struct rm_error *err) {
        struct seen *seen = context;
        size_t used = strlen(seen->text);

        (void) err;
        (void) snprintf(seen->text + used, sizeof(seen->text) - used, "%s=%s;", options_known[option].name, value ? value : "");
        return 0;
}

/* A case: words separated by a blank, what goes to mpirun, the ranks, the RM options; or a part
 * of the error. */
struct example {
        const char *words;
        const char *passed;
        uint32_t ranks;
        const char *options;
        const char *error;
};

static int parse(const char *words, struct command *command, struct seen *seen, struct rm_error *err, char **copy) {
        char *args[64];
        size_t n = 0;

        *copy = xstrdup(words);
        for (char *save = NULL, *w = strtok_r(*copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
                args[n++] = w;
        args[n] = NULL;
        return command_parse(args, options_known, OPTION_COUNT, see, seen, command, err);
}

static char *join(char *const *words) {
        char *text = xstrdup("");

        for (size_t i = 0; words[i]; i++) {
                char *longer = xasprintf("%s%s%s", text, i ? " " : "", words[i]);

                free(text);
                text = longer;
        }
        return text;
}

static void check(const struct example *e) {
        struct command command = { 0 };
        struct seen seen = { "" };
        struct rm_error err = { 0 };
        cleanup_free char *copy = NULL;
        int r = parse(e->words, &command, &seen, &err, &copy);

        if (e->error) {
                assert_int_equal(r, -EINVAL);
                if (!strstr(err.text, e->error))
                        fail_msg("'%s': '%s' does not say '%s'", e->words, err.text, e->error);
                return;
        }
        if (r < 0)
                fail_msg("'%s': %s", e->words, err.text);
        cleanup_free char *passed = join(command.argv);
        assert_string_equal(passed, e->passed);
        assert_int_equal(command.ranks, e->ranks);
        assert_string_equal(seen.text, e->options ? e->options : "");
        command_finish(&command);
}

static void good_lines_are_understood(void **state) {
        static const struct example examples[] = {
                { "-n 4 a", "mpirun -n 4 a", 4, NULL, NULL },
                { "-np 4 a", "mpirun -np 4 a", 4, NULL, NULL },
                { "--np=4 a", "mpirun --np=4 a", 4, NULL, NULL },
                { "-c 4 a", "mpirun -c 4 a", 4, NULL, NULL },
                { "--n 4 a", "mpirun --n 4 a", 4, NULL, NULL },
                { "-n 2 -n 2 a", "mpirun -n 2 -n 2 a", 2, NULL, NULL },
                /* RM options anywhere before PROGRAM, none after. */
                { "--policy p -n 4 --group-size=2 a", "mpirun -n 4 a", 4, "policy=p;group-size=2;", NULL },
                { "-policy p -n 4 a", "mpirun -n 4 a", 4, "policy=p;", NULL },
                { "-n 4 --detach a", "mpirun -n 4 a", 4, "detach=;", NULL },
                { "-n 4 a --policy p -n 7 --detach", "mpirun -n 4 a --policy p -n 7 --detach", 4, NULL, NULL },
                { "-n 4 --time=5m --wait 3 --job-name x a", "mpirun -n 4 a", 4, "time=5m;wait=3;job-name=x;", NULL },
                /* A value that looks like an option or a program. */
                { "-x A=1 -n 1 a", "mpirun -x A=1 -n 1 a", 1, NULL, NULL },
                { "--wdir --policy -n 1 a", "mpirun --wdir --policy -n 1 a", 1, NULL, NULL },
                { "--mca btl self,tcp -n 1 a", "mpirun --mca btl self,tcp -n 1 a", 1, NULL, NULL },
                { "-mca -n 3 -n 1 a", "mpirun -mca -n 3 -n 1 a", 1, NULL, NULL },
                { "--mca=btl self -n 1 a", "mpirun --mca=btl self -n 1 a", 1, NULL, NULL },
                { "--prtemca k v --map-by ppr:2:node -n 1 a", "mpirun --prtemca k v --map-by ppr:2:node -n 1 a", 1, NULL, NULL },
                { "--map-by=node -n 1 a -b", "mpirun --map-by=node -n 1 a -b", 1, NULL, NULL },
                { "--oversub --rank-b none -n 1 a", "mpirun --oversub --rank-b none -n 1 a", 1, NULL, NULL },
                { "--tag-output -q -n 1 a", "mpirun --tag-output -q -n 1 a", 1, NULL, NULL },
                { "--output tag,timestamp -n 1 a", "mpirun --output tag,timestamp -n 1 a", 1, NULL, NULL },
                { "--output=merge-stderr-to-stdout -n 1 a dir=x", "mpirun --output=merge-stderr-to-stdout -n 1 a dir=x", 1, NULL,
                  NULL },
                { "--brand-new-flag -n 1 a", "mpirun --brand-new-flag -n 1 a", 1, NULL, NULL },
                { "-n 1 -- a", "mpirun -n 1 -- a", 1, NULL, NULL },
                /* App contexts. */
                { "-n 2 a x : -n 3 b y", "mpirun -n 2 a x : -n 3 b y", 5, NULL, NULL },
                { "-n 2 a : --policy p -np 1 b", "mpirun -n 2 a : -np 1 b", 3, "policy=p;", NULL },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
                check(&examples[i]);
}

static void bad_lines_are_refused_clearly(void **state) {
        static const struct example examples[] = {
                { .words = "", .error = "no program" },
                { .words = "-n 4", .error = "no program" },
                { .words = "-n 4 a : ", .error = "no program" },
                { .words = ": -n 4 a", .error = "no program" },
                { .words = "a", .error = "the number of ranks of 'a' is missing" },
                { .words = "-n 4 a : b", .error = "the number of ranks of 'b' is missing" },
                { .words = "-n", .error = "-n needs" },
                { .words = "-n x a", .error = "'x'" },
                { .words = "-n 0 a", .error = "'0'" },
                { .words = "-n -3 a", .error = "'-3'" },
                { .words = "-n 99999999999 a", .error = "99999999999" },
                { .words = "-n 65536 a : -n 1 b", .error = "too many" },
                { .words = "-n 1 -np 2 a", .error = "twice" },
                { .words = "--policy", .error = "--policy needs a value" },
                { .words = "--detach=1 -n 1 a", .error = "takes no value" },
                { .words = "--polcy p -n 1 a", .error = "'--policy'" },
                { .words = "--groupsize 1 -n 1 a", .error = "'--group-size'" },
                { .words = "-H n1 -n 1 a", .error = "rmd decides" },
                { .words = "--hostfile h -n 1 a", .error = "rmd decides" },
                { .words = "--app f", .error = "':'" },
                { .words = "--output dir=out -n 1 a", .error = "--output: mpirun of Open MPI 5.0 loses output" },
                { .words = "--output=tag,file=out:nocopy -n 1 a", .error = "loses output" },
                { .words = "-n 1 --output merge,DI=out a", .error = "loses output" },
                { .words = "--output-filename f -n 1 a", .error = "loses output" },
                { .words = "--output-dir=d -n 1 a", .error = "loses output" },
                { .words = "-x", .error = "-x needs a value" },
                { .words = "--mca a", .error = "--mca needs a value" },
                { .words = "--ti x -n 1 a", .error = "ambiguous" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
                check(&examples[i]);
}

static void help_and_version_go_before_everything(void **state) {
        struct command command = { 0 };
        struct seen seen = { "" };
        cleanup_free char *copy = NULL;
        cleanup_free char *copy2 = NULL;
        cleanup_free char *copy3 = NULL;

        (void) state;
        assert_int_equal(parse("--help", &command, &seen, NULL, &copy), 0);
        assert_true(command.help);
        command_finish(&command);
        assert_int_equal(parse("-V", &command, &seen, NULL, &copy2), 0);
        assert_true(command.version);
        command_finish(&command);
        assert_int_equal(parse("-n 1 a --help", &command, &seen, NULL, &copy3), 0);
        assert_false(command.help);
        assert_string_equal(command.program, "a");
        command_finish(&command);
}

/* "words": what mpirun gets with 16 ranks, or why not. */
static void reserve(const char *words, const char *passed, const char *error) {
        struct command command = { 0 };
        struct seen seen = { "" };
        struct rm_error err = { 0 };
        cleanup_free char *copy = NULL;
        cleanup_free char *joined = NULL;
        int r;

        assert_int_equal(parse(words, &command, &seen, &err, &copy), 0);
        r = command_reserve(&command, 16, "--max-ranks", &err);
        joined = join(command.argv);
        if (passed)
                assert_string_equal(joined, passed);
        assert_int_equal(r, error ? -EINVAL : 0);
        if (error && !strstr(err.text, error))
                fail_msg("'%s': '%s' does not say '%s'", words, err.text, error);
        command_finish(&command);
}

static void reserve_is_started_too(void **state) {
        (void) state;
        reserve("-n 4 a -n 4", "mpirun -n 16 a -n 4", NULL);
        reserve("--np=4 a", "mpirun --np=16 a", NULL);
        reserve("-np 4 a", "mpirun -np 16 a", NULL);
        reserve("--tag-output -n 4 --bind-to none a", "mpirun --tag-output -n 16 --bind-to none a", NULL);
        reserve("-n 2 a : -n 2 b", NULL, "several");
        reserve("-n 4 -n 4 a", NULL, "once");
        reserve("-n 4 --map-by=node a", NULL, "--map-by=node");
        reserve("--rank-b x -n 4 a", NULL, "--rank-b");
        reserve("-N 2 -n 4 a", NULL, "-N");
}

/* "words": may ranks be in the order of their groups? NULL: yes. */
static void keep_order(const char *words, const char *error) {
        struct command command = { 0 };
        struct seen seen = { "" };
        struct rm_error err = { 0 };
        cleanup_free char *copy = NULL;

        assert_int_equal(parse(words, &command, &seen, &err, &copy), 0);
        assert_int_equal(command_keep_order(&command, "--x", &err), error ? -EINVAL : 0);
        if (error)
                assert_string_equal(err.text, error);
        command_finish(&command);
}

static void order_is_kept_by_one_program_without_mapping(void **state) {
        (void) state;
        keep_order("-n 4 a --map-by node", NULL);
        keep_order("-n 4 --bind-to none a", NULL);
        keep_order("-n 4 --map-by node a", "--x cannot be combined with --map-by: ranks must be placed in their order");
        keep_order("-n 4 a : -n 1 b", "--x is for one program, not for several separated by ':'");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reserve_is_started_too),
                cmocka_unit_test(order_is_kept_by_one_program_without_mapping),
                cmocka_unit_test(good_lines_are_understood),
                cmocka_unit_test(bad_lines_are_refused_clearly),
                cmocka_unit_test(help_and_version_go_before_everything),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
