/* Jobs as they are shown: all of one's own, and of others' what all users may see. Pure. */
#ifndef RM_VIEW_JOB_H
#define RM_VIEW_JOB_H

#include "daemon/view/view.h"
#include "proto/local.pb-c.h"

/* A copy without what is not the reader's to see, and of about `max_bytes` at most: first the
 * command line is cut, then the list of capsules. Free with rm__job_view__free_unpacked(view,
 * NULL). */
Rm__JobView *view_job(const struct view_source *source, const struct view_reader *reader, const Rm__Job *job, size_t max_bytes);

/* Selects the jobs that are shown. */
struct view_jobs {
        const uint64_t *ids; /* in any order, some perhaps twice; none: all jobs */
        size_t n_ids;
        bool ended; /* without ids: those that have ended, too */
        uint64_t after; /* only those with a larger number */
        size_t max_bytes_each;
};

/* Fill `ret`, an initialized list, with the jobs that `reader` may see, each once and by their
 * numbers, until they have `max_bytes`; then `more` says that there are further ones. Free with
 * view_jobs_finish(). */
void view_jobs(const struct view_source *source, const struct view_reader *reader, const struct view_jobs *which, size_t max_bytes,
               Rm__JobList *ret);
void view_jobs_finish(Rm__JobList *list);

#endif
