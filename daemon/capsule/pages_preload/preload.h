/* Names that the libraries in CRIU and the programs that start CRIU both know. See preload.c, and
 * of restores subreaper.c. */
#ifndef RM_DAEMON_CAPSULE_PAGES_PRELOAD_PRELOAD_H
#define RM_DAEMON_CAPSULE_PAGES_PRELOAD_PRELOAD_H

#define PAGES_LIBRARY RM_LIBEXEC_DIR "/criu-pages.so"
#define RESTORE_LIBRARY RM_LIBEXEC_DIR "/criu-restore.so"

/* The variable of the environment that names a file that exists when private memory travels apart.
 * Its line is the directory with the flags of mappings that were kept (vmflags_save()), one file
 * for each process, named by its pid in the capsule. */
#define PAGES_VARIABLE "RM_CRIU_PAGES"

#endif
