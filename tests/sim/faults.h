/* The faults of a history: faults of the network, of processes, disks and clocks, drawn over a time
 * after which all is well again. */
#ifndef RM_TESTS_SIM_FAULTS_H
#define RM_TESTS_SIM_FAULTS_H

#include "tests/sim/disk.h"
#include "tests/sim/network.h"

struct faults;

/* The targets of faults. All is borrowed. */
struct faults_world {
        struct timeline *timeline;
        struct network *network;
        struct host *const *hosts; /* of the network; the first n_victims may be killed, and have disks */
        struct disk *const *disks;
        unsigned n_victims;
        /* The host that half of the faults strike; negative: any. */
        int (*favourite)(void *userdata);
        /* May this host's disk be damaged now? */
        bool (*may_damage)(void *userdata, unsigned host);
        /* The disk was damaged, or is another one. */
        void (*on_disk_lost)(void *userdata, unsigned host);
        /* The machine is off, after its process has ended. */
        void (*on_power_off)(void *userdata, unsigned host);
        void *userdata;
};

/* `n` faults begin before that time, when all of them end. */
struct faults *faults_create(const struct faults_world *world, unsigned n, uint64_t until_usec);
/* A host has begun something that it had better not be killed amid. */
void faults_delicate(struct faults *f, unsigned host);
void faults_destroy(struct faults *f); /* NULL ok */

#endif
