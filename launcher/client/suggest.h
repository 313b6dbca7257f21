/* Guessing what a misspelt word was meant to be. */
#ifndef RM_LAUNCHER_CLIENT_SUGGEST_H
#define RM_LAUNCHER_CLIENT_SUGGEST_H

#include <stddef.h>

/* Number of single-character edits that make one word the other; only the first 64 characters
 * count. */
size_t suggest_distance(const char *a, const char *b);

#endif
