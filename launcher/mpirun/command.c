#include "launcher/mpirun/command.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/util.h"
#include "launcher/client/suggest.h"
#include "launcher/mpirun/native.h"

#define NAME_MAX_BYTES 64

struct parser {
        char *const *args;
        size_t at;
        const struct command_option *options;
        size_t n_options;
        command_option_fn option;
        void *context;
        struct command command;
        uint32_t ranks; /* of this context, 0: not said yet */
        struct rm_error *err;
};

static void pass(struct parser *p, char *word) {
        p->command.argv = xrealloc(p->command.argv, (p->command.argc + 2) * sizeof(char *));
        p->command.argv[p->command.argc++] = word;
        p->command.argv[p->command.argc] = NULL;
}

/* "--name=value" or "-name" taken apart. False when the name is too long to be an option. */
static bool split_option(const char *word, char name[static NAME_MAX_BYTES], const char **ret_value) {
        const char *start = word + (word[1] == '-' ? 2 : 1);
        const char *equals = strchr(start, '=');
        size_t size = equals ? (size_t) (equals - start) : strlen(start);

        if (size >= NAME_MAX_BYTES)
                return false;
        memcpy(name, start, size);
        name[size] = 0;
        *ret_value = equals ? equals + 1 : NULL;
        return true;
}

static int take_rm_option(struct parser *p, size_t i, const char *value) {
        const struct command_option *o = &p->options[i];

        if (o->has_value && !value) {
                value = p->args[p->at];
                if (!value)
                        return error_set(p->err, -EINVAL, "--%s needs a value", o->name);
                p->at++;
        }
        if (!o->has_value && value)
                return error_set(p->err, -EINVAL, "--%s takes no value", o->name);
        return p->option(p->context, i, value, p->err);
}

static int take_ranks(struct parser *p, const char *word, const char *value) {
        int64_t ranks = 0;

        if (!value)
                return error_set(p->err, -EINVAL, "%s needs a number of ranks", word);
        if (parse_i64(value, 1, COMMAND_MAX_RANKS, &ranks) < 0)
                return error_set(p->err, -EINVAL, "%s: '%s' is not a number of ranks (1 to %u)", word, value, COMMAND_MAX_RANKS);
        if (p->ranks != 0 && p->ranks != (uint32_t) ranks)
                return error_set(p->err, -EINVAL, "the number of ranks is given twice (%u and %u)", p->ranks, (uint32_t) ranks);
        p->ranks = (uint32_t) ranks;
        p->command.n_ranks_at++;
        return 0;
}

static bool is_mapping(const char *name) {
        static const char *const names[] = {
                "map-by", "rank-by", "rankfile", "N", "npernode", "npersocket", "ppr", "pernode", "bynode", "bycore", "nolocal",
        };
        size_t size = strlen(name);

        /* Names of options may be cut. */
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(name, names[i]) == 0 || (size > 1 && strncmp(names[i], name, size) == 0))
                        return true;
        return false;
}

/* An unknown option is mpirun's to judge, unless it looks like a slip in one of ours. */
static int take_unknown(struct parser *p, const char *name) {
        for (size_t i = 0; i < p->n_options; i++)
                if (strlen(name) > 3 && suggest_distance(name, p->options[i].name) <= 2)
                        return error_set(p->err, -EINVAL, "unknown option '--%s': did you mean '--%s'?", name, p->options[i].name);
        return 0;
}

/* How a word of mpirun begins, which may be cut: "di" of "directory". */
static bool is_cut_of(const char *word, size_t size, const char *whole) {
        return size > 0 && size <= strlen(whole) && strncasecmp(word, whole, size) == 0;
}

/* Does mpirun write the output into files? `value`: of the option, such as "tag,dir=out". */
static bool writes_files(const char *name, const char *value) {
        size_t size = strlen(name);

        if (size > strlen("output-") && (is_cut_of(name, size, "output-directory") || is_cut_of(name, size, "output-filename")))
                return true;
        if (!is_cut_of(name, size, "output"))
                return false;
        for (const char *at = value; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
                size_t word = strcspn(at, "=,:");

                if (at[word] == '=' && (is_cut_of(at, word, "directory") || is_cut_of(at, word, "filename")))
                        return true;
        }
        return false;
}

