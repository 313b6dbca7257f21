/* Programs of rmd's own that a job's capsules need. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/job/launch.h"
#include "daemon/job/runner_internal.h"

#define PROGRAM_MAX_BYTES ((size_t) 4 << 20) /* of rm-agent, which has some 30 KiB, without debugging information */

int runner_copy_program(const struct resident *resident, const char *program, const char *path) {
        cleanup_free char *from = xasprintf("%s/%s", RM_LIBEXEC_DIR, program);
        cleanup_free char *to = xasprintf("%s%s", capsule_root(resident_capsule(resident)), path);
        cleanup_free char *data = NULL;
        size_t size_bytes;
        int r = read_file(from, PROGRAM_MAX_BYTES, &data, &size_bytes);

        return r < 0 ? r : write_file_atomic(to, data, size_bytes, 0755, false);
}

unsigned runner_give_prrte(const struct resident *resident) {
        int r = runner_copy_program(resident, "rm-prrte.so", LAUNCH_PRRTE);

        if (r < 0)
                log_warn("job %" PRIu64 ": cannot copy rm-prrte into %s: %s", resident_job(resident),
                         capsule_id(resident_capsule(resident)), strerror(-r));
        return r < 0 ? 0 : LAUNCH_WITH_PRRTE;
}
