/* The kernel says which user has the other end of a TCP connection on this machine. */
#ifndef RM_WEB_PEER_UID_H
#define RM_WEB_PEER_UID_H

#include <sys/types.h>

struct peer_uid;

/* NULL: the kernel's socket diagnosis cannot be asked. */
struct peer_uid *peer_uid_create(void);
void peer_uid_destroy(struct peer_uid *diag); /* NULL ok */

/* The user who made the socket that `fd`, an IPv4 one, is connected to. -ENOENT: it is gone, or not
 * on this machine. NULL `diag`: -ENOTSUP. */
int peer_uid_find(struct peer_uid *diag, int fd, uid_t *ret_uid);

#endif
