/* The receiving end in the file system: puts the objects of a stream into given directories and
 * nowhere else. */
#ifndef RM_IMAGE_PLACE_H
#define RM_IMAGE_PLACE_H

#include "daemon/image/reader.h"

struct image_place;

struct image_place *image_place_create(void);
void image_place_destroy(struct image_place *p); /* NULL ok */

/* Where CRIU's images go, where the tree or the spool file of a role goes. The path is opened when
 * the first object for it arrives. A role without a place is refused, -ENOENT. */
void image_place_images(struct image_place *p, const char *directory);
void image_place_tree(struct image_place *p, const char *role, const char *directory);
void image_place_file(struct image_place *p, const char *role, const char *path);

/* Limits the bytes that are kept at once: images, files and blocks that came ahead as they are
 * written, and the pages of processes, which are often written again, as many as are there. Data
 * that would exceed it is refused, -ENOSPC. Data on a disk does not count. 0: no limit. */
void image_place_limit(struct image_place *p, uint64_t max_bytes);

/* The target for a reader. Paths are resolved below the tree's directory, never through a symlink
 * and never out of its mount. What is there already: directories, FIFOs and regular files with one
 * name are kept and get the new contents, mode, owner and attributes (they may be open, or mounted
 * elsewhere), anything else is replaced. Holes stay holes. */
const struct image_target *image_place_target(struct image_place *p);

/* The blocks that came ahead, for a reader. They lie in the images' directory without a name until
 * they are used, and go with `p`. */
const struct image_delta *image_place_delta(struct image_place *p);

/* Did memory of processes come apart from CRIU's images? It lies in IMAGE_PAGES_DIRECTORY beside
 * them, sparse, and is left there. */
bool image_place_has_pages(const struct image_place *p);

/* The part of these bytes that comes after the stream; see IMAGE_LATER_DIRECTORY. */
uint64_t image_place_later_bytes(const struct image_place *p);

/* Bytes written so far. */
uint64_t image_place_written_bytes(const struct image_place *p);
/* When the last CRIU image was closed, now_usec() time; 0 = none yet. */
uint64_t image_place_images_done_usec(const struct image_place *p);

#endif
