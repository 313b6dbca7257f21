/* Texts that came from outside: what may stand in a name or a reason, and what is done to the rest
 * before it is shown. */
#ifndef RM_COMMON_TEXT_H
#define RM_COMMON_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* This stands where a text was cut. */
#define TEXT_CUT_MARK "[...]"

/* UTF-8 without control characters (C0, DEL, C1, and the separators of lines and paragraphs). The
 * empty text is plain. */
bool text_is_plain(const char *text);

/* Copy `text` so that it stays one line and moves no cursor: what text_is_plain() refuses becomes
 * \n, \t, \r or \xHH, a byte each. Plain text comes out as it is. Cut before what no longer fits;
 * always NUL-terminated. `size_bytes` of `ret_text` at least 1. Returns the length. The two must
 * not overlap. */
size_t text_escape(const char *text, char *ret_text, size_t size_bytes);

/* Like snprintf() and vsnprintf(), for texts that people read: one that does not fit loses its
 * middle, where TEXT_CUT_MARK then stands. Its begin, which says what it is about, and its end,
 * which has the reason or the name of a file, remain. No character of UTF-8 is torn. `size_bytes`
 * is at least 1. Both return the length of what is there. No argument may overlap with
 * `ret_text`. */
size_t text_format(char *ret_text, size_t size_bytes, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
size_t text_format_va(char *ret_text, size_t size_bytes, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));

/* As text_format(), behind what is there already, which counts as the begin. Here arguments may be
 * part of `text`. */
size_t text_append(char *text, size_t size_bytes, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Returns `list` with one more word, behind `separator` if there was one already. Takes `list`,
 * which is malloc'ed, or NULL for none; the caller frees what comes back. */
char *text_add_word(char *list, const char *separator, const char *word);

/* A real time as ISO 8601 in UTC, "2026-11-21T11:53:34.123456Z". The caller frees it. */
char *text_iso_time(uint64_t real_usec);

#endif
