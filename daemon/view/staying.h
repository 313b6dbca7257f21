/* Groups that cannot be moved, or were not, for a reason of their own. Pure. */
#ifndef RM_VIEW_STAYING_H
#define RM_VIEW_STAYING_H

#include "daemon/view/view.h"
#include "proto/local.pb-c.h"

/* Notes in each of `nodes`, which are sorted by name, what keeps groups there, of jobs that the
 * reader may know all of. */
void view_staying_fill(const struct view_source *source, const struct view_reader *reader, const Rm__NodeList *nodes);
/* Frees what was noted in one node. */
void view_staying_finish(Rm__NodeView *view);

/* Returns a line for people about groups that were not moved, or that keep a node from becoming
 * empty. malloc'ed; NULL: there are none. */
char *view_staying_warning(const struct view_source *source, const struct view_reader *reader);

#endif
