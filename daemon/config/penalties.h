/* The cost of a rank on a node, for each unit of its job's priority: "n7:3 n[10-12]:5". Nodes that
 * are not named cost nothing. */
#ifndef RM_CONFIG_PENALTIES_H
#define RM_CONFIG_PENALTIES_H

#include <stdint.h>

#include "common/error.h"

#define PENALTY_MAX 1000000

struct penalty; /* of one node */

/* All zero: none. Free with penalties_finish(). */
struct penalties {
        struct penalty *by_name;
};

/* Add what `text` says: host lists, each with a colon and a number from 0 to PENALTY_MAX behind it,
 * parted by blanks. Of a node that is named again the last one counts. -EINVAL with a text for
 * people; nothing is added then. */
int penalties_add(struct penalties *penalties, const char *text, struct rm_error *err);
int64_t penalties_of(const struct penalties *penalties, const char *node);
void penalties_finish(struct penalties *penalties);

#endif
