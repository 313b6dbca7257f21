/* The first configuration of a node: `rmd --init-cluster` on the first one, `rmd --join` on the
 * others.
 *
 * What is there already is kept, whatever it is, and then it must fit: both can be repeated. A file
 * has its name only once all of it is on the disk. The key is shown nowhere. */
#ifndef RM_SETUP_SETUP_H
#define RM_SETUP_SETUP_H

#include <stdio.h>

#include "common/error.h"

struct setup {
        const char *config_path;
        const char *key_path;  /* where a new key goes; an existing configuration names its own */
        const char *join;      /* nodes of the cluster, "HOST[:PORT]", with commas between them; NULL: a cluster begins here */
        const char *uplink;    /* NULL: found by itself */
        const char *systemctl; /* program that enables and starts the unit; NULL: no systemd runs here */
};

/* Says on `out` what it has done, and what is to be done next. Everything is checked before
 * anything is written. 0 or negative errno; among them -EINVAL: `join` is no list of nodes;
 * -ENOKEY: a node that joins has no key; -EEXIST: an existing configuration says something else. */
int setup_node(const struct setup *setup, FILE *out, struct rm_error *err);

#endif
