#include "daemon/sched/round_json.h"

#include <string.h>

#include "common/text.h"
#include "common/util.h"

/* Each node once, in the order they come in. */
static json_t *node_names(const struct rm_snapshot *snapshot, const int32_t *nodes, uint32_t n) {
        cleanup_free bool *seen = xcalloc(snapshot->n_nodes + 1u, sizeof(*seen));
        json_t *names = json_array();

        for (uint32_t i = 0; i < n; i++) {
                if (seen[nodes[i]])
                        continue;
                seen[nodes[i]] = true;
                json_array_append_new(names, json_string(snapshot->nodes[nodes[i]].name));
        }
        return names;
}

static json_t *action_to_json(const struct rm_snapshot *snapshot, const struct round_action *action) {
        const struct rm_job *job = &snapshot->jobs[action->job];
        json_t *spares;

        if (action->kind == ROUND_MOVE)
                return json_pack("{s:s, s:s, s:i, s:s, s:s, s:b, s:s}", "action", "move", "job", job->name, "group",
                                 (int) action->group, "from", snapshot->nodes[action->from].name, "to",
                                 snapshot->nodes[action->to].name, "need", action->cause != ROUND_CHOICE, "why", action->reason);
        spares = node_names(snapshot, action->spare_nodes, action->n_spare_nodes);
        if (action->kind == ROUND_RESERVE)
                return json_pack("{s:s, s:s, s:o}", "action", "reserve", "job", job->name, "nodes", spares);
        return json_pack("{s:s, s:s, s:o, s:s, s:o}", "action", "start", "job", job->name, "nodes",
                         node_names(snapshot, action->group_node, job->n_groups), "head", snapshot->nodes[action->head_node].name,
                         "spares", spares);
}

static void add_note(char *text, size_t size, const char *more) {
        if (more[0])
                (void) text_append(text, size, "%s%s", text[0] ? "; " : "", more);
}

/* NULL: there is nothing to say about the job. */
static json_t *note_to_json(const struct rm_job *job, const struct round_job_result *result) {
        char note[3 * RM_REASON_BYTES] = "", kept[100] = "";

        if (result->kept > 0)
                (void) snprintf(kept, sizeof(kept), "%u of its groups stay%s: another node is worth less to it than the move costs",
                                result->kept, result->kept == 1 ? "s" : "");
        add_note(note, sizeof(note), result->reason);
        add_note(note, sizeof(note), kept);
        add_note(note, sizeof(note), result->measured);
        if (!note[0] && !result->waits && !result->folded)
                return NULL;
        return json_pack("{s:s, s:b, s:b, s:i, s:s}", "job", job->name, "waits", (int) result->waits, "folded",
                         (int) result->folded, "kept", (int) result->kept, "note", note);
}

json_t *round_result_to_json(const struct rm_snapshot *snapshot, const struct round_result *result) {
        json_t *actions = json_array(), *notes = json_array();

        for (size_t i = 0; i < result->n_actions; i++)
                json_array_append_new(actions, action_to_json(snapshot, &result->actions[i]));
        for (uint32_t j = 0; j < result->n_jobs; j++) {
                json_t *note = note_to_json(&snapshot->jobs[j], &result->jobs[j]);

                if (note)
                        json_array_append_new(notes, note);
        }
        return json_pack("{s:o, s:o}", "actions", actions, "notes", notes);
}
