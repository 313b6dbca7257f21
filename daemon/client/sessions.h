/* The sessions of users who look at the page over TCP, where the kernel cannot say whose browser it
 * is. A user asks rmd for a token over rmd's own socket, which knows him; his browser gives it
 * back, once and soon, for the value of a session, and shows that from then on. Both are drawn by
 * the kernel, 256 bits long, and kept only in the memory of this rmd. Takes the time as an
 * argument. */
#ifndef RM_CLIENT_SESSIONS_H
#define RM_CLIENT_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* From a terminal into a browser. */
#define SESSIONS_TOKEN_USEC UINT64_C(120000000)
/* A working day. */
#define SESSIONS_USEC (UINT64_C(12) * 3600 * 1000000)
/* The number of tokens, and of sessions, of one user: with one more, the oldest of that user
 * ends. */
#define SESSIONS_OF_USER 8U
/* The number of tokens and sessions of all users but root, together. */
#define SESSIONS_ALL 1024U
/* The size of a secret in hexadecimal, with the NUL. */
#define SESSIONS_SECRET_BYTES 65U

struct sessions;

struct sessions *sessions_create(void);
void sessions_destroy(struct sessions *sessions); /* NULL ok */

/* -EUSERS: all users together have too many. Negative errno: the kernel draws nothing. */
int sessions_offer(struct sessions *sessions, uid_t uid, uint64_t now_usec, char ret_token[static SESSIONS_SECRET_BYTES]);
/* The token is used up. -EACCES: there is no such token (any more); otherwise as
 * sessions_offer(). */
int sessions_begin(struct sessions *sessions, const char *token, uint64_t now_usec, char ret_value[static SESSIONS_SECRET_BYTES]);
/* Finds the user of a session, and when it ends. -EACCES: there is no such session (any more). */
int sessions_find(struct sessions *sessions, const char *value, uint64_t now_usec, uid_t *ret_uid, uint64_t *ret_end_usec);

#endif
