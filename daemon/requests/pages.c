#include "daemon/requests/pages.h"

#include <errno.h>

#include "common/frame.h"
#include "daemon/view/view.h"

/* For the frame, and what an answer has beside the list. */
#define FRAME_SLACK_BYTES (64U << 10)

size_t page_bytes(bool paged) {
        return paged ? VIEW_PAGE_BYTES : FRAME_MAX_LOCAL_BYTES - FRAME_SLACK_BYTES;
}

void page_refuse(struct client *client, uint32_t request_id, const char *verb) {
        client_error(
                client, request_id, -EMSGSIZE,
                "%s: the list does not fit into one answer; this command is older than rmd and cannot ask for pages: install the "
                "same version of both, or ask for fewer",
                verb);
}
