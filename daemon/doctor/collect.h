/* The facts of this machine that matter for moving and restoring jobs. Reads files and tries
 * things, and may block for as long as a disk or a program does: for a process of its own
 * (host/main.c). */
#ifndef RM_DOCTOR_COLLECT_H
#define RM_DOCTOR_COLLECT_H

#include <stdint.h>

#include "proto/local.pb-c.h"

/* Strings are the caller's. */
struct collect_config {
        const char *root; /* in front of /proc and /sys; "": none. For tests */
        const char *cluster, *key_file, *second_key_file; /* second: "" = none */
        const char *state_dir, *runtime_dir;
        const char *uplink;
        const char *address; /* IPv4, where movers listen */
        uint16_t port_first, port_last; /* first 0: any */
        const char *criu; /* path */
};

/* Facts are rm__node_facts__init()ed by the caller, which frees them with
 * rm__node_facts__free_unpacked() or lets them go with the process; all strings are malloc'ed. */

/* Collects the facts that only root may see or try: the key file, directories of rmd, ports, and
 * "criu check". */
void collect_as_root(const struct collect_config *config, Rm__NodeFacts *facts);
/* Collects the facts that any user may see: kernel, processor, uplink, libraries, versions.
 * Programs and libraries of the machine print these, so it is better done without root's rights. */
void collect_as_anyone(const struct collect_config *config, Rm__NodeFacts *facts);

/* The parts that can be tried on a tree of files. */
void collect_processor(const char *root, Rm__NodeFacts *facts);
void collect_huge_pages(const char *root, Rm__NodeFacts *facts);
void collect_uplink(const char *root, const char *uplink, Rm__NodeFacts *facts);
/* The file at `path`; it is not read where it is no regular file, or larger than a library is. The
 * caller owns what is added. */
void collect_library(const char *name, const char *path, Rm__NodeFacts *facts);
/* Takes from the output of "ldconfig -p" the libraries that MPI programs map, of this machine's
 * word size. */
void collect_libraries(const char *ldconfig, Rm__NodeFacts *facts);
void collect_disk(const char *setting, const char *path, Rm__NodeFacts *facts);
void collect_key(const struct collect_config *config, Rm__NodeFacts *facts);
void collect_ports(const struct collect_config *config, Rm__NodeFacts *facts);

#endif
