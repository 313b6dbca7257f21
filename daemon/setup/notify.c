#include "daemon/setup/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/util.h"

#define VARIABLE "NOTIFY_SOCKET"

char *notify_take_socket(void) {
        const char *name = getenv(VARIABLE);
        char *taken = name && *name ? xstrdup(name) : NULL;

        (void) unsetenv(VARIABLE);
        return taken;
}

/* A path, or with '@' in front a name in the abstract namespace, which has a 0 byte there
 * instead. */
static int make_address(const char *name, struct sockaddr_un *ret, socklen_t *ret_size_bytes) {
        size_t length = strlen(name);

        if (*name != '/' && *name != '@')
                return -EAFNOSUPPORT;
        if (length >= sizeof(ret->sun_path))
                return -ENAMETOOLONG;
        *ret = (struct sockaddr_un) { .sun_family = AF_UNIX };
        memcpy(ret->sun_path, name, length);
        if (*name == '@')
                ret->sun_path[0] = '\0';
        *ret_size_bytes = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length);
        return 0;
}

int notify_send(const char *socket_name, const char *text) {
        cleanup_close int fd = -1;
        struct sockaddr_un address;
        socklen_t size_bytes;
        int r;

        if (!socket_name)
                return 0;
        r = make_address(socket_name, &address, &size_bytes);
        if (r < 0)
                return r;
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *) &address, size_bytes) < 0)
                return -errno;
        return 0;
}
