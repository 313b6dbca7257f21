/* The program socket is the socket through which a program in a capsule speaks to PID 1, and hears
 * it (proto/program.proto). */
#ifndef RM_COMMON_PROGRAM_SOCKET_H
#define RM_COMMON_PROGRAM_SOCKET_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PROGRAM_SOCKET_PATH "/run/rm/door"

enum {
        PROGRAM_SOCKET_MESSAGE_BYTES = 256, /* at most, either way */
};

/* The address of kind and rank: an abstract name, which is the capsule's own as its network is. No
 * pathname: root would look it up in mounts of the user's. */
static inline socklen_t program_socket_address(const char *kind, uint32_t rank, struct sockaddr_un *ret) {
        int n;

        *ret = (struct sockaddr_un) { .sun_family = AF_UNIX };
        n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "rm/%s/%" PRIu32, kind, rank);
        return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n);
}

/* Where librmrt in a rank hears. */
static inline socklen_t program_socket_rank_address(uint32_t rank, struct sockaddr_un *ret) {
        return program_socket_address("rank", rank, ret);
}

/* Where librmrt-ft in a rank hears, beside librmrt, and what it says its words of Loss from. */
static inline socklen_t program_socket_ft_address(uint32_t rank, struct sockaddr_un *ret) {
        return program_socket_address("ft", rank, ret);
}

#endif
