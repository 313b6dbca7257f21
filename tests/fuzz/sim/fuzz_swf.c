/* Any bytes are a trace that can be simulated, or one error that begins with the file's name. */
#include <string.h>

#include "launcher/sim/swf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct rm_error err = { 0 };
        struct swf swf = { 0 };

        if (swf_parse("t", (const char *) data, size, &swf, &err) < 0) {
                if (strncmp(err.text, "t:", 2) != 0 || strchr(err.text, '\n') || swf.jobs)
                        __builtin_trap();
                return 0;
        }
        for (size_t i = 0; i < swf.n_jobs; i++)
                if (swf.jobs[i].ranks == 0 || swf.jobs[i].run_usec <= 0 || swf.jobs[i].limit_usec <= 0 ||
                    swf.jobs[i].submit_usec < 0)
                        __builtin_trap();
        swf_finish(&swf);
        return 0;
}
