/* rmctl help [VERB] */
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "launcher/rmctl/verb.h"

static const char *role_text(enum role role) {
        switch (role) {
        case ROLE_OWNER:
                return "For the job's owner and administrators.";
        case ROLE_ADMIN:
                return "For administrators.";
        case ROLE_ANYONE:
        default:
                return "For everyone.";
        }
}

static void print_flag(const char *name, const char *value, const char *help) {
        cleanup_free char *left = xasprintf("--%s%s%s", name, value ? " " : "", value ? value : "");

        (void) printf("  %-20s %s\n", left, help);
}

static void help_verb(const struct verb *verb) {
        (void) printf("Usage: rmctl %s%s%s [OPTIONS]\n%s\n%s\n\n", verb->name, *verb->args ? " " : "", verb->args, verb->help,
                      role_text(verb->role));
        for (size_t i = 0; i < CALL_MAX_FLAGS && verb->flags[i].name; i++)
                print_flag(verb->flags[i].name, verb->flags[i].value, verb->flags[i].help);
        print_flag("json", NULL, "print JSON");
        print_flag("no-header", NULL, "print tables without the header line");
}

static void help_all(void) {
        (void) puts("Usage: rmctl VERB [ARGUMENTS] [OPTIONS]\n"
                    "Query and control a cluster that runs rmd, from any node.\n");
        for (size_t i = 0; i < n_verbs; i++) {
                cleanup_free char *left = xasprintf("%s %s", verbs[i]->name, verbs[i]->args);

                (void) printf("  %-24s %.*s\n", left, (int) strcspn(verbs[i]->help, "\n"), verbs[i]->help);
        }
        (void) puts("\nNODES are host lists such as n1,n[3-5]. All verbs take --json and --no-header.\n"
                    "'rmctl help VERB' describes a verb.\n"
                    "Exit status: 0 success, 1 refused or failed, 2 usage, 3 no rmd on this node.");
}

/* For the shell's completion, so that it cannot fall behind. */
static void help_names(void) {
        for (size_t i = 0; i < n_verbs; i++)
                (void) printf("%s\n", verbs[i]->name);
}

static void help_options(const struct verb *verb) {
        for (size_t i = 0; i < CALL_MAX_FLAGS && verb->flags[i].name; i++)
                (void) printf("--%s\n", verb->flags[i].name);
        (void) puts("--json\n--no-header\n--help");
}

static int run(struct call *call) {
        const struct verb *verb = NULL;

        if (call->n_args > 0) {
                const char *guess = verb_guess(call->args[0]);

                verb = verb_find(call->args[0]);
                if (!verb && guess)
                        return call_usage(call, "there is no '%s': did you mean '%s'?", call->args[0], guess);
                if (!verb)
                        return call_usage(call, "there is no '%s': 'rmctl help' lists what there is", call->args[0]);
        }
        if (call->values[0])
                help_names();
        else if (call->values[1] && verb)
                help_options(verb);
        else if (verb)
                help_verb(verb);
        else
                help_all();
        return 0;
}

const struct verb verb_help = {
        .name = "help",
        .args = "[VERB]",
        .max_args = 1,
        .help = "list the verbs, or describe one",
        .flags = { { "names", NULL, "print only the names of the verbs" },
                   { "options", NULL, "print only the names of the verb's options" } },
        .run = run,
};
