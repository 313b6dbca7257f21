/* Moves as they are shown. Pure. */
#ifndef RM_VIEW_MOVE_H
#define RM_VIEW_MOVE_H

#include "daemon/view/view.h"
#include "proto/local.pb-c.h"

/* Selects the moves that are shown. */
struct view_moves {
        uint64_t job;   /* 0: of all jobs */
        uint64_t since; /* only those with a larger number */
};

/* Fill `ret`, an initialized list, with the moves of jobs that `reader` may see, by their numbers,
 * until they have `max_bytes`; then `more` says that there are further ones. Moves of jobs that are
 * forgotten are an administrator's. The moves are the state's and are borrowed. Free with
 * view_moves_finish(). */
void view_moves(const struct view_source *source, const struct view_reader *reader, const struct view_moves *which,
                size_t max_bytes, Rm__MoveList *ret);
void view_moves_finish(Rm__MoveList *list);

#endif
