/* Texts that came from outside: what may stand in a name or a reason, and what is done to the rest before it is shown. */
#ifndef RM_COMMON_TEXT_H
#define RM_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* UTF-8 without control characters (C0, DEL, C1, and the separators of lines and paragraphs). The empty text is plain. */
bool text_is_plain(const char *text);

/* Copy `text` so that it stays one line and moves no cursor: what text_is_plain() refuses becomes \n, \t, \r or \xHH, a byte each. Plain
 * text comes out as it is. Cut before what no longer fits; always NUL-terminated. `size_bytes` of `ret_text` at least 1. Returns the
 * length. The two must not overlap. */
size_t text_escape(const char *text, char *ret_text, size_t size_bytes);

#endif
