/* Gathers a group into an image stream: before the freeze as much as may go ahead, in it the rest.
 * Shared by the programs that send it to another node and that store it. */
#ifndef RM_MOVER_GATHER_H
#define RM_MOVER_GATHER_H

#include "daemon/image/tree.h"
#include "daemon/mover/capture.h"
#include "daemon/mover/control.h"
#include "daemon/mover/files.h"
#include "daemon/mover/hooks.h"
#include "daemon/mover/pages.h"

/* The amounts that were sent before the freeze. */
struct gather_ahead {
        uint64_t raw_bytes;
        uint64_t wire_bytes;
        uint64_t rounds;
        uint64_t usec;
};

struct gather {
        struct control *control;
        struct image_writer *writer;
        struct capture *capture;
        struct pages *pages; /* NULL: private memory is in CRIU's images */
        struct files *files; /* NULL: no files went ahead */
        struct mover_hooks hooks_ahead; /* before the freeze: set by the user of this */
        struct mover_hooks hooks_trees; /* in it: likewise */
        struct mover_hooks hooks_frozen; /* of gather_prepare(): CRIU is served, too */
        struct capture_hooks hooks_capture;
        struct rm_error untracked; /* why there are no `pages`, though they were asked for */
        struct gather_ahead ahead;
        uint64_t later_bytes; /* before the freeze: about so much; 0: none */
        struct capture_figures captured;
        struct image_tree_figures trees;
        uint64_t start_usec; /* of the freeze; 0: not yet */
        uint64_t captured_at_usec;
        uint64_t trees_at_usec;
        uint64_t images_raw_bytes;
};

/* `idle` and `poll` are those of hooks_trees and of the capture. */
void gather_prepare(struct gather *g, struct control *control, const struct mover_hooks *hooks);
/* Frees what is left. The protection of memory is taken off: see pages_destroy(). */
void gather_finish(struct gather *g);

/* Everything went ahead that was to: counts it, since these figures. */
void gather_count_ahead(struct gather *g, const struct image_figures *begin, uint64_t begin_usec);
/* Files of these trees go ahead. */
int gather_files_ahead(struct gather *g, const Rm__MoverPrecopy *m, struct rm_error *err);

/* rmd tells the processes that the freeze is near, if it wants to, and this waits meanwhile; what
 * is to go ahead last follows. */
int gather_announce(struct gather *g, const Rm__MoverPrecopy *m, struct rm_error *err);

/* Gathers in the freeze: tracked memory that was written last, and CRIU's images, until rmd says
 * that the dump is done. */
int gather_images(struct gather *g, struct rm_error *err);
/* Gathers the pages that were written even since then, if memory is tracked. */
int gather_memory(struct gather *g, struct rm_error *err);
/* Gathers the trees that may change once the group runs again. */
int gather_trees(struct gather *g, const Rm__MoverDumpDone *m, struct rm_error *err);
/* Gathers the other trees, when the group runs again. */
int gather_still_trees(struct gather *g, const Rm__MoverDumpDone *m, struct rm_error *err);

void gather_progress(void *ctx, const char *name);
void gather_figures_ahead(struct gather *g, Rm__MoverFigures *f);
void gather_figures(struct gather *g, Rm__MoverFigures *f);

#endif
