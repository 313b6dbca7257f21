/* Helper links of CRIU. A file that is open or mapped, and whose name is gone while another one
 * remains, gets the name link_remap.N in the same directory when it is dumped, by which the restore
 * finds it. CRIU takes that away again at the end of a dump that leaves the processes, as ours do:
 * so it is hidden from CRIU then, and is ours to take away when the move is given up. */
#ifndef RM_DAEMON_CAPSULE_INIT_CRIU_LINK_REMAP_H
#define RM_DAEMON_CAPSULE_INIT_CRIU_LINK_REMAP_H

#include <stdbool.h>

struct stat;

/* Has the open or mapped file that /proc names so lost that name? NFS keeps a file that has lost
 * its last one under a name of its own (.nfsXXX). */
bool link_remap_lost_name(const char *link);
/* Is `link`, which ends as one that was lost does, the name of the file of `st` all the same? */
bool link_remap_has_name(const char *link, const struct stat *st);
/* Is such a file one that CRIU makes a link to? Not without any other name. Then CRIU needs the
 * option below. */
bool link_remap_applies(const struct stat *st);
#define LINK_REMAP_OPTION "action-script /proc/1/exe\n"
/* Does the work of rm-capsule when CRIU runs it so; returns the exit code. */
int link_remap_script(const char *action);

/* These all look at the open and mapped files of the processes in `proc` (/proc), and touch no
 * other link than one to such a file. */

/* Hides the links from CRIU: link_remap.N becomes link_remap.N.kept. The second one takes that
 * back. */
void link_remap_hide(const char *proc);
void link_remap_show(const char *proc);
/* Removes both kinds of links. */
void link_remap_remove(const char *proc);

#endif
