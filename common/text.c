#include "common/text.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/util.h"

/* How many bytes the sequence of UTF-8 that begins here has; 0: none begins here. Overlong forms
 * and surrogates are none. */
static size_t sequence_bytes(const unsigned char *at, uint32_t *ret_code) {
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t n = at[0] < 0x80 ? 1 : (at[0] & 0xe0) == 0xc0 ? 2 : (at[0] & 0xf0) == 0xe0 ? 3 : (at[0] & 0xf8) == 0xf0 ? 4 : 0;
        uint32_t code = n == 1 ? at[0] : at[0] & (0x7fU >> n);

        for (size_t i = 1; i < n; i++) {
                if ((at[i] & 0xc0) != 0x80) /* also the end of the text */
                        return 0;
                code = code << 6 | (at[i] & 0x3f);
        }
        if (n > 1 && (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)))
                return 0;
        *ret_code = code;
        return n;
}

static bool is_control(uint32_t code) {
        return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
}

/* Bytes of the character that begins here and may be shown as it is; 0: it may not. */
static size_t plain_bytes(const char *at) {
        uint32_t code = 0;
        size_t n = sequence_bytes((const unsigned char *) at, &code);

        return is_control(code) ? 0 : n;
}

bool text_is_plain(const char *text) {
        while (*text) {
                size_t n = plain_bytes(text);

                if (n == 0)
                        return false;
                text += n;
        }
        return true;
}

static size_t escape_byte(unsigned char byte, char out[static 5]) {
        const char *letter = byte == '\n' ? "n" : byte == '\t' ? "t" : byte == '\r' ? "r" : NULL;

        return (size_t) (letter ? snprintf(out, 5, "\\%s", letter) : snprintf(out, 5, "\\x%02x", byte));
}

size_t text_escape(const char *text, char *ret_text, size_t size_bytes) {
        size_t used = 0;

        while (*text) {
                char escaped[5];
                size_t plain = plain_bytes(text);
                size_t n = plain ? plain : escape_byte((unsigned char) *text, escaped);

                if (used + n >= size_bytes)
                        break;
                memcpy(ret_text + used, plain ? text : escaped, n);
                used += n;
                text += plain ? plain : 1;
        }
        ret_text[used] = 0;
        return used;
}

/* ---- texts that do not fit ---- */

static bool inside_character(const char *at) {
        return ((unsigned char) *at & 0xc0) == 0x80;
}

/* The begin gets one half of `size_bytes`, without the mark and the NUL, and the end the other. */
static size_t cut_middle(const char *whole, size_t length, char *ret_text, size_t size_bytes) {
        static const char mark[] = TEXT_CUT_MARK;
        size_t marked = size_bytes > sizeof(mark) ? sizeof(mark) - 1 : 0;
        size_t space = size_bytes - 1 - marked, begin = marked > 0 ? (space + 1) / 2 : space, end = space - begin;

        while (begin > 0 && inside_character(whole + begin))
                begin--;
        while (end > 0 && inside_character(whole + length - end))
                end--;
        memcpy(ret_text, whole, begin);
        memcpy(ret_text + begin, mark, marked);
        memcpy(ret_text + begin + marked, whole + length - end, end);
        ret_text[begin + marked + end] = 0;
        return begin + marked + end;
}

size_t text_format_va(char *ret_text, size_t size_bytes, const char *fmt, va_list ap) {
        cleanup_free char *whole = NULL;
        va_list again;
        int length;

        va_copy(again, ap);
        length = vsnprintf(ret_text, size_bytes, fmt, ap);
        if (length < 0) {
                ret_text[0] = 0;
        } else if ((size_t) length >= size_bytes) {
                whole = xvasprintf(fmt, again);
                length = (int) cut_middle(whole, strlen(whole), ret_text, size_bytes);
        }
        va_end(again);
        return length < 0 ? 0 : (size_t) length;
}

size_t text_format(char *ret_text, size_t size_bytes, const char *fmt, ...) {
        size_t length;
        va_list ap;

        va_start(ap, fmt);
        length = text_format_va(ret_text, size_bytes, fmt, ap);
        va_end(ap);
        return length;
}

size_t text_append(char *text, size_t size_bytes, const char *fmt, ...) {
        cleanup_free char *before = xstrdup(text);
        cleanup_free char *more = NULL;
        va_list ap;

        va_start(ap, fmt);
        more = xvasprintf(fmt, ap);
        va_end(ap);
        return text_format(text, size_bytes, "%s%s", before, more);
}

char *text_add_word(char *list, const char *separator, const char *word) {
        cleanup_free char *before = list;

        return before && *before ? xasprintf("%s%s%s", before, separator, word) : xstrdup(word);
}

char *text_iso_time(uint64_t real_usec) {
        time_t s = (time_t) (real_usec / 1000000);
        struct tm tm = { 0 };
        char text[32] = "";

        (void) gmtime_r(&s, &tm);
        (void) strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
        return xasprintf("%s.%06" PRIu64 "Z", text, real_usec % 1000000);
}
