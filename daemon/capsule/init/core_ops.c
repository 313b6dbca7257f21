#include "daemon/capsule/init/core_ops.h"

#include "common/log.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/init/ctl.h"
#include "daemon/capsule/init/fencing.h"
#include "daemon/capsule/init/freezer.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/memory/fill.h"
#include "daemon/capsule/init/ops.h"
#include "daemon/capsule/init/program_socket.h"

static void send_event(struct core *core, const ProtobufCMessage *body) {
        ctl_send(init_of(core)->ctl, body);
}

static void reply(struct core *core, struct ticket ticket, int error, const char *text) {
        ctl_reply(init_of(core)->ctl, ticket, error, text);
}

static void send_status(struct core *core) {
        ops_report(init_of(core)->ops);
}

static bool runs_freely(const struct core *core) {
        const struct init *init = init_of((struct core *) core);

        return core->phase == CAPSULE__PHASE__PHASE_RUNNING && !init->freezing && !fencing_is_on(init->fencing);
}

static int freeze(struct core *core, struct rm_error *error) {
        return freezer_set(init_of(core), true, error);
}

static int thaw(struct core *core, struct rm_error *error) {
        const struct init *init = init_of(core);
        int r;

        if (!freezer_is_frozen(init))
                return freezer_set(init, false, error);
        freezer_note_calls(init);
        r = freezer_resume(init, error);
        freezer_let_go(init);
        return r;
}

static void kill_payload(struct core *core, bool cut) {
        struct init *init = init_of(core);

        if (cut) {
                fencing_leave_cut(init->fencing);
                if (link_set_filter(&init->link, true, NULL) < 0)
                        log_error("the capsule cannot be cut off");
        }
        (void) cgroup_kill(core->node.cgroup_payload, core->spec->cgroup_v1);
        (void) freezer_set(init, false, NULL);
}

static bool is_killed(const struct core *core) {
        return *fill_why_killed(init_of((struct core *) core)->fill) != '\0';
}

static void take_messages(struct core *core) {
        program_socket_take_all(init_of(core)->program_socket);
}

const struct core_ops core_ops = {
        .send = send_event,
        .reply = reply,
        .send_status = send_status,
        .runs_freely = runs_freely,
        .freeze = freeze,
        .thaw = thaw,
        .kill = kill_payload,
        .is_killed = is_killed,
        .take_messages = take_messages,
};
