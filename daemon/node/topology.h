/* A description of this machine: cores, memory, shape, and its boot. Read once at start. */
#ifndef RM_NODE_TOPOLOGY_H
#define RM_NODE_TOPOLOGY_H

#include <stdint.h>

#include "common/error.h"

#define TOPOLOGY_DESCRIPTION_BYTES 256
#define TOPOLOGY_BOOT_ID_BYTES 64
#define TOPOLOGY_CPUS_MAX 4096
#define TOPOLOGY_INSTRUCTION_SETS_BYTES 2048

struct topology {
        /* Cores, not hardware threads: a rank computes all the time, two of them on the threads of
         * one core share its units and each gets little more than half, and mpirun counts slots by
         * cores too. Only cores that this process may run on (cpuset, taskset, CPUAffinity= of
         * systemd) are counted, because ranks inherit that. At least 1. */
        uint32_t cores;
        uint64_t memory_bytes;
        /* hwloc's synthetic form without sizes, "Package:2 L3Cache:1 Core:8 PU:2". "Core:N" when
         * the machine is not the same all over (some cores taken away, or of several kinds), for
         * which that form has no words. */
        char description[TOPOLOGY_DESCRIPTION_BYTES];
        uint32_t real_cores; /* that core_of_cpu knows */
        /* The core of each CPU by the kernel's number, as cores are counted in the description; -1:
         * it is not in the description. */
        int16_t core_of_cpu[TOPOLOGY_CPUS_MAX];
        /* See instruction_sets_of(); empty when read from a file, or where the kernel does not
         * tell. */
        char instruction_sets[TOPOLOGY_INSTRUCTION_SETS_BYTES];
        char boot_id[TOPOLOGY_BOOT_ID_BYTES]; /* see topology_boot_id(); empty when read from a file */
};

/* This machine. Takes some 20 ms. Call it before any thread is started: the environment is changed
 * for a moment. Nothing of hwloc is kept in memory. */
int topology_read(struct topology *ret_topology, struct rm_error *err);

/* A machine that lstopo recorded as XML. */
int topology_read_xml(const char *path, struct topology *ret_topology, struct rm_error *err);

/* A word that changes whenever the node starts again: the kernel's boot id, and the start time of
 * PID 1 of this PID namespace, because emulated nodes and containers share one kernel and are
 * switched on and off without it. `kernel_id` is the text of /proc/sys/kernel/random/boot_id,
 * `stat` that of /proc/1/stat. -EINVAL when they are not that. */
int topology_boot_id(const char *kernel_id, const char *stat, char ret_id[static TOPOLOGY_BOOT_ID_BYTES]);

#endif
