/* Settings of processes and threads that CRIU does not know: I/O priority, timer slack, what a core
 * dump has. They are taken with the inventory, and made again before the restored group runs. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_SETTINGS_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_SETTINGS_H

#include "proto/capsule.pb-c.h"

struct rm_error;

/* `task_fd` is the directory of the process in /proc; its threads are noted. */
void settings_take(int task_fd, Capsule__InventoryTask *task);
/* Gives the processes of the inventory their settings, unless an older rmd has taken it. Fails
 * with the errno of what could not be set. */
int settings_make(const Capsule__Inventory *inventory, struct rm_error *error);

#endif
