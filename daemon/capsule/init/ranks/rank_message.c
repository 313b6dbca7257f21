#include "daemon/capsule/init/ranks/rank_message.h"

#include "common/door.h"

static enum rank_message_kind kind_of(const Door__Request *request) {
        switch (request->body_case) {
        case DOOR__REQUEST__BODY_REPORT:
        case DOOR__REQUEST__BODY_LISTEN:
        case DOOR__REQUEST__BODY_ANSWER:
        case DOOR__REQUEST__BODY_OWN_STATE:
                return RANK_MESSAGE_STATE;
        case DOOR__REQUEST__BODY_RESIZE:
                return RANK_MESSAGE_RESIZE;
        case DOOR__REQUEST__BODY_LOSS:
                return RANK_MESSAGE_LOSS;
        default:
                return RANK_MESSAGE_NONE;
        }
}

enum rank_message_kind rank_message_read(const void *data, size_t size, Door__Request **ret) {
        Door__Request *request = size <= DOOR_MESSAGE_BYTES ? door__request__unpack(NULL, size, data) : NULL;
        enum rank_message_kind kind = request ? kind_of(request) : RANK_MESSAGE_NONE;

        *ret = request;
        if (request && kind == RANK_MESSAGE_NONE) {
                door__request__free_unpacked(request, NULL);
                *ret = NULL;
        }
        return kind;
}
