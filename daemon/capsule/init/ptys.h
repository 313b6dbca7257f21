/* Pseudo-terminals after a restore. */
#ifndef RM_CAPSULE_PTYS_H
#define RM_CAPSULE_PTYS_H

/*
 * CRIU makes a master whose slave everybody had closed as if nobody had opened it yet: its reader
 * then waits for ever for the end of file that it was about to see (PRRTE: a rank that has ended).
 * Closes those slaves again, in /dev/pts of the calling process's mount namespace. To be called
 * while the restored processes are frozen. Returns how many slaves there were.
 */
unsigned ptys_hang_up(void);

#endif
