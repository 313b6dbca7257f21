#include "daemon/capsule/init/ranks/notice.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "common/program_socket.h"
#include "common/util.h"

/* Sends from a socket that lives for one message: what a rank does not read counts as that
 * socket's, and so keeps no message from any other rank. */
static bool send_at(const struct sockaddr_un *address, socklen_t address_bytes, const void *data, size_t size) {
        cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        return fd >= 0 && sendto(fd, data, size, MSG_NOSIGNAL, (const struct sockaddr *) address, address_bytes) >= 0;
}

bool notice_send(uint32_t rank, const void *data, size_t size) {
        struct sockaddr_un address;
        socklen_t address_bytes = program_socket_rank_address(rank, &address);

        return send_at(&address, address_bytes, data, size);
}

void notice_send_resize(const Program__Resize *word) {
        Program__Notice notice = PROGRAM__NOTICE__INIT;
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES];

        notice.body_case = PROGRAM__NOTICE__BODY_RESIZE;
        notice.resize = (Program__Resize *) word;
        (void) notice_send(word->rank, data, program__notice__pack(&notice, data));
}

void notice_send_loss(const Program__Loss *word) {
        Program__Notice notice = PROGRAM__NOTICE__INIT;
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES];
        struct sockaddr_un address;
        socklen_t address_bytes = program_socket_ft_address(word->rank, &address);

        notice.body_case = PROGRAM__NOTICE__BODY_LOSS;
        notice.loss = (Program__Loss *) word;
        if (program__notice__get_packed_size(&notice) <= sizeof(data))
                (void) send_at(&address, address_bytes, data, program__notice__pack(&notice, data));
}
