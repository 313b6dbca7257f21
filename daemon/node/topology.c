#include "daemon/node/topology.h"

#include <ctype.h>
#include <hwloc.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/instruction_sets.h"
#include "common/util.h"

#define FILE_MAX_BYTES 4096U

/* hwloc's plugins look at GPUs and X servers, which is of no use here, may hang, and costs 2 MB for
 * good. */
#define PLUGINS_VARIABLE "HWLOC_PLUGINS_PATH"
#define NO_PLUGINS "/nonexistent"

int topology_boot_id(const char *kernel_id, const char *stat, char ret_id[static TOPOLOGY_BOOT_ID_BYTES]) {
        size_t id_bytes = strspn(kernel_id, "0123456789abcdefABCDEF-");
        const char *p = strrchr(stat, ')'); /* the name before it may hold anything, blanks too */
        unsigned long long start_ticks;
        int n;

        if (id_bytes == 0 || (kernel_id[id_bytes] && kernel_id[id_bytes] != '\n') || !p)
                return -EINVAL;
        for (int field = 2; field < 22; field++) {
                p = strchr(p + 1, ' ');
                if (!p)
                        return -EINVAL;
        }
        if (!isdigit((unsigned char) p[1]))
                return -EINVAL;
        start_ticks = strtoull(p + 1, NULL, 10);
        n = snprintf(ret_id, TOPOLOGY_BOOT_ID_BYTES, "%.*s-%llx", (int) id_bytes, kernel_id, start_ticks);
        return n < TOPOLOGY_BOOT_ID_BYTES ? 0 : -EINVAL;
}

static int read_boot_id(struct topology *topology, struct rm_error *err) {
        static const char id_path[] = "/proc/sys/kernel/random/boot_id";
        static const char stat_path[] = "/proc/1/stat";
        cleanup_free char *id = NULL;
        cleanup_free char *stat = NULL;
        int r;

        r = read_file(id_path, FILE_MAX_BYTES, &id, NULL);
        if (r < 0)
                return error_sys(err, r, "cannot read %s", id_path);
        r = read_file(stat_path, FILE_MAX_BYTES, &stat, NULL);
        if (r < 0)
                return error_sys(err, r, "cannot read %s", stat_path);
        r = topology_boot_id(id, stat, topology->boot_id);
        if (r < 0)
                return error_set(err, r, "%s and %s are not of the expected form", id_path, stat_path);
        return 0;
}

static void describe(hwloc_topology_t hw, struct topology *topology) {
        unsigned long flags = HWLOC_TOPOLOGY_EXPORT_SYNTHETIC_FLAG_NO_ATTRS | HWLOC_TOPOLOGY_EXPORT_SYNTHETIC_FLAG_IGNORE_MEMORY;
        int n = hwloc_topology_export_synthetic(hw, topology->description, sizeof(topology->description), flags);

        if (n < 0 || (size_t) n >= sizeof(topology->description))
                (void) snprintf(topology->description, sizeof(topology->description), "Core:%u", topology->cores);
}

/* Cores in the order of the topology, each with its hardware threads. */
static void number_cpus(hwloc_topology_t hw, hwloc_obj_type_t type, struct topology *topology) {
        topology->real_cores = topology->cores <= INT16_MAX ? topology->cores : INT16_MAX;
        for (unsigned cpu = 0; cpu < TOPOLOGY_CPUS_MAX; cpu++)
                topology->core_of_cpu[cpu] = -1;
        for (uint32_t core = 0; core < topology->real_cores; core++) {
                hwloc_obj_t object = hwloc_get_obj_by_type(hw, type, core);

                for (unsigned cpu = 0; object && cpu < TOPOLOGY_CPUS_MAX; cpu++)
                        if (hwloc_bitmap_isset(object->cpuset, cpu))
                                topology->core_of_cpu[cpu] = (int16_t) core;
        }
}

