/*
 * rm-plugin-host: runs one plugin once, in a process that may crash or hang without harm. policy.c,
 * sensor.c and fence.c say which options their kind has, and give up the rights that it does not
 * need.
 *
 *      rm-plugin-host --kind policy|sensor|fence OPTION...
 *
 * --kind is the first option. Exit status: 0 done, 1 failed, 2 usage.
 */
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "daemon/host/host.h"
#include "rm/fence.h"
#include "rm/policy.h"
#include "rm/sensor.h"

static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
} kinds[] = {
        { RM_POLICY_KIND, host_run_policy },
        { RM_SENSOR_KIND, host_run_sensor },
        { RM_FENCE_KIND, host_run_fence },
};

int main(int argc, char **argv) {
        for (size_t i = 0; argc > 2 && strcmp(argv[1], "--kind") == 0 && i < ARRAY_SIZE(kinds); i++)
                if (strcmp(argv[2], kinds[i].name) == 0) {
                        argv[2] = argv[0];
                        return kinds[i].run(argc - 2, argv + 2);
                }
        (void) fprintf(stderr, "usage: rm-plugin-host --kind policy|sensor|fence OPTION...\n");
        return 2;
}
