/*
 * The result of a round, in JSON, for `rmctl plan`:
 *
 *      { "actions": [ { "action": "move", "job": "1", "group": 0, "from": "n1", "to": "n2",
 *                       "need": true, "why": "..." },
 *                     { "action": "reserve", "job": "1", "nodes": ["n4"] },
 *                     { "action": "start", "job": "2", "nodes": ["n1", "n2"], "head": "n1",
 *                       "spares": ["n3"] } ],
 *        "notes": [ { "job": "3", "waits": true, "folded": false, "kept": 0,
 *                     "note": "waits for 2 more cores; ..." } ] }
 *
 * Group -1 is the head. "notes" has the jobs there is something to say about; "kept": groups that
 * the policy wanted elsewhere, which was not worth the moves. Pure.
 */
#ifndef RM_SCHED_ROUND_JSON_H
#define RM_SCHED_ROUND_JSON_H

#include <jansson.h>

#include "daemon/sched/round.h"

/* `snapshot`: the one the round was made from. The caller owns the answer. */
json_t *round_result_to_json(const struct rm_snapshot *snapshot, const struct round_result *result);

#endif
