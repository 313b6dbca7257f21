#include "common/error.h"

#include <string.h>

#include "common/text.h"

int error_set(struct rm_error *err, int code, const char *fmt, ...) {
        va_list ap;

        if (!err)
                return code;
        err->code = code;
        va_start(ap, fmt);
        (void) text_format_va(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
        return code;
}

int error_sys(struct rm_error *err, int code, const char *fmt, ...) {
        va_list ap;

        if (!err)
                return code;
        err->code = code;
        va_start(ap, fmt);
        (void) text_format_va(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
        (void) text_append(err->text, sizeof(err->text), ": %s", strerror(-code));
        return code;
}

int error_prefix(struct rm_error *err, const char *fmt, ...) {
        char old[RM_ERROR_TEXT_BYTES];
        va_list ap;

        if (!err)
                return 0;
        memcpy(old, err->text, sizeof(old));
        va_start(ap, fmt);
        (void) text_format_va(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
        (void) text_append(err->text, sizeof(err->text), ": %s", old);
        return err->code;
}

void error_clean(struct rm_error *err) {
        for (char *at = err ? err->text : (char *) ""; *at; at++)
                if (*at < ' ' || *at > '~')
                        *at = '?';
}

void error_clear(struct rm_error *err) {
        if (!err)
                return;
        err->code = 0;
        err->text[0] = 0;
}

const char *error_text(const struct rm_error *err) {
        if (!err)
                return "unknown error";
        return err->text[0] ? err->text : strerror(-err->code);
}
