#include "daemon/doctor/doctor.h"

int doctor_parse(const void *output, size_t output_bytes, Rm__NodeFacts **ret, struct rm_error *err) {
        Rm__NodeFacts *facts = rm__node_facts__unpack(NULL, output_bytes, output);

        if (!facts)
                return error_set(err, -EBADMSG, "rm-node-facts wrote %zu bytes that are no facts", output_bytes);
        *ret = facts;
        return 0;
}
