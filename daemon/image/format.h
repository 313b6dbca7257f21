/* The image stream: what a capsule is while it travels. Format, limits, and the stages it passes.
 *
 *   source -> zero elision -> delta -> codec -> chunk -> sink    (writer.h: image_writer)
 *   ====> source -> chunk -> codec -> delta -> target            (reader.h: image_reader)
 *
 * A stream is a row of chunks: begin, then opens, data and closes of objects in any mixture, then
 * end. One chunk is
 *
 *   magic, 4 bytes big endian   FRAME_MAGIC_IMAGE
 *   length, 4 bytes big endian  of the header
 *   header                      an ImageChunk message (proto/image.proto)
 *   payload                     header.payload_bytes raw bytes; of data chunks only
 *   checksum, 8 bytes big endian XXH3, seeded with the chunk's number in the stream, over all of
 *                               the above
 *
 * so that a flipped bit, and a chunk lost, repeated or out of place, is seen before anything in it
 * is used. It is no signature: the right to write is checked by what carries the stream (TLS; a
 * keyed checksum in storage).
 *
 * An object has a slot from its open to its close; data chunks name the slot and the offset, so
 * several may be open at once. Data is cut into blocks of IMAGE_BLOCK_BYTES at offsets that are
 * multiples of it. Whole blocks (and a short last one) that are zero, or that the receiver has
 * already, are not in the payload. A run of zeros may be of any length: a hole.
 *
 * A payload may have gone through a codec (codec.h): its chunk names that, and the size before it.
 * A writer uses only those codecs that the receiver has named beforehand; without any, older
 * receivers understand the stream.
 *
 * What the receiver has already was sent ahead in the same stream, as an object of kind BLOCKS
 * while the capsule still ran. Its blocks are numbered from 0, and mean nothing until a later
 * object's data names them.
 *
 * Private memory of processes may travel apart from CRIU's images: an object of kind PAGES for each
 * process, whose offsets are addresses. Its data are whole pages, never blocks sent ahead; they may
 * come in any order and again, and the last ones count, zeros too. When all is sent, and before its
 * close (of size 0), an object of kind PRESENT says which of the process's pages there are: runs by
 * address, each IMAGE_PRESENT_RUN_BYTES long: start, end, both 8 bytes little endian. The receiver
 * drops the others, and no data may follow. A process that has ended has none; another one may get
 * its pid.
 *
 * Before that, objects of kind LATER may name pages in the same way, after which no data of that
 * process may come: those that are PRESENT in the end do not come in the stream, but after its end
 * (MoverLater in proto/mover.proto).
 *
 * For tests an object of kind SUMS may follow that of kind PRESENT: by address, IMAGE_SUM_BYTES for
 * at most IMAGE_SUM_MAX_BYTES of present pages each, which the receiver compares with what it has.
 *
 * Files of trees may go ahead too: an object of kind AHEAD has the contents of one, under a number,
 * and may be opened again, for what has changed since; its last close tells the size. A close of
 * size 0 forgets it. A later object of kind REGULAR in the same tree that names the number begins
 * with these contents, and its data is only what is different. */
#ifndef RM_IMAGE_FORMAT_H
#define RM_IMAGE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/frame.h"
#include "daemon/image/codec.h"
#include "proto/image.pb-c.h"

#define IMAGE_VERSION 3U
#define IMAGE_BLOCK_BYTES 4096U
#define IMAGE_PAYLOAD_MAX_BYTES (1U << 20)
#define IMAGE_HEADER_MAX_BYTES (16U << 10)
#define IMAGE_CHECKSUM_BYTES 8U
#define IMAGE_CHUNK_MAX_BYTES (FRAME_HEADER_BYTES + IMAGE_HEADER_MAX_BYTES + IMAGE_PAYLOAD_MAX_BYTES + IMAGE_CHECKSUM_BYTES)

