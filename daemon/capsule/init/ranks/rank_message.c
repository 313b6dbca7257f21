#include "daemon/capsule/init/ranks/rank_message.h"

#include "common/program_socket.h"

static enum rank_message_kind kind_of(const Program__Request *request) {
        switch (request->body_case) {
        case PROGRAM__REQUEST__BODY_REPORT:
        case PROGRAM__REQUEST__BODY_LISTEN:
        case PROGRAM__REQUEST__BODY_ANSWER:
        case PROGRAM__REQUEST__BODY_OWN_STATE:
                return RANK_MESSAGE_STATE;
        case PROGRAM__REQUEST__BODY_RESIZE:
                return RANK_MESSAGE_RESIZE;
        case PROGRAM__REQUEST__BODY_LOSS:
                return RANK_MESSAGE_LOSS;
        default:
                return RANK_MESSAGE_NONE;
        }
}

enum rank_message_kind rank_message_read(const void *data, size_t size, Program__Request **ret) {
        Program__Request *request = size <= PROGRAM_SOCKET_MESSAGE_BYTES ? program__request__unpack(NULL, size, data) : NULL;
        enum rank_message_kind kind = request ? kind_of(request) : RANK_MESSAGE_NONE;

        *ret = request;
        if (request && kind == RANK_MESSAGE_NONE) {
                program__request__free_unpacked(request, NULL);
                *ret = NULL;
        }
        return kind;
}
