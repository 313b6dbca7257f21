/* Plans from arbitrary bytes, for a snapshot that has a bit of everything. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/sched/plan.h"
#include "daemon/sched/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static const char snapshot_text[] =
        "{\"version\":1,\"nodes\":[{\"name\":\"n1\",\"cores\":4,\"penalty\":1},{\"name\":\"n2\",\"cores\":3,\"penalty\":1}],"
        "\"jobs\":["
        "{\"name\":\"j1\",\"ranks\":4,\"group_size\":2,\"priority\":1,\"placed\":[{\"node\":\"n1\",\"ranks\":2},"
        "{\"node\":\"n2\",\"ranks\":2,\"pinned\":true}]},{\"name\":\"j2\",\"ranks\":3,\"priority\":1,\"availability\":{\"n2\":1}}]"
        "}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        struct plan_answer answer = { 0 };
        struct snapshot *snapshot = NULL;
        struct rm_error err = { 0 };

        if (snapshot_parse(snapshot_text, sizeof(snapshot_text) - 1, &snapshot, &err) < 0)
                abort();
        if (plan_parse(data, size_bytes, snapshot_view(snapshot), &answer, &err) < 0) {
                if (err.text[0] == '\0')
                        abort();
        } else if (plan_validate(snapshot_view(snapshot), answer.plan, &err) == 0) {
                json_t *json = plan_to_json(&answer, snapshot_view(snapshot));

                if (!json)
                        abort();
                json_decref(json);
        }
        plan_answer_finish(&answer);
        snapshot_destroy(snapshot);
        return 0;
}
