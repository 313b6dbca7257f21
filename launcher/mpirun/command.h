/* The command line "[RM OPTIONS] -n N [MPIRUN OPTIONS] PROGRAM [ARGS] [: ...]" taken apart. */
#ifndef RM_LAUNCHER_MPIRUN_COMMAND_H
#define RM_LAUNCHER_MPIRUN_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define COMMAND_MAX_RANKS 65536U

struct command {
        char **argv;   /* for mpirun, argv[0] = "mpirun", NULL terminated; its strings belong to the caller of command_parse() */
        size_t argc;
        uint32_t ranks; /* of all contexts */
        size_t contexts;
        size_t ranks_at;     /* the word of argv with the number of ranks of the last context, "4" or "--np=4" */
        size_t n_ranks_at;   /* how many words give it */
        const char *mapping; /* an option that may give ranks other places than in their order; NULL: there is none */
        char *changed;       /* a word of argv that is not the caller's */
        const char *program; /* of the first context */
        bool help;
        bool version;
};

/* Is called for every RM option found; `value` NULL for one without. A negative return ends the
 * parse. */
typedef int (*command_option_fn)(void *context, size_t option, const char *value, struct rm_error *err);

/* An RM option as the parser needs to know it: "group-size". */
struct command_option {
        const char *name;
        bool has_value;
};

/* Take `args` (without the program's own name) apart. RM options may stand anywhere before PROGRAM,
 * as "--x V" or "--x=V"; what follows PROGRAM is never looked at, but for ":". -EINVAL with a text
 * for people. Nothing but `ret->help` or `ret->version` is set when one was asked for. */
int command_parse(char *const *args, const struct command_option *options, size_t n_options, command_option_fn option,
                  void *context, struct command *ret_command, struct rm_error *err);
/* mpirun is to start so many, at least `ranks`, of which the others are in reserve. -EINVAL: not
 * with this command line, and the text says why. */
int command_reserve(struct command *command, uint32_t ranks, const char *why, struct rm_error *err);
/* Ranks of one program must be in the order of their groups, for what `why` asks for. -EINVAL:
 * there are several, or the command line may place ranks otherwise. */
int command_keep_order(const struct command *command, const char *why, struct rm_error *err);
void command_finish(struct command *command);

#endif
