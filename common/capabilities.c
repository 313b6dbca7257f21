#include "common/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"

int capabilities_keep(uint64_t capabilities) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

        for (unsigned i = 0; i < ARRAY_SIZE(data); i++) {
                uint32_t part = (uint32_t) (capabilities >> (32 * i));

                data[i] = (struct __user_cap_data_struct) { .effective = part, .permitted = part, .inheritable = part };
        }
        return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}
