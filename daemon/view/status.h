/* The cluster in a few numbers and warnings, as the node that is asked sees it. Pure. */
#ifndef RM_VIEW_STATUS_H
#define RM_VIEW_STATUS_H

#include "daemon/view/view.h"
#include "proto/local.pb-c.h"

/* Facts that the answering node knows of itself and that the log does not have. All is borrowed. */
struct view_own {
        const char *cluster, *node, *policy, *version;
        uint64_t up_usec;      /* since its rmd was started */
        uint64_t log_usec;     /* by the log's clock */
        bool synced;           /* its state is the newest */
        bool log_disk_full;    /* nothing can be changed */
        bool bodies_disk_full; /* no job is taken */
        bool tracking;         /* moves from it can track memory */
        const char *untracked; /* why they do not */
        Rm__SensorView *const *sensors;
        size_t n_sensors;
        const char *second_key_file; /* "": there is none */
        const char *limits_missing;  /* NULL: nothing */
        const char *join_failures;   /* why it does not join through the nodes of its configuration; NULL: none */
        const char *web_unserved;    /* places where it could not listen for HTTP; NULL: none */
};

/* The caller frees it with rm__status__free_unpacked(status, NULL). */
Rm__Status *view_status(const struct view_source *source, const struct view_reader *reader, const struct view_own *own);

#endif
