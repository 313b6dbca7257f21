#include "common/instruction_sets.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* The words of ARM are all of this kind. */
static bool is_instruction_set(const char *word, size_t n, const char *machine) {
        static const char *const exact[] = { "cx16",      "fma",    "fma4",   "xop",        "tbm",       "abm",        "aes",
                                             "pclmulqdq", "vaes",   "movbe",  "popcnt",     "f16c",      "lahf_lm",    "rdrand",
                                             "rdseed",    "adx",    "gfni",   "sha_ni",     "hle",       "rtm",        "fsgsbase",
                                             "rdpid",     "rdtscp", "clwb",   "clflushopt", "serialize", "waitpkg",    "pku",
                                             "ospke",     "erms",   "fsrm",   "mmx",        "pni",       "vpclmulqdq", "movdiri",
                                             "movdir64b", "clzero", "sha512", "sm3",        "sm4" };
        static const char *const stems[] = { "sse", "ssse", "avx", "bmi", "xsave", "xgetbv", "amx", "3dnow" };

        if (strcmp(machine, "x86_64") != 0)
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(exact); i++)
                if (strlen(exact[i]) == n && strncmp(exact[i], word, n) == 0)
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(stems); i++)
                if (n >= strlen(stems[i]) && strncmp(stems[i], word, strlen(stems[i])) == 0)
                        return true;
        return false;
}

static bool has_word(const char *words, const char *word, size_t n) {
        for (const char *at = words; *at; at += strspn(at, " ")) {
                size_t length = strcspn(at, " ");

                if (length == n && strncmp(at, word, n) == 0)
                        return true;
                at += length;
        }
        return false;
}

/* `list` has room for it. */
static void add_word(char *list, const char *word, size_t n) {
        size_t end = strlen(list);

        if (end > 0)
                list[end++] = ' ';
        memcpy(list + end, word, n);
        list[end + n] = '\0';
}

char *instruction_sets_of(const char *flags, const char *machine) {
        char *list = xcalloc(strlen(flags) + 1, 1);

        for (const char *at = flags + strspn(flags, " "); *at; at += strspn(at, " ")) {
                size_t n = strcspn(at, " ");

                if (is_instruction_set(at, n, machine) && !has_word(list, at, n))
                        add_word(list, at, n);
                at += n;
        }
        return list;
}

char *instruction_sets_lacking(const char *have, const char *needed) {
        cleanup_free char *list = NULL;

        if (!*have || !*needed || strcmp(have, needed) == 0)
                return NULL;
        list = xcalloc(strlen(needed) + 1, 1);
        for (const char *at = needed + strspn(needed, " "); *at; at += strspn(at, " ")) {
                size_t n = strcspn(at, " ");

                if (!has_word(have, at, n))
                        add_word(list, at, n);
                at += n;
        }
        return *list ? take_ptr(list) : NULL;
}
