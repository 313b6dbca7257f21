/* rm-mpirun: mpirun, under the care of rmd. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "common/version.h"
#include "launcher/client/client.h"
#include "launcher/client/frontend.h"
#include "launcher/mpirun/capture.h"
#include "launcher/mpirun/command.h"
#include "launcher/mpirun/options.h"
#include "launcher/mpirun/submit.h"

#define PROGRAM "rm-mpirun"
/* A restart of rmd takes seconds, an update of a node minutes. */
#define AWAY_USEC (UINT64_C(600) * 1000000U)

static const char help_text[] =
        "Usage: rm-mpirun [RM OPTIONS] -n N [MPIRUN OPTIONS] PROGRAM [ARGS]\n"
        "Run an MPI program as mpirun does, on nodes that rmd selects; rmd can move its ranks while it runs.\n"
        "\n"
        "RM options, anywhere before PROGRAM (all others are passed to mpirun, see mpirun(1)):\n"
        "  --availability FILE  limit the job to the cores in FILE, lines of 'hostname:cores'\n"
        "  --checkpoint EVERY|auto   save the job so often, as 5m, to go on from there when a node fails\n"
        "  --checkpoint-at-limit     with --time: save the job at its limit and let it wait to go on, do not end it\n"
        "  --checkpoint-files size|copy   files written in place: not saved (default), or copied\n"
        "  --detach             print the job's number and return; see 'rmctl help attach-job'\n"
        "  --group-size K|auto  number of ranks in a group, the unit that moves\n"
        "  --job-name S         name in 'rmctl list-jobs' (default: PROGRAM)\n"
        "  --max-ranks N        start N ranks, of which those over -n wait, for 'rmctl resize-job'\n"
        "  --mem SIZE[/rank]    memory of the job, or of each rank, as 8G; nodes with less of it free are not used\n"
        "  --min-ranks N        with --max-ranks: the fewest that the job can be asked to go on with (default: -n)\n"
        "  --on-node-loss abort|restart|fold   when a node of the job fails: end it (default), start it again (default\n"
        "                       with --checkpoint or --on-rank-loss continue), or do so at once, even if ranks\n"
        "                       have to share cores\n"
        "  --on-rank-loss abort|continue[:critical=RANKS]   when a rank is lost: end the job (default), or go on\n"
        "                       without it; critical ones, as 0,5-7, are replaced by spare ones\n"
        "  --policy P           placement policy (see 'rmctl list-policies')\n"
        "  --priority N         0 to 1000000; higher is placed first (default 0)\n"
        "  --recover-wait TIME  with --on-node-loss restart: then share cores after so long (default: never)\n"
        "  --restarts N         with --on-node-loss restart or fold: how often at most (default 3)\n"
        "  --spare-ranks N      with critical ranks: start N more, which wait to replace those that are lost\n"
        "  --spares N           reserve N idle nodes for when a node of the job is drained or loses cores\n"
        "  --time LIMIT         end the job after this time: 90, 90s, 5m, 2h, 1d\n"
        "  --wait TIME          cancel the job if it has not started within this time\n"
        "  --help, --version\n"
        "\n"
        "Each option is also a variable (RM_GROUP_SIZE for --group-size) and a key of [mpirun] in\n"
        "/etc/rmd/rmd.conf. The option overrides the variable, which overrides the file.\n"
        "Exit status: that of the job (128+N if signal N ended it), 1 refused, 2 usage, 3 no rmd on this node.\n";

static int fail(const struct rm_error *err, int code) {
        (void) fprintf(stderr, PROGRAM ": %s\n", error_text(err));
        return code;
}

static const char *config_path(void) {
        const char *path = getenv("RM_CONFIG");

        return path && *path ? path : OPTIONS_CONFIG_PATH;
}

static int read_settings(char **args, struct command *ret_command, struct options *options, struct rm_error *err) {
        int r = command_parse(args, options_known, OPTION_COUNT, options_take, options, ret_command, err);

        if (r < 0 || ret_command->help || ret_command->version)
                return r;
        options_read_environment(options);
        r = options_read_config(options, config_path(), err);
        if (r == 0)
                r = options_resolve(options, err);
        if (r == 0)
                r = options_check_ranks(options, ret_command->ranks, err);
        if (r == 0 && options->on_rank_loss != 0)
                r = command_keep_order(ret_command, "--on-rank-loss continue", err);
        if (r == 0 && options->max_ranks > 0)
                return command_reserve(ret_command, options->max_ranks, "--max-ranks", err);
        if (r == 0 && options->spare_ranks > 0)
                return command_reserve(ret_command, ret_command->ranks + options->spare_ranks, "--spare-ranks", err);
        return r;
}

static int serve(struct frontend *frontend, uint64_t job, const struct options *options, bool input) {
        struct attachment_config config = {
                .program = PROGRAM,
                .job = job,
                .input = input,
                .submitted = true,
                .release = true,
                .cancel_unread = true,
                .wait_set = options->wait_set,
                .wait_usec = options->wait_usec,
                .away_usec = AWAY_USEC,
        };

        return frontend_run(frontend, &config);
}

static int run(const struct command *command, const struct options *options) {
        bool input = !options->detach && frontend_has_input();
        struct rm_error err = { 0 };
        struct frontend *frontend = NULL;
        Rm__JobSpec *spec = NULL;
        uint64_t job = 0;
        int code;
        int r;

        r = capture_job(command, options, input, &spec, &err);
        if (r < 0)
                return fail(&err, EXIT_USAGE);
        r = frontend_create(!options->detach, &frontend, &err);
        if (r == 0)
                r = submit_job(PROGRAM, spec, frontend_end_fd(frontend), &job, &err);
        capture_free(spec);
        if (r < 0) {
                code = fail(&err, client_exit_code(r));
                /* A signal that has waited ends us here. */
                frontend_destroy(frontend);
                return code;
        }
        if (options->detach)
                code = printf("%" PRIu64 "\n", job) < 0 || fflush(stdout) != 0 ? EXIT_REFUSED : EXIT_DONE;
        else
                code = serve(frontend, job, options, input);
        frontend_destroy(frontend);
        return code;
}

int main(int argc, char **argv) {
        struct options options = { 0 };
        struct command command = { 0 };
        struct rm_error err = { 0 };
        int code = EXIT_DONE;

        (void) argc;
        stdio_begin();
        if (read_settings(argv + 1, &command, &options, &err) < 0)
                code = fail(&err, EXIT_USAGE);
        else if (command.help)
                (void) fputs(help_text, stdout);
        else if (command.version)
                (void) puts(PROGRAM " (rmd) " RM_VERSION);
        else
                code = run(&command, &options);
        command_finish(&command);
        options_finish(&options);
        return code;
}
