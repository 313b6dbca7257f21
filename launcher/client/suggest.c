#include "launcher/client/suggest.h"

#include <string.h>

#define WORD_MAX_BYTES 64

size_t suggest_distance(const char *a, const char *b) {
        size_t row[WORD_MAX_BYTES + 1];
        size_t n = strnlen(b, WORD_MAX_BYTES);

        for (size_t j = 0; j <= n; j++)
                row[j] = j;
        for (size_t i = 1; i <= WORD_MAX_BYTES && a[i - 1]; i++) {
                size_t diagonal = row[0];

                row[0] = i;
                for (size_t j = 1; j <= n; j++) {
                        size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);

                        diagonal = row[j];
                        row[j] = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
                        if (change < row[j])
                                row[j] = change;
                }
        }
        return row[n];
}
