/* The receiving end of processes' private memory: a store (daemon/pages/page_store.h) for each
 * process that a stream names, and in what order the stream may speak of it. */
#ifndef RM_IMAGE_PLACE_PAGES_H
#define RM_IMAGE_PLACE_PAGES_H

#include "daemon/image/format.h"

struct place_pages;
struct place_process; /* of one process; the place's */

struct place_pages *place_pages_create(void); /* never NULL */
void place_pages_destroy(struct place_pages *p); /* NULL ok; the files stay */

/* An object of kind PAGES, LATER or PRESENT. Files are made in IMAGE_PAGES_DIRECTORY of the
 * directory `images_fd`, which the first of them makes. */
int place_pages_open(struct place_pages *p, int images_fd, const struct image_object *o, struct place_process **ret_process,
                     struct rm_error *err);

/* Takes data of the object of that kind for this process. -EBADMSG: this data may not come now, or
 * has no runs of pages. */
int place_pages_data(struct place_process *process, Rm__ImageKind kind, uint64_t offset, const void *data, size_t size_bytes,
                     struct rm_error *err);
int place_pages_zero(struct place_process *process, uint64_t offset, uint64_t size_bytes, struct rm_error *err);
int place_pages_close(struct place_pages *p, struct place_process *process, Rm__ImageKind kind, uint64_t size_bytes,
                      struct rm_error *err);

/* The bytes of the process's pages that are here. Only for a process whose object of kind PAGES is
 * open. */
uint64_t place_pages_bytes(const struct place_process *process);

/* The bytes of pages that come after the stream, of processes whose object of kind PAGES is closed;
 * IMAGE_LATER_DIRECTORY tells which. */
uint64_t place_pages_later_bytes(const struct place_pages *p);

/* Did the stream name any process? */
bool place_pages_any(const struct place_pages *p);

#endif
