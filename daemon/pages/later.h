/* Between the uffd handler and the receiving rm-mover, over a Unix socket of type SOCK_SEQPACKET:
 * pages that were left at the source of a move, and which of them are waited for. */
#ifndef RM_DAEMON_PAGES_LATER_H
#define RM_DAEMON_PAGES_LATER_H

#include <stdint.h>

/* The name of rm-mover's socket in the directory of the images, if pages come later. */
#define LATER_SOCKET "later.sock"

#define LATER_PIECE_MAX_BYTES (64U << 10)

/* A message from the uffd handler asks for a page that is waited for. A message to it is followed
 * by `size_bytes` of whole pages, LATER_PIECE_MAX_BYTES at most. */
struct later_piece {
        uint32_t pid; /* in the image */
        uint32_t size_bytes;
        uint64_t address;
};

#endif