/* The bounds of objects that a user can make. */
#define IMAGE_SLOTS_MAX 8192U
#define IMAGE_OBJECTS_MAX (4U << 20)
#define IMAGE_NAME_MAX_BYTES 255U   /* of a CRIU image, and of one component of a path */
#define IMAGE_ROLE_MAX_BYTES 63U
#define IMAGE_PATH_MAX_BYTES 4095U
#define IMAGE_OBJECT_MAX_BYTES (UINT64_C(1) << 48)
#define IMAGE_BLOCKS_MAX (UINT64_C(1) << 32) /* sent ahead */
#define IMAGE_PID_MAX (1U << 22)             /* the kernel's PID_MAX_LIMIT */
#define IMAGE_PAGES_MAX 4096U                /* processes; each has a slot, and CRIU's images need others */
#define IMAGE_PRESENT_RUN_BYTES 16U
#define IMAGE_SUM_BYTES 32U
#define IMAGE_SUM_MAX_BYTES 65536U /* of pages that one is of */
#define IMAGE_AHEAD_MAX 1024U                /* files ahead, whose numbers are 1 to this; each takes a descriptor */
#define IMAGE_PRESENT_MAX_BYTES (UINT64_C(1) << 30) /* every other page of 512 GiB */
#define IMAGE_ATTRIBUTES_MAX_BYTES 8192U /* of one object: names, values and what each costs in the header */
#define IMAGE_ATTRIBUTE_HEAD_BYTES 16U

/* The pages of processes, in the directory of CRIU's images at the destination: a file for each
 * process, named by its pid, whose offsets are addresses. */
#define IMAGE_PAGES_DIRECTORY "pages"
/* This directory is there, too, if pages of some processes come later: a file of each, named by its
 * pid, as pageset_save() writes it. */
#define IMAGE_LATER_DIRECTORY "later"

enum image_run_kind {
        IMAGE_RUN_DATA = 0,
        IMAGE_RUN_ZERO = 1,
        IMAGE_RUN_HAVE = 2,
};
#define IMAGE_RUN_KIND_BITS 2U

/* An extended attribute (xattr(7)), such as an access control list. */
struct image_attribute {
        const char *name;
        const void *value;
        size_t value_bytes;
};

/* An object as the application sees it. Strings are borrowed for the call. */
struct image_object {
        Rm__ImageKind kind;
        const char *role;   /* "" for CRIU images, blocks and memory */
        const char *path;   /* "" for spool files and blocks; memory: the pid in the capsule, decimal; AHEAD: its number */
        const char *target; /* "" but for symlinks and hard links */
        uint32_t mode;      /* permission bits, 07777 */
        uint32_t uid;
        uint32_t gid;
        int64_t mtime_sec;
        uint32_t mtime_nsec;
        const struct image_attribute *attributes; /* of files, FIFOs and ends of directories */
        size_t n_attributes;
        uint32_t ahead; /* of a regular file: the number by which its contents came before; 0: they did not */
};

/* Counted on both sides. */
struct image_figures {
        uint64_t chunks;
        uint64_t objects;
        uint64_t raw_bytes;  /* contents, holes included */
        uint64_t zero_bytes; /* of raw_bytes: zero blocks and holes */
        uint64_t have_bytes; /* of raw_bytes: blocks the receiver had */
        uint64_t wire_bytes; /* whole chunks */
        uint64_t coded_bytes[IMAGE_CODECS]; /* by codec: what went through it, before it */
        uint64_t saved_bytes; /* what wire_bytes would be more without codecs */
};

/* Does the kind have contents, and so a slot and a close? */
bool image_kind_has_data(Rm__ImageKind kind);
/* Is it of a process's memory (PAGES, and those lists)? */
bool image_kind_is_memory(Rm__ImageKind kind);
/* Are its contents runs of pages (PRESENT, LATER, SUMS)? */
bool image_kind_is_runs(Rm__ImageKind kind);
/* Is it a file whose data replaces what came ahead (AHEAD, or a REGULAR that names one)? */
bool image_object_replaces(const struct image_object *object);

/* May the receiver use this object's names? CRIU images: one component of printable ASCII, no '/',
 * not "." or "..". Paths: relative, no empty, "." or ".." component, except that a directory may be
 * ".". Pids: 1 to IMAGE_PID_MAX. Role: as name_valid(). Attributes: as image_attributes_check().
 * Every rule of ImageOpen in one place, applied by writer and reader alike. 0 or -EBADMSG with a
 * text that says which rule. */
int image_object_check(const struct image_object *object, struct rm_error *err);

#endif
