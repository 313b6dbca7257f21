#include "common/fault.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/text.h"
#include "common/util.h"

#define FILE_MAX_BYTES 65536U
#define ACTION_BYTES 16U
#define HELD_USEC 5000U
#define SEPARATORS ", \n"

/* A word of RM_FAULT or of the file: "POINT:ACTION". */
struct word {
        char *text;
        size_t length;
        char *action; /* in `text` */
};

static bool is_for(const char *text, size_t n, const char *point) {
        return n > 0 && strncmp(text, point, n) == 0 && (point[n] == '\0' || point[n] == '.');
}

static bool find_word(char *text, const char *point, struct word *ret) {
        for (char *p = text + strspn(text, SEPARATORS); *p; p += strspn(p, SEPARATORS)) {
                size_t length = strcspn(p, SEPARATORS);
                char *colon = memchr(p, ':', length);

                if (colon && is_for(p, (size_t) (colon - p), point)) {
                        *ret = (struct word) { p, length, colon + 1 };
                        return true;
                }
                p += length;
        }
        return false;
}

static void copy_action(const struct word *word, char *ret_action) {
        (void) text_format(ret_action, ACTION_BYTES, "%.*s", (int) (word->length - (size_t) (word->action - word->text)),
                           word->action);
}

static bool scan_in_environment(const char *point, char *ret_action) {
        cleanup_free char *text = xstrdup(getenv("RM_FAULT"));
        struct word word;

        if (!text || !find_word(text, point, &word))
                return false;
        copy_action(&word, ret_action);
        return true;
}

/* The word is blanked out, or becomes "POINT:held". */
static bool take_from_file(const char *point, char *ret_action) {
        const char *path = getenv("RM_FAULT_FILE");
        cleanup_free char *text = NULL;
        size_t size_bytes = 0;
        struct word word;

        if (!path || read_file(path, FILE_MAX_BYTES, &text, &size_bytes) < 0 || !find_word(text, point, &word))
                return false;
        copy_action(&word, ret_action);
        if (strcmp(ret_action, "held") == 0)
                return true;
        if (strcmp(ret_action, "hold") == 0)
                memcpy(word.action, "held", strlen("held"));
        else
                memset(word.text, ' ', word.length);
        (void) write_file_atomic(path, text, size_bytes, 0600, false);
        return true;
}

int fault_point(const char *point, struct rm_error *err) {
        char action[ACTION_BYTES] = "";

        if (!scan_in_environment(point, action) && !take_from_file(point, action))
                return 0;
        if (strcmp(action, "hold") == 0 || strcmp(action, "held") == 0)
                return error_set(err, -EAGAIN, "fault point %s", point);
        log_warn("fault point %s: %s", point, action);
        if (strcmp(action, "kill") == 0)
                (void) kill(getpid(), SIGKILL);
        return error_set(err, strcmp(action, "hang") == 0 ? -EINPROGRESS : -EIO, "fault point %s", point);
}

int fault_wait(const char *point, struct rm_error *err) {
        struct rm_error failure = { 0 };
        int r;

        while ((r = fault_point(point, &failure)) == -EAGAIN)
                (void) usleep(HELD_USEC);
        if (r == -EINPROGRESS)
                for (;;)
                        (void) pause();
        return r < 0 ? error_set(err, r, "%s", error_text(&failure)) : 0;
}
