#include "launcher/rmctl/human.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <wchar.h>

#include "common/util.h"

#define USEC 1000000U

char *human_duration(uint64_t usec) {
        uint64_t s = usec / USEC;

        if (usec < 10 * USEC)
                return xasprintf("%" PRIu64 ".%03" PRIu64 " s", s, usec % USEC / 1000);
        if (s < 60)
                return xasprintf("%" PRIu64 " s", s);
        if (s < 3600)
                return xasprintf("%" PRIu64 "m %02" PRIu64 "s", s / 60, s % 60);
        if (s < 86400)
                return xasprintf("%" PRIu64 "h %02" PRIu64 "m", s / 3600, s / 60 % 60);
        return xasprintf("%" PRIu64 "d %02" PRIu64 "h", s / 86400, s / 3600 % 24);
}

char *human_elapsed(uint64_t usec) {
        if (usec < 60 * USEC)
                return xasprintf("%" PRIu64 " s", usec / USEC);
        return human_duration(usec);
}

char *human_ago(uint64_t when_usec, uint64_t now) {
        uint64_t s = now > when_usec ? (now - when_usec) / USEC : 0;

        if (when_usec == 0)
                return xstrdup("-");
        if (s < 1)
                return xstrdup("just now");
        if (s < 60)
                return xasprintf("%" PRIu64 "s ago", s);
        if (s < 3600)
                return xasprintf("%" PRIu64 "m ago", s / 60);
        if (s < UINT64_C(2) * 86400)
                return xasprintf("%" PRIu64 "h ago", s / 3600);
        return xasprintf("%" PRIu64 "d ago", s / 86400);
}

char *human_bytes(uint64_t bytes) {
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
        double value = (double) bytes;
        size_t unit = 0;

        while (value >= 1023.95 && unit + 1 < ARRAY_SIZE(units)) {
                value /= 1024;
                unit++;
        }
        if (unit == 0)
                return xasprintf("%" PRIu64 " B", bytes);
        return xasprintf(value < 99.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

/* The next character of `text`: its bytes and columns. A byte that is none counts as one, a control
 * character. */
static size_t next_character(const char *text, mbstate_t *state, int *ret_width, wchar_t *ret_wide) {
        wchar_t wide = 0;
        size_t n = mbrtowc(&wide, text, strnlen(text, MB_LEN_MAX), state); /* not strlen: texts may be long */

        if (n == 0 || n == (size_t) -1 || n == (size_t) -2) {
                memset(state, 0, sizeof(*state));
                *ret_width = 1;
                *ret_wide = L'\x01';
                return 1;
        }
        *ret_width = wcwidth(wide);
        *ret_wide = wide;
        return n;
}

char *human_clean(const char *text) {
        char *clean = xcalloc(1, strlen(text) + 1);
        mbstate_t state = { 0 };
        size_t used = 0;

        while (*text) {
                int width;
                wchar_t wide;
                size_t n = next_character(text, &state, &width, &wide);

                if (width < 0 || wide < 32 || (wide >= 127 && wide < 160))
                        clean[used++] = wide == L'\n' || wide == L'\t' ? ' ' : '?';
                else {
                        memcpy(clean + used, text, n);
                        used += n;
                }
                text += n;
        }
        return clean;
}

size_t human_width(const char *text) {
        mbstate_t state = { 0 };
        size_t total = 0;

        while (*text) {
                int width;
                wchar_t wide;

                text += next_character(text, &state, &width, &wide);
                total += width > 0 ? (size_t) width : 0;
        }
        return total;
}

char *human_cut(const char *text, size_t width) {
        const char *ellipsis = MB_CUR_MAX > 1 ? "…" : "~";
        mbstate_t state = { 0 };
        size_t bytes = 0;
        size_t total = 0;

        if (human_width(text) <= width)
                return xstrdup(text);
        while (text[bytes]) {
                int w;
                wchar_t wide;
                size_t n = next_character(text + bytes, &state, &w, &wide);

                if (total + (w > 0 ? (size_t) w : 0) + 1 > width)
                        break;
                total += w > 0 ? (size_t) w : 0;
                bytes += n;
        }
        return xasprintf("%.*s%s", (int) bytes, text, width > 0 ? ellipsis : "");
}
