/* Errors that a person will read: a text that collects "what was being done: what went wrong" as it
 * rises. */
#ifndef RM_COMMON_ERROR_H
#define RM_COMMON_ERROR_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#define RM_ERROR_TEXT_BYTES 1024

/* Plain storage, no ownership. Initialise with `= {0}`; may be reused after error_clear(). */
struct rm_error {
        int code;                       /* negative errno, 0 = no error */
        char text[RM_ERROR_TEXT_BYTES]; /* NUL terminated; one that is too long lacks its middle (text_format()) */
};

/* Set code and text. `err` NULL ok. `code` is a negative errno. Returns `code`, so that callers can
 * `return error_set(...)`. */
int error_set(struct rm_error *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As error_set, and appends ": " + strerror(-code). */
int error_sys(struct rm_error *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "context: " in front of what is there. `err` NULL ok. Returns err->code (or 0 when err is
 * NULL). */
int error_prefix(struct rm_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Each byte of the text that is no printable ASCII becomes '?': for texts that quote input from
 * outside. `err` NULL ok. */
void error_clean(struct rm_error *err);

void error_clear(struct rm_error *err);

/* The text, or strerror of the code when there is none. Never NULL. */
const char *error_text(const struct rm_error *err);

#endif
