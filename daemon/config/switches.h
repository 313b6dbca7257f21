/* The cluster's switches, as Slurm's topology.conf has them: a text in, a forest out.
 *
 *      SwitchName=leaf1 Nodes=n[1-16]
 *      SwitchName=leaf2 Nodes=n[17-32]
 *      SwitchName=spine Switches=leaf[1-2]
 *
 * One switch a line, in any order. Key words in any case; `LinkSpeed=` is read over. Comments begin
 * with '#'; a line that ends in '\' goes on in the next. A switch without nodes or switches below
 * it, one that is there twice or below itself, and a node or switch that is below two, are errors.
 * Whether there are such nodes is not known here: they may join later. */
#ifndef RM_CONFIG_SWITCHES_H
#define RM_CONFIG_SWITCHES_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/hostlist.h"

#define SWITCHES_MAX_BYTES (1U << 20)
#define SWITCHES_MAX 4096U
#define SWITCHES_DEPTH_MAX 16U

struct config_switch {
        char *name;
        struct hostlist nodes; /* that are plugged into it */
        size_t parent;         /* index of the switch above; SIZE_MAX: none */
        size_t line;           /* where it stands */
};

/* Zeroed, it has no switches. The code that made it owns it. */
struct switches {
        struct config_switch *list;
        size_t n;
};

/* -EINVAL with one message, "NAME:LINE: what". `data` ends in NUL. Free with switches_finish(). */
int switches_parse(const char *name, const char *data, size_t size_bytes, struct switches *ret_switches, struct rm_error *err);
int switches_load(const char *path, struct switches *ret_switches, struct rm_error *err);
void switches_finish(struct switches *switches);

#endif
