#include "daemon/capsule/agent_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/capsule/capsule.h"

#define DIGITS "0123456789"

bool agent_file_parse(const char *file, char ret_id[static AGENT_ID_MAX], pid_t *ret_pid) {
        size_t pid_digits = strspn(file, DIGITS);
        size_t length;
        long pid;

        if (pid_digits == 0 || pid_digits > 9 || file[pid_digits] != '-')
                return false;
        length = pid_digits + 1 + strspn(file + pid_digits + 1, DIGITS);
        if (length == pid_digits + 1 || length >= AGENT_ID_MAX || strcmp(file + length, ".req") != 0)
                return false;
        pid = strtol(file, NULL, 10);
        if (pid <= 1)
                return false;
        memcpy(ret_id, file, length);
        ret_id[length] = '\0';
        *ret_pid = (pid_t) pid;
        return true;
}

static bool host_valid(const char *host) {
        size_t length = strlen(host);

        return length > 0 && length <= AGENT_HOST_MAX &&
               strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == length;
}

int agent_request_parse(const char *text, size_t size, struct agent_request *ret) {
        const char *strings[3];
        const char *p = text;

        if (size == 0 || size > AGENT_REQUEST_MAX || text[size - 1] != '\0')
                return -EBADMSG;
        for (size_t i = 0; i < 3; i++) {
                if (p >= text + size)
                        return -EBADMSG;
                strings[i] = p;
                p += strlen(p) + 1;
        }
        if (p != text + size || strcmp(strings[0], AGENT_REQUEST_MAGIC) != 0 || !host_valid(strings[1]))
                return -EBADMSG;
        if (*strings[2] == '\0' || strlen(strings[2]) > CAPSULE_AGENT_COMMAND_MAX)
                return -EBADMSG;
        ret->host = strings[1];
        ret->command = strings[2];
        return 0;
}
