/* Tables for people: columns as wide as their contents, cut to the terminal when they must be. */
#ifndef RM_LAUNCHER_RMCTL_TABLE_H
#define RM_LAUNCHER_RMCTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum colour { COLOUR_NONE, COLOUR_GREEN, COLOUR_YELLOW, COLOUR_RED, COLOUR_BLUE };

struct column {
        const char *title;
        bool right;  /* for numbers */
        bool shrink; /* may be cut when the terminal is narrow */
        int drop;    /* left out when cutting is not enough, the highest first; 0: never */
};

/* `columns` must outlive the table. */
struct table;
struct table *table_create(const struct column *columns, size_t n_columns);
void table_destroy(struct table *table); /* NULL ok */
/* The columns whose `drop` is at least so much are left out, however wide the terminal is. */
void table_leave_out(struct table *table, int drop);

/* Fill row after row, cell after cell. The text is copied and cleaned of control characters; NULL
 * and "" show as "-". */
void table_cell(struct table *table, const char *text);
void table_colour(struct table *table, const char *text, enum colour colour);
void table_printf(struct table *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Takes over a malloc'ed text. */
void table_take(struct table *table, char *text);

/* `width` in columns, 0 for no limit. */
void table_print(const struct table *table, FILE *f, size_t width, bool header, bool colours);

const char *colour_begin(enum colour colour);
const char *colour_end(enum colour colour);
/* The colour of a node's, job's or move's state. */
enum colour colour_of_state(const char *state);

#endif
