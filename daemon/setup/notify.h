/* Messages of rmd to the service manager that has started it: the protocol of sd_notify(3). */
#ifndef RM_SETUP_NOTIFY_H
#define RM_SETUP_NOTIFY_H

/* Takes the socket's name out of the environment, so that no child process has it. malloc'ed; NULL:
 * no service manager waits. */
char *notify_take_socket(void);

/* `text`: lines such as "READY=1". NULL `socket_name` ok: nothing is sent. 0 or negative errno.
 * Does not wait: a manager that does not read is told nothing (-EAGAIN). */
int notify_send(const char *socket_name, const char *text);

#endif
