#include "launcher/policy-run/picture.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "common/util.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

static json_int_t integer(const json_t *object, const char *key) {
        const json_t *value = json_object_get(object, key);

        /* "4.0" is a number too, and was found to be a whole one. */
        return json_is_integer(value) ? json_integer_value(value) : (json_int_t) json_real_value(value);
}

static const char *string(const json_t *object, const char *key) {
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

static void print_head(FILE *out, const json_t *answer) {
        const json_t *bound = json_object_get(answer, "bound");
        json_int_t cost = integer(answer, "cost");

        (void) fprintf(out, "policy   %s", string(answer, "policy"));
        if (*string(answer, "method"))
                (void) fprintf(out, " (%s)", string(answer, "method"));
        (void) fputc('\n', out);
        if (json_is_true(json_object_get(answer, "proven")))
                (void) fprintf(out, "cost     %" JSON_INTEGER_FORMAT ", proven to be the least\n", cost);
        else if (json_is_integer(bound) && cost > 0)
                (void) fprintf(out, "cost     %" JSON_INTEGER_FORMAT ", at least %" JSON_INTEGER_FORMAT " (gap %.2f%%)\n", cost,
                               json_integer_value(bound), 100.0 * (double) (cost - json_integer_value(bound)) / (double) cost);
        else
                (void) fprintf(out, "cost     %" JSON_INTEGER_FORMAT ", no bound known\n", cost);
        (void) fprintf(out, "time     %.3f ms\n", (double) integer(answer, "time_usec") / 1000);
}

/* "1234, by slot 2000 (61.7%)" */
static void print_compared(FILE *out, const char *name, const json_t *traffic, const char *key) {
        const json_t *by_slot = json_object_get(traffic, "by_slot");
        json_int_t here = integer(traffic, key), there = integer(by_slot, key);

        (void) fprintf(out, "%s%" JSON_INTEGER_FORMAT, name, here);
        if (by_slot)
                (void) fprintf(out, ", by slot %" JSON_INTEGER_FORMAT, there);
        if (there > 0)
                (void) fprintf(out, " (%.1f%%)", 100.0 * (double) here / (double) there);
        (void) fputc('\n', out);
}

static void print_traffic(FILE *out, const json_t *answer) {
        const json_t *traffic = json_object_get(answer, "traffic");

        if (!traffic)
                return;
        print_compared(out, "traffic  bytes times hops ", traffic, "hop_bytes");
        print_compared(out, "         bytes between nodes ", traffic, "inter_node_bytes");
}

/* Job name to letter, in the order of the snapshot; '#' when the letters have run out. */
static json_t *give_letters(const json_t *snapshot) {
        json_t *given = json_object(), *job;
        size_t i;

        json_array_foreach(json_object_get(snapshot, "jobs"), i, job)
                json_object_set_new(given, string(job, "name"), json_integer(i < sizeof(letters) - 1 ? letters[i] : '#'));
        return given;
}

/* Node name to a text with one letter for each rank. */
static json_t *fill_nodes(const json_t *answer, const json_t *given) {
        json_t *bars = json_object(), *run;
        size_t i;

        json_array_foreach(json_object_get(answer, "placement"), i, run) {
                const char *node = string(run, "node"), *before = string(bars, node);
                size_t ranks = (size_t) integer(run, "ranks"), used = strlen(before);
                cleanup_free char *bar = xcalloc(1, used + ranks + 1);

                memcpy(bar, before, used);
                memset(bar + used, (int) integer(given, string(run, "job")), ranks);
                json_object_set_new(bars, node, json_string(bar));
        }
        return bars;
}

/* A bar that is too wide for the terminal is shrunk: `scale` cores a column. */
static void print_bar(FILE *out, const char *bar, json_int_t cores, size_t scale) {
        size_t used = strlen(bar);

        for (size_t at = 0; at < used || (json_int_t) at < cores; at += scale)
                (void) fputc(at < used ? bar[at] : '.', out);
        if ((json_int_t) used > cores)
                (void) fputs(" (more ranks than cores)", out);
        (void) fputc('\n', out);
}

static void print_nodes(FILE *out, const json_t *snapshot, const json_t *bars, int width) {
        int name_width = 4;
        json_int_t widest = 1;
        size_t i, scale, space;
        json_t *node;

        json_array_foreach(json_object_get(snapshot, "nodes"), i, node) {
                int length = (int) strlen(string(node, "name"));

                name_width = length > name_width ? length : name_width;
                widest = integer(node, "cores") > widest ? integer(node, "cores") : widest;
        }
        space = width > name_width + 40 ? (size_t) (width - name_width - 24) : 16;
        scale = ((size_t) widest + space - 1) / space;
        (void) fprintf(out, "\n%-*s  PENALTY   USED/CORES  RANKS%s", name_width, "NODE", scale > 1 ? "" : "\n");
        if (scale > 1)
                (void) fprintf(out, " (a letter for each %zu)\n", scale);
        json_array_foreach(json_object_get(snapshot, "nodes"), i, node) {
                const char *bar = string(bars, string(node, "name"));

                (void) fprintf(out, "%-*s  %7" JSON_INTEGER_FORMAT "  %5zu/%-5" JSON_INTEGER_FORMAT "  ", name_width,
                               string(node, "name"), integer(node, "penalty"), strlen(bar), integer(node, "cores"));
                print_bar(out, bar, integer(node, "cores"), scale);
        }
}

/* ---- which rank is on which core, where the policy chose ---- */

/* Node name to an array with one text for each core, "A12": rank 12 of job A. */
static json_t *fill_cores(const json_t *snapshot, const json_t *mapping, const json_t *given) {
        json_t *all = json_object(), *node, *places, *place;
        const char *job;
        size_t i;

        json_array_foreach(json_object_get(snapshot, "nodes"), i, node) {
                json_t *cores = json_array();

                for (json_int_t core = 0; core < integer(node, "cores"); core++)
                        json_array_append_new(cores, json_string("."));
                json_object_set_new(all, string(node, "name"), cores);
        }
        json_object_foreach((json_t *) mapping, job, places) json_array_foreach(places, i, place)
                json_array_set_new(json_object_get(all, json_string_value(json_array_get(place, 1))),
                                   (size_t) json_integer_value(json_array_get(place, 2)),
                                   json_sprintf("%c%" JSON_INTEGER_FORMAT, (int) integer(given, job),
                                                json_integer_value(json_array_get(place, 0))));
        return all;
}

/* Cores of one package; 0 when the description does not begin with packages. */
static size_t package_cores(const json_t *node) {
        const char *topology = string(node, "topology");
        unsigned packages = 0;

        if (strncasecmp(topology, "package:", 8) != 0 || sscanf(topology + 8, "%u", &packages) != 1 || packages == 0)
                return 0;
        return (size_t) integer(node, "cores") / packages;
}

static bool is_empty(const json_t *cores) {
        json_t *core;
        size_t i;

        json_array_foreach((json_t *) cores, i, core) if (strcmp(json_string_value(core), ".") != 0) return false;
        return true;
}

/* "n1  A0 A4 | A1 A5", the packages parted. */
static void print_cores(FILE *out, const json_t *snapshot, const json_t *answer, const json_t *given) {
        const json_t *mapping = json_object_get(answer, "mapping");
        json_t *all, *node, *core;
        size_t i, k;

        if (json_object_size(mapping) == 0)
                return;
        all = fill_cores(snapshot, mapping, given);
        (void) fprintf(out, "\nNODE, AND THE RANKS ON ITS CORES\n");
        json_array_foreach(json_object_get(snapshot, "nodes"), i, node) {
                const json_t *cores = json_object_get(all, string(node, "name"));
                size_t package = package_cores(node);

                if (is_empty(cores))
                        continue;
                (void) fprintf(out, "%s ", string(node, "name"));
                json_array_foreach((json_t *) cores, k, core)(void)
                        fprintf(out, "%s %s", k > 0 && package > 0 && k % package == 0 ? " |" : "", json_string_value(core));
                (void) fputc('\n', out);
        }
        json_decref(all);
}

/* The nodes of each job: "n1:4 n2:4". */
static char *describe_job(const json_t *answer, const char *name) {
        char *text = xstrdup("");
        json_t *run;
        size_t i;

        json_array_foreach(json_object_get(answer, "placement"), i, run) {
                char *longer;

                if (strcmp(string(run, "job"), name) != 0)
                        continue;
                longer = xasprintf("%s%s%s:%" JSON_INTEGER_FORMAT, text, *text ? " " : "", string(run, "node"),
                                   integer(run, "ranks"));
                free(text);
                text = longer;
        }
        return text;
}

static void print_jobs(FILE *out, const json_t *snapshot, const json_t *answer, const json_t *given) {
        const json_t *reasons = json_object_get(answer, "reasons");
        int name_width = 3;
        json_t *job;
        size_t i;

        json_array_foreach(json_object_get(snapshot, "jobs"), i, job) name_width =
                (int) strlen(string(job, "name")) > name_width ? (int) strlen(string(job, "name")) : name_width;
        (void) fprintf(out, "\n   %-*s  RANKS  PRIORITY  WHERE\n", name_width, "JOB");
        json_array_foreach(json_object_get(snapshot, "jobs"), i, job) {
                const char *name = string(job, "name"), *reason = string(reasons, name);
                cleanup_free char *where = describe_job(answer, name);

                (void) fprintf(out, "%c  %-*s  %5" JSON_INTEGER_FORMAT "  %8" JSON_INTEGER_FORMAT "  %s%s%s\n",
                               (int) integer(given, name), name_width, name, integer(job, "ranks"), integer(job, "priority"),
                               *where ? where : "waits", *reason ? ": " : "", reason);
        }
}

void picture_print(FILE *out, const json_t *snapshot, const json_t *answer, int width) {
        json_t *given = give_letters(snapshot), *bars = fill_nodes(answer, given);

        print_head(out, answer);
        print_traffic(out, answer);
        print_nodes(out, snapshot, bars, width);
        print_cores(out, snapshot, answer, given);
        print_jobs(out, snapshot, answer, given);
        json_decref(given);
        json_decref(bars);
}
