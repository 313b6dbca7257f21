#include "daemon/requests/pages.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/view_source.h"
#include "daemon/view/move.h"

void request_list_moves(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ListMoves *list = request->list_moves;
        struct view_source source = request_view_source(client->rmd);
        struct view_reader reader = request_view_reader(client);
        struct view_moves which = { list->job, list->since };
        Rm__MoveList moves = RM__MOVE_LIST__INIT;

        view_moves(&source, &reader, &which, page_bytes(list->paged), &moves);
        if (moves.more && !list->paged)
                page_refuse(client, request->id, "list-moves");
        else
                client_answer(client, request->id, &moves.base);
        view_moves_finish(&moves);
}
