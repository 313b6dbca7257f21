/* A plan for people: figures, the nodes as bars of letters, and the ranks on each core. */
#ifndef RM_POLICY_RUN_PICTURE_H
#define RM_POLICY_RUN_PICTURE_H

#include <jansson.h>
#include <stdio.h>

/* `snapshot` and `answer` are what rm-plugin-host has read and written: their form is known to be
 * right. `width`: columns of the terminal. */
void picture_print(FILE *out, const json_t *snapshot, const json_t *answer, int width);

#endif