static void take_figures(hwloc_topology_t hw, struct topology *topology) {
        int cores = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_CORE);
        hwloc_obj_type_t type = cores > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;

        /* Some virtual machines and architectures do not tell which threads make a core. */
        if (cores <= 0)
                cores = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_PU);
        topology->cores = cores > 0 ? (uint32_t) cores : 1;
        number_cpus(hw, type, topology);
        topology->memory_bytes = hwloc_get_root_obj(hw)->total_memory;
        describe(hw, topology);
}

/* The levels that matter to placement: packages, cores, and in between what groups cores; no I/O
 * devices. */
static int set_up(hwloc_topology_t hw, const char *xml) {
        unsigned long flags = xml ? 0 : HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING;

        if (hwloc_topology_set_all_types_filter(hw, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) < 0 ||
            hwloc_topology_set_io_types_filter(hw, HWLOC_TYPE_FILTER_KEEP_NONE) < 0 ||
            hwloc_topology_set_type_filter(hw, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE) < 0 ||
            hwloc_topology_set_type_filter(hw, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL) < 0 ||
            hwloc_topology_set_type_filter(hw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) < 0)
                return -errno;
        if (xml && hwloc_topology_set_xml(hw, xml) < 0)
                return -errno;
        return hwloc_topology_set_flags(hw, flags) < 0 ? -errno : 0;
}

static int load(const char *xml, struct topology *topology) {
        hwloc_topology_t hw;
        int r;

        if (hwloc_topology_init(&hw) < 0)
                return -ENOMEM;
        r = set_up(hw, xml);
        if (r == 0 && hwloc_topology_load(hw) < 0)
                r = errno ? -errno : -EINVAL;
        if (r == 0)
                take_figures(hw, topology);
        hwloc_topology_destroy(hw);
        return r;
}

static int load_without_plugins(const char *xml, struct topology *topology) {
        cleanup_free char *old = xstrdup(getenv(PLUGINS_VARIABLE));
        int r;

        (void) setenv(PLUGINS_VARIABLE, NO_PLUGINS, 1);
        r = load(xml, topology);
        if (old)
                (void) setenv(PLUGINS_VARIABLE, old, 1);
        else
                (void) unsetenv(PLUGINS_VARIABLE);
        /* A daemon that is to stay small for months gives the heap of this moment back. */
        (void) malloc_trim(0);
        return r;
}

/* A processor's words are on a line "flags : ...", or "Features : ..." of ARM. All processors of a
 * machine have the same, as far as programs may use it. */
static void read_instruction_sets(const char *machine, struct topology *topology) {
        cleanup_file FILE *f = fopen("/proc/cpuinfo", "re");
        cleanup_free char *line = NULL;
        cleanup_free char *sets = NULL;
        size_t size = 0;

        while (f && !sets && getline(&line, &size, f) > 0) {
                char *words = strchr(line, ':');

                if (!words || (strncmp(line, "flags\t", 6) != 0 && strncmp(line, "Features\t", 9) != 0))
                        continue;
                words[strcspn(words, "\n")] = '\0';
                sets = instruction_sets_of(words + 1, machine);
        }
        /* A list that is cut would tell of a processor that lacks something. */
        if (sets && strlen(sets) < sizeof(topology->instruction_sets))
                (void) snprintf(topology->instruction_sets, sizeof(topology->instruction_sets), "%s", sets);
}

int topology_read(struct topology *ret_topology, struct rm_error *err) {
        struct topology topology = { 0 };
        struct utsname name;
        int r = read_boot_id(&topology, err);

        if (r < 0)
                return r;
        r = load_without_plugins(NULL, &topology);
        if (r < 0)
                return error_sys(err, r, "hwloc cannot read this machine's topology");
        if (uname(&name) == 0)
                read_instruction_sets(name.machine, &topology);
        *ret_topology = topology;
        return 0;
}

int topology_read_xml(const char *path, struct topology *ret_topology, struct rm_error *err) {
        struct topology topology = { 0 };
        int r = load_without_plugins(path, &topology);

        if (r < 0)
                return error_sys(err, r, "hwloc cannot read the topology in %s", path);
        *ret_topology = topology;
        return 0;
}