static int take_native_option(struct parser *p, char *word, const char *name, const char *value) {
        enum native_kind kind = native_lookup(name);
        size_t words = 0;
        int r = 0;

        switch (kind) {
        case NATIVE_RANKS:
                r = take_ranks(p, word, value ? value : p->args[p->at]);
                words = value ? 0 : 1;
                break;
        case NATIVE_VALUE:
                words = value ? 0 : 1;
                if (writes_files(name, value ? value : p->args[p->at]))
                        return error_set(
                                p->err, -EINVAL,
                                "%s: mpirun of Open MPI 5.0 loses output that it writes into files: let the ranks write it, as in "
                                "rm-mpirun -n 4 sh -c './program >out.$OMPI_COMM_WORLD_RANK'",
                                word);
                break;
        case NATIVE_PAIR:
                words = value ? 1 : 2;
                break;
        case NATIVE_REFUSED:
                if (strcmp(name, "app") == 0)
                        return error_set(p->err, -EINVAL, "--app: put the contexts on the command line, separated by ':'");
                return error_set(p->err, -EINVAL,
                                 "%s: rmd decides where ranks run (limit it with --availability, or see 'rmctl help drain-node')",
                                 word);
        case NATIVE_AMBIGUOUS:
                return error_set(p->err, -EINVAL, "option '%s' is ambiguous: write it out", word);
        case NATIVE_UNKNOWN:
                r = take_unknown(p, name);
                break;
        case NATIVE_FLAG:
                break;
        }
        if (r < 0)
                return r;
        if (!p->command.mapping && (kind == NATIVE_VALUE || kind == NATIVE_FLAG) && is_mapping(name))
                p->command.mapping = word;
        pass(p, word);
        if (kind == NATIVE_RANKS)
                p->command.ranks_at = value ? p->command.argc - 1 : p->command.argc;
        for (; words > 0; words--) {
                if (!p->args[p->at])
                        return error_set(p->err, -EINVAL, "%s needs a value", word);
                pass(p, p->args[p->at++]);
        }
        return 0;
}

static int take_option(struct parser *p, char *word) {
        char name[NAME_MAX_BYTES];
        const char *value = NULL;

        if (!split_option(word, name, &value)) {
                pass(p, word);
                return 0;
        }
        if (strcmp(name, "help") == 0 || strcmp(name, "h") == 0)
                p->command.help = true;
        if (strcmp(name, "version") == 0 || strcmp(name, "V") == 0)
                p->command.version = true;
        if (p->command.help || p->command.version)
                return 0;
        for (size_t i = 0; i < p->n_options; i++)
                if (strcmp(name, p->options[i].name) == 0)
                        return take_rm_option(p, i, value);
        return take_native_option(p, word, name, value);
}

static bool is_separator(const char *word) {
        return strcmp(word, ":") == 0;
}

/* Options, PROGRAM and ARGS up to ":" or the end. */
static int take_context(struct parser *p) {
        char *word;
        int r;

        p->ranks = 0;
        while ((word = p->args[p->at]) && word[0] == '-' && word[1] && strcmp(word, "--") != 0) {
                p->at++;
                r = take_option(p, word);
                if (r < 0 || p->command.help || p->command.version)
                        return r;
        }
        if (word && strcmp(word, "--") == 0) {
                pass(p, word);
                word = p->args[++p->at];
        }
        if (!word || !*word || is_separator(word))
                return error_set(p->err, -EINVAL, "no program to run: rm-mpirun [RM OPTIONS] -n N [MPIRUN OPTIONS] PROGRAM [ARGS]");
        if (p->ranks == 0)
                return error_set(p->err, -EINVAL, "the number of ranks of '%s' is missing: put -n N before it", word);
        if (!p->command.program)
                p->command.program = word;
        for (; (word = p->args[p->at]) && !is_separator(word); p->at++)
                pass(p, word);
        p->command.ranks += p->ranks;
        p->command.contexts++;
        if (p->command.ranks > COMMAND_MAX_RANKS)
                return error_set(p->err, -EINVAL, "%u ranks are too many (at most %u)", p->command.ranks, COMMAND_MAX_RANKS);
        return 0;
}

int command_parse(char *const *args, const struct command_option *options, size_t n_options, command_option_fn option,
                  void *context, struct command *ret_command, struct rm_error *err) {
        static char mpirun[] = "mpirun";
        static char separator[] = ":";
        struct parser p = {
                .args = args, .options = options, .n_options = n_options, .option = option, .context = context, .err = err
        };
        int r;

        pass(&p, mpirun);
        for (;;) {
                r = take_context(&p);
                if (r < 0) {
                        command_finish(&p.command);
                        return r;
                }
                if (p.command.help || p.command.version || !p.args[p.at])
                        break;
                pass(&p, separator);
                p.at++;
        }
        *ret_command = p.command;
        return 0;
}

int command_keep_order(const struct command *command, const char *why, struct rm_error *err) {
        if (command->contexts > 1)
                return error_set(err, -EINVAL, "%s is for one program, not for several separated by ':'", why);
        if (!command->mapping)
                return 0;
        return error_set(err, -EINVAL, "%s cannot be combined with %s: ranks must be placed in their order", why, command->mapping);
}

int command_reserve(struct command *command, uint32_t ranks, const char *why, struct rm_error *err) {
        char *word = command->argv[command->ranks_at];
        const char *equals = strchr(word, '=');

        if (command_keep_order(command, why, err) < 0)
                return err->code;
        if (command->n_ranks_at > 1)
                return error_set(err, -EINVAL, "with %s, give the number of ranks once", why);
        command->changed = xasprintf("%.*s%u", equals ? (int) (equals + 1 - word) : 0, word, ranks);
        command->argv[command->ranks_at] = command->changed;
        return 0;
}

void command_finish(struct command *command) {
        free(command->argv);
        free(command->changed);
        *command = (struct command) { 0 };
}
