/* A socket on which rm-mover meets a program of a user of this node: the user's bytes need not go
 * through rmd. It has a path and belongs to that user, so that no other can connect, hold up the
 * owner, or take its place. Every wait listens to rmd as well, and ends when the program takes too
 * long for a piece. */
#ifndef RM_MOVER_USER_LINK_H
#define RM_MOVER_USER_LINK_H

#include "daemon/mover/control.h"

/* Listens at a path where no file is yet. The umask must keep others out. */
int user_link_listen(const char *path, uint32_t uid, int *ret_fd, struct rm_error *err);
/* -ETIMEDOUT: no program has connected. */
int user_link_accept(struct control *c, int listen_fd, uint32_t uid, int *ret_fd, struct rm_error *err);
/* Writes all of the data. -EPIPE: the program has gone. */
int user_link_write(struct control *c, int fd, const void *data, size_t size_bytes, struct rm_error *err);
/* Reads all of the data, or less where the program has ended its output. */
int user_link_read(struct control *c, int fd, void *data, size_t size_bytes, size_t *ret_bytes, struct rm_error *err);

#endif
