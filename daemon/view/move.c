#include "daemon/view/move.h"

#include <stdlib.h>

#include "common/util.h"

static bool is_shown(const Rm__State *state, const struct view_reader *reader, const struct view_moves *which,
                     const Rm__Move *move) {
        const Rm__Job *job;

        if ((which->job && move->job != which->job) || move->id <= which->since)
                return false;
        job = state_job(state, move->job);
        return job ? view_may(reader, job->spec->uid) : reader->admin;
}

void view_moves(const struct view_source *source, const struct view_reader *reader, const struct view_moves *which,
                size_t max_bytes, Rm__MoveList *ret) {
        const Rm__State *state = state_index_state(source->index);
        size_t bytes = 0;

        ret->moves = xcalloc(state->n_moves, sizeof(*ret->moves));
        for (size_t i = 0; i < state->n_moves; i++) {
                if (!is_shown(state, reader, which, state->moves[i]))
                        continue;
                ret->more = bytes >= max_bytes;
                if (ret->more)
                        return;
                ret->moves[ret->n_moves++] = state->moves[i];
                bytes += protobuf_c_message_get_packed_size(&state->moves[i]->base);
        }
}

void view_moves_finish(Rm__MoveList *list) {
        free(list->moves);
}
