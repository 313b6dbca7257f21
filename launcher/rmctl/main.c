/* rmctl: look at the cluster and steer it. */
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/util.h"
#include "common/version.h"
#include "launcher/rmctl/verb.h"

/* COLUMNS is exported by users who mean it; a shell keeps its own to itself. */
static size_t terminal_width(void) {
        const char *columns = getenv("COLUMNS");
        struct winsize size;
        int64_t number = 0;

        if (columns && parse_i64(columns, 1, 10000, &number) == 0)
                return (size_t) number;
        if (isatty(STDOUT_FILENO) != 1)
                return 0;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
                return size.ws_col;
        return 80;
}

static bool wants_colours(void) {
        const char *no_colour = getenv("NO_COLOR");
        const char *term = getenv("TERM");

        return isatty(STDOUT_FILENO) == 1 && !(no_colour && *no_colour) && !(term && strcmp(term, "dumb") == 0);
}

/* Options that every verb takes. */
static bool take_common(struct call *call, const char *name) {
        if (strcmp(name, "json") == 0)
                call->json = true;
        else if (strcmp(name, "no-header") == 0)
                call->header = false;
        else
                return false;
        return true;
}

/* "name" or "name=value" at word *at. */
static int take_flag(struct call *call, char **words, size_t *at) {
        const char *word = words[*at] + 2;
        size_t n = strcspn(word, "=");

        for (size_t i = 0; i < CALL_MAX_FLAGS && call->verb->flags[i].name; i++) {
                const struct flag *flag = &call->verb->flags[i];

                if (strlen(flag->name) != n || strncmp(flag->name, word, n) != 0)
                        continue;
                if (!flag->value && word[n])
                        return call_usage(call, "--%s takes no value", flag->name);
                if (!flag->value)
                        call->values[i] = "";
                else if (word[n])
                        call->values[i] = word + n + 1;
                else if (words[*at + 1])
                        call->values[i] = words[++*at];
                else
                        return call_usage(call, "--%s needs a value", flag->name);
                return 0;
        }
        return call_usage(call, "unknown option '%s' (see 'rmctl help %s')", words[*at], call->verb->name);
}

/* Words after the verb, in any order. Returns 1 when help is wanted. */
static int take_words(struct call *call, char **words) {
        bool only_args = false;

        for (size_t i = 0; words[i]; i++) {
                int r = 0;

                if (only_args || strncmp(words[i], "-", 1) != 0 || strcmp(words[i], "-") == 0)
                        call->args[call->n_args++] = words[i];
                else if (strcmp(words[i], "--") == 0)
                        only_args = true;
                else if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0)
                        return 1;
                else if (strncmp(words[i], "--", 2) != 0)
                        r = call_usage(call, "unknown option '%s' (see 'rmctl help %s')", words[i], call->verb->name);
                else if (!take_common(call, words[i] + 2))
                        r = take_flag(call, words, &i);
                if (r < 0)
                        return r;
        }
        if (call->n_args < call->verb->min_args)
                return call_usage(call, "missing argument: rmctl %s %s", call->verb->name, call->verb->args);
        if (call->n_args > call->verb->max_args)
                return call_usage(call, "unexpected argument '%s': rmctl %s%s%s", call->args[call->verb->max_args],
                                  call->verb->name, *call->verb->args ? " " : "", call->verb->args);
        return 0;
}

/* A text of rmd that begins with the verb already needs it only once. */
static void print_error(const struct call *call) {
        const char *text = error_text(&call->err);
        size_t n = strlen(call->verb->name);
        bool named = strncmp(text, call->verb->name, n) == 0 && text[n] == ':';

        (void) fflush(stdout);
        if (named)
                (void) fprintf(stderr, "rmctl: %s\n", text);
        else
                (void) fprintf(stderr, "rmctl: %s: %s\n", call->verb->name, text);
}

static int run_verb(struct call *call, char **words) {
        char *help_args[] = { (char *) call->verb->name, NULL };
        int r = take_words(call, words);

        if (r > 0) {
                call->verb = &verb_help;
                call->args[0] = help_args[0];
                call->n_args = 1;
                r = 0;
        }
        if (r == 0)
                r = call->verb->run(call);
        if (r >= 0)
                return r;
        print_error(call);
        return call->usage ? EXIT_USAGE : client_exit_code(r);
}

static int no_verb(const char *word) {
        const char *guess = verb_guess(word);

        if (guess)
                (void) fprintf(stderr, "rmctl: there is no '%s': did you mean '%s'?\n", word, guess);
        else
                (void) fprintf(stderr, "rmctl: there is no '%s': 'rmctl help' lists what there is\n", word);
        return EXIT_USAGE;
}

/* The name of the verb in full: under the name rm-checkpoint verbs are shorter. */
static char *full_name(const char *program, char *word) {
        static const char *const names[][2] = { { "list", "list-checkpoints" },    { "verify", "verify-checkpoint" },
                                                { "remove", "remove-checkpoint" }, { "export", "export-checkpoint" },
                                                { "import", "import-checkpoint" }, { "show", "show-portable" },
                                                { "merge", "merge-portable" } };
        const char *slash = strrchr(program, '/');

        if (strcmp(slash ? slash + 1 : program, "rm-checkpoint") != 0)
                return word;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(word, names[i][0]) == 0)
                        return (char *) names[i][1];
        return word;
}

int main(int argc, char **argv) {
        struct call call = { .header = true };
        int at = 1;
        int code;

        stdio_begin();
        (void) setlocale(LC_CTYPE, "");
        call.width = terminal_width();
        call.colours = wants_colours();
        for (; at < argc && argv[at][0] == '-'; at++) {
                if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0)
                        break;
                if (strcmp(argv[at], "--version") == 0) {
                        (void) puts("rmctl (rmd) " RM_VERSION);
                        return EXIT_DONE;
                }
                if (strncmp(argv[at], "--", 2) != 0 || !take_common(&call, argv[at] + 2)) {
                        (void) fprintf(stderr, "rmctl: unknown option '%s': 'rmctl help' shows how it is used\n", argv[at]);
                        return EXIT_USAGE;
                }
        }
        if (at >= argc) {
                (void) fputs("rmctl: command missing, for example 'rmctl status'; 'rmctl help' lists all commands\n", stderr);
                return EXIT_USAGE;
        }
        argv[at] = full_name(argv[0], argv[at]);
        call.verb = argv[at][0] == '-' ? &verb_help : verb_find(argv[at]);
        if (!call.verb)
                return no_verb(argv[at]);
        call.args = xcalloc((size_t) argc + 1, sizeof(char *));
        code = run_verb(&call, argv + at + 1);
        if (fflush(stdout) != 0 || ferror(stdout)) {
                (void) fprintf(stderr, "rmctl: cannot write the answer: %s\n", strerror(errno));
                code = code ? code : EXIT_REFUSED;
        }
        client_close(call.client);
        free(call.args);
        return code;
}
