#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/private.h"

enum { HOSTNAME_MAX = 63, SPEC_MAX_BYTES = 4 * 1024 * 1024 };

static bool id_valid(const char *id) {
        size_t length = strlen(id);

        return length > 0 && length <= CAPSULE_ID_MAX && *id != '.' &&
               strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == length;
}

static int check_link(const struct capsule_spec *spec, struct rm_error *error) {
        if (!spec->uplink || !*spec->uplink)
                return 0;
        if (strlen(spec->uplink) >= IF_NAMESIZE)
                return error_set(error, -EINVAL, "capsule %s: the interface name '%s' is too long", spec->id, spec->uplink);
        if (spec->address == 0 || spec->prefix < 1 || spec->prefix > 32)
                return error_set(error, -EINVAL, "capsule %s: a link needs an address and a prefix of 1 to 32", spec->id);
        if (spec->mac[0] & 1)
                return error_set(error, -EINVAL, "capsule %s: the MAC address is a multicast one", spec->id);
        return 0;
}

int capsule_spec_check(const struct capsule_spec *spec, struct rm_error *error) {
        if (!spec->id || !id_valid(spec->id))
                return error_set(error, -EINVAL, "'%.80s' cannot name a capsule", spec->id ? spec->id : "");
        if (!spec->hostname || !name_valid(spec->hostname) || strlen(spec->hostname) > HOSTNAME_MAX)
                return error_set(error, -EINVAL, "capsule %s: bad host name", spec->id);
        if (spec->hosts && strlen(spec->hosts) > CAPSULE_HOSTS_MAX)
                return error_set(error, -EINVAL, "capsule %s: the hosts file is too large", spec->id);
        if (!spec->spool_dir || *spec->spool_dir != '/')
                return error_set(error, -EINVAL, "capsule %s: the spool needs an absolute path", spec->id);
        if (spec->n_groups > CAPSULE_GROUPS_MAX)
                return error_set(error, -EINVAL, "capsule %s: more than %d groups", spec->id, CAPSULE_GROUPS_MAX);
        if (spec->n_peers > CAPSULE_PEERS_MAX)
                return error_set(error, -EINVAL, "capsule %s: more than %d addresses to talk to", spec->id, CAPSULE_PEERS_MAX);
        return check_link(spec, error);
}

int capsule_spec_write(const struct capsule *capsule, const struct capsule_spec *spec, struct rm_error *error) {
        const struct capsule_ctx *ctx = capsule->ctx;
        Capsule__Spec message = CAPSULE__SPEC__INIT;
        cleanup_free char *path = xasprintf("%s/spec", capsule->dir);
        char *limit_dirs[CONTROLLER_COUNT];
        cleanup_free uint32_t *groups = xcalloc(spec->n_groups, sizeof(*groups));
        cleanup_free uint8_t *data = NULL;
        size_t size;
        int r;

        for (size_t i = 0; i < spec->n_groups; i++)
                groups[i] = spec->groups[i];
        message.id = (char *) spec->id;
        message.hostname = (char *) spec->hostname;
        message.hosts = (char *) (spec->hosts ? spec->hosts : "");
        message.uplink = (char *) (spec->uplink ? spec->uplink : "");
        message.address = spec->address;
        message.prefix = spec->prefix;
        message.mac.data = (uint8_t *) spec->mac;
        message.mac.len = sizeof(spec->mac);
        message.gateway = spec->gateway;
        message.peers = (uint32_t *) spec->peers;
        message.n_peers = spec->n_peers;
        message.cut = spec->cut;
        message.fenced = spec->fenced;
        message.drill = spec->drill;
        message.uid = spec->uid;
        message.gid = spec->gid;
        message.groups = groups;
        message.n_groups = spec->n_groups;
        message.spool_dir = (char *) spec->spool_dir;
        message.cgroup_dir = capsule->cgroup_dir;
        message.cgroup_v1 = ctx->cgroup_v1;
        message.criu_path = ctx->criu_path;
        message.kdat_path = ctx->kdat_path;
        message.writable = ctx->writable;
        message.n_writable = ctx->n_writable;
        for (enum controller i = 0; i < CONTROLLER_COUNT; i++)
                limit_dirs[i] = capsule->limit_dirs[i] ? capsule->limit_dirs[i] : (char *) "";
        message.limit_dirs = limit_dirs;
        message.n_limit_dirs = CONTROLLER_COUNT;
        message.memory_max = capsule->limits.memory_bytes;
        message.pids_max = capsule->limits.pids;
        message.spool_max = spec->spool_max_bytes;
        message.spool_reserve = spec->spool_reserve_bytes;
        size = capsule__spec__get_packed_size(&message);
        data = xcalloc(1, size);
        (void) capsule__spec__pack(&message, data);
        r = write_file_atomic(path, data, size, 0600, false);
        return r < 0 ? error_sys(error, r, "cannot write %s", path) : 0;
}

static void read_limits(struct capsule *capsule, const Capsule__Spec *message) {
        for (size_t i = 0; i < message->n_limit_dirs && i < CONTROLLER_COUNT; i++)
                if (*message->limit_dirs[i])
                        capsule->limit_dirs[i] = xstrdup(message->limit_dirs[i]);
        capsule->limits.memory_bytes = message->memory_max;
        capsule->limits.pids = message->pids_max;
}

int capsule_spec_read(struct capsule *capsule) {
        cleanup_free char *path = xasprintf("%s/spec", capsule->dir);
        cleanup_free char *data = NULL;
        Capsule__Spec *message;
        size_t size;
        int r = read_file(path, SPEC_MAX_BYTES, &data, &size);

        if (r < 0)
                return r;
        message = capsule__spec__unpack(NULL, size, (const uint8_t *) data);
        if (!message)
                return -EBADMSG;
        capsule->cgroup_dir = xstrdup(message->cgroup_dir);
        capsule->spool_dir = xstrdup(message->spool_dir);
        read_limits(capsule, message);
        capsule__spec__free_unpacked(message, NULL);
        return 0;
}
