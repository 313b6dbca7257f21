#include "launcher/rmctl/table.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "common/util.h"
#include "launcher/rmctl/human.h"

#define GAP 2U
/* A column is not cut below this: less tells nothing. */
#define SHRINK_MIN 8U

struct cell {
        char *text;
        enum colour colour;
};

struct table {
        const struct column *columns;
        size_t n_columns;
        struct cell *cells;
        size_t n_cells;
        int least_left_out; /* columns with a `drop` from here on are left out; 0: none */
};

struct table *table_create(const struct column *columns, size_t n_columns) {
        struct table *t = xcalloc(1, sizeof(*t));

        t->columns = columns;
        t->n_columns = n_columns;
        return t;
}

void table_leave_out(struct table *t, int drop) {
        t->least_left_out = drop;
}

void table_destroy(struct table *t) {
        if (!t)
                return;
        for (size_t i = 0; i < t->n_cells; i++)
                free(t->cells[i].text);
        free(t->cells);
        free(t);
}

void table_colour(struct table *t, const char *text, enum colour colour) {
        t->cells = xrealloc(t->cells, (t->n_cells + 1) * sizeof(*t->cells));
        t->cells[t->n_cells++] = (struct cell) { human_clean(text && *text ? text : "-"), colour };
}

void table_cell(struct table *t, const char *text) {
        table_colour(t, text, COLOUR_NONE);
}

void table_take(struct table *t, char *text) {
        table_cell(t, text);
        free(text);
}

void table_printf(struct table *t, const char *fmt, ...) {
        cleanup_free char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        text = xvasprintf(fmt, ap);
        va_end(ap);
        table_cell(t, text);
}

const char *colour_begin(enum colour colour) {
        static const char *const codes[] = { "", "\033[32m", "\033[33m", "\033[31m", "\033[34m" };

        return codes[colour];
}

const char *colour_end(enum colour colour) {
        return colour == COLOUR_NONE ? "" : "\033[0m";
}

enum colour colour_of_state(const char *state) {
        static const struct {
                const char *state;
                enum colour colour;
        } states[] = {
                { "IDLE", COLOUR_GREEN },      { "MIXED", COLOUR_GREEN },       { "ALLOCATED", COLOUR_GREEN },
                { "DRAINING", COLOUR_YELLOW }, { "DRAINED", COLOUR_BLUE },      { "DOWN", COLOUR_RED },
                { "FAILING", COLOUR_RED },     { "UNKNOWN", COLOUR_RED },       { "PENDING", COLOUR_YELLOW },
                { "STARTING", COLOUR_GREEN },  { "RUNNING", COLOUR_GREEN },     { "MIGRATING", COLOUR_YELLOW },
                { "FOLDED", COLOUR_YELLOW },   { "RECOVERING", COLOUR_YELLOW }, { "CHECKPOINTING", COLOUR_YELLOW },
                { "FAILED", COLOUR_RED },      { "TIMEOUT", COLOUR_RED },       { "NODE_FAIL", COLOUR_RED },
                { "ABORTED", COLOUR_RED },     { "COMMITTED", COLOUR_GREEN },   { "DONE", COLOUR_GREEN },
        };

        for (size_t i = 0; i < ARRAY_SIZE(states); i++)
                if (strcmp(states[i].state, state) == 0)
                        return states[i].colour;
        return COLOUR_NONE;
}

/* Columns are left out before others are cut to less than this. */
#define SHRINK_READABLE 16U
/* Width of a column that is left out; no cell is that wide. */
#define DROPPED SIZE_MAX

static size_t total_width(const struct table *t, const size_t *widths, size_t shrink_to) {
        size_t total = 0;

        for (size_t i = 0; i < t->n_columns; i++) {
                if (widths[i] == DROPPED)
                        continue;
                total += (total ? GAP : 0) + (t->columns[i].shrink && widths[i] > shrink_to ? shrink_to : widths[i]);
        }
        return total;
}

static void drop_columns(const struct table *t, size_t *widths, size_t width) {
        while (total_width(t, widths, SHRINK_READABLE) > width) {
                int highest = 0;

                for (size_t i = 0; i < t->n_columns; i++)
                        if (widths[i] != DROPPED && t->columns[i].drop > highest)
                                highest = t->columns[i].drop;
                if (highest == 0)
                        return;
                /* Columns of one rank belong together, and are dropped together. */
                for (size_t i = 0; i < t->n_columns; i++)
                        if (t->columns[i].drop == highest)
                                widths[i] = DROPPED;
        }
}

/* Take from the widest column that may shrink until all fits, or none can give more. */
static void fit(const struct table *t, size_t *widths, size_t width) {
        size_t total = total_width(t, widths, SIZE_MAX);

        while (total > width) {
                size_t widest = t->n_columns;

                for (size_t i = 0; i < t->n_columns; i++)
                        if (t->columns[i].shrink && widths[i] != DROPPED && widths[i] > SHRINK_MIN &&
                            (widest == t->n_columns || widths[i] > widths[widest]))
                                widest = i;
                if (widest == t->n_columns)
                        return;
                widths[widest]--;
                total--;
        }
}

static void measure(const struct table *t, size_t *widths, bool header) {
        for (size_t i = 0; i < t->n_columns; i++)
                widths[i] = header ? human_width(t->columns[i].title) : 0;
        for (size_t i = 0; i < t->n_cells; i++) {
                size_t w = human_width(t->cells[i].text);

                if (w > widths[i % t->n_columns])
                        widths[i % t->n_columns] = w;
        }
        for (size_t i = 0; t->least_left_out > 0 && i < t->n_columns; i++)
                if (t->columns[i].drop >= t->least_left_out)
                        widths[i] = DROPPED;
}

static void print_cell(const struct table *t, FILE *f, size_t column, const char *text, enum colour colour, size_t width) {
        cleanup_free char *cut = human_cut(text, width);
        size_t pad = width - human_width(cut);
        bool last = column + 1 == t->n_columns;

        if (column > 0)
                (void) fprintf(f, "%*s", (int) GAP, "");
        if (t->columns[column].right)
                (void) fprintf(f, "%*s", (int) pad, "");
        (void) fprintf(f, "%s%s%s", colour_begin(colour), cut, colour_end(colour));
        if (!t->columns[column].right && !last)
                (void) fprintf(f, "%*s", (int) pad, "");
}

void table_print(const struct table *t, FILE *f, size_t width, bool header, bool colours) {
        cleanup_free size_t *widths = xcalloc(t->n_columns, sizeof(*widths));

        measure(t, widths, header);
        if (width > 0) {
                drop_columns(t, widths, width);
                fit(t, widths, width);
        }
        for (size_t i = 0; header && i < t->n_columns; i++)
                if (widths[i] != DROPPED)
                        print_cell(t, f, i, t->columns[i].title, COLOUR_NONE, widths[i]);
        if (header)
                (void) fputc('\n', f);
        for (size_t i = 0; i < t->n_cells; i++) {
                size_t column = i % t->n_columns;

                if (widths[column] != DROPPED)
                        print_cell(t, f, column, t->cells[i].text, colours ? t->cells[i].colour : COLOUR_NONE, widths[column]);
                if (column + 1 == t->n_columns)
                        (void) fputc('\n', f);
        }
}
