#include "tests/sim/faults.h"

#include <stdlib.h>

#include "common/util.h"

#define BEGIN_USEC 1000000U
/* Most faults are short beside the time that an election takes, some are long. */
#define SHORT_MAX_USEC 400000U
#define LONG_MAX_USEC 8000000U
#define FLAP_MIN_USEC 50000U
#define FLAP_MAX_USEC 700000U
#define HEAL_MAX_USEC 600000U
#define RESTART_MAX_USEC 20000U
#define RESTARTS_MAX_USEC 400000U
/* A write to the disk, and a message. */
#define AMID_MAX_USEC 3000U
#define LATE_MAX_USEC 3000000U
/* Ten times less than what leases allow for (daemon/cluster/lease.c), for two clocks may go
 * apart. */
#define DRIFT_MAX_PPM 1000
#define JUMP_MAX_USEC 4000000U
#define REAL_JUMP_MAX_USEC UINT64_C(7200000000)
#define SLOW_MAX 400U

struct fault {
        struct faults *faults;
        const struct kind *kind;
        unsigned target;
        uint64_t end_usec;
        bool on; /* of one that comes and goes */
};

struct kind {
        const char *name;
        void (*begin)(struct fault *fault);
        void (*end)(struct fault *fault);
};

struct faults {
        struct faults_world world;
        uint64_t amid_usec; /* until when one that does something delicate is killed */
        bool ended;
        uint64_t until_usec;
};

static uint64_t draw(const struct faults *f, uint64_t n) {
        return timeline_random(f->world.timeline, n);
}

static struct host *target_host(const struct fault *fault) {
        return fault->faults->world.hosts[fault->target];
}

static struct disk *target_disk(const struct fault *fault) {
        return fault->faults->world.disks[fault->target];
}

/* ---- the network ---- */

static void cut(struct faults *f, unsigned from, unsigned to) {
        if (from != to)
                network_link(f->world.network, from, to)->cut = true;
}

/* Each host is on one of two sides, clients too. */
static void begin_partition(struct fault *fault) {
        struct faults *f = fault->faults;
        unsigned n = network_n_hosts(f->world.network);
        uint64_t sides = draw(f, UINT64_C(1) << n);

        timeline_trace(f->world.timeline, "net", "is partitioned, sides %llx", (unsigned long long) sides);
        for (unsigned i = 0; i < n; i++)
                for (unsigned k = 0; k < n; k++)
                        if ((sides >> i & 1) != (sides >> k & 1))
                                cut(f, i, k);
}

static void heal(struct fault *fault) {
        timeline_trace(fault->faults->world.timeline, "net", "is whole");
        network_heal(fault->faults->world.network);
}

/* The host is heard by the others and does not hear them, or the other way round, or so with a
 * single one. */
static void begin_one_way(struct fault *fault) {
        struct faults *f = fault->faults;
        unsigned n = network_n_hosts(f->world.network), other = (unsigned) draw(f, n);
        uint64_t which = draw(f, 4);

        timeline_trace(f->world.timeline, "net", "is cut one way at %s (%s, %s)", host_name(target_host(fault)),
                       which & 1 ? "in" : "out", which & 2 ? "one" : "all");
        for (unsigned i = 0; i < n; i++) {
                if (which & 2 && i != other)
                        continue;
                if (which & 1)
                        cut(f, i, fault->target);
                else
                        cut(f, fault->target, i);
        }
}

static void on_flap(void *userdata) {
        struct fault *fault = userdata;
        struct faults *f = fault->faults;
        uint64_t now_usec = timeline_now_usec(f->world.timeline);

        if (now_usec >= fault->end_usec || f->ended) {
                free(fault);
                return;
        }
        fault->on = !fault->on;
        if (fault->on)
                begin_partition(fault);
        else
                heal(fault);
        timeline_at(f->world.timeline, now_usec + timeline_between(f->world.timeline, FLAP_MIN_USEC, FLAP_MAX_USEC), on_flap, free,
                    fault);
}

static void begin_flapping(struct fault *fault) {
        struct fault *copy = xcalloc(1, sizeof(*copy));

        *copy = *fault;
        on_flap(copy);
}

static void set_links(struct faults *f, const struct link_faults *faults) {
        unsigned n = network_n_hosts(f->world.network);

        timeline_trace(f->world.timeline, "net", "loses %u, doubles %u, delays %u of a thousand", faults->loss_per_mille,
                       faults->duplicates_per_mille, faults->late_per_mille);
        for (unsigned i = 0; i < n; i++)
                for (unsigned k = 0; k < n; k++)
                        *network_link(f->world.network, i, k) = *faults;
}

static void begin_loss(struct fault *fault) {
        struct faults *f = fault->faults;

        set_links(f, &(struct link_faults) { .loss_per_mille = 20 + (unsigned) draw(f, 400) });
}

static void begin_disorder(struct fault *fault) {
        struct faults *f = fault->faults;

        set_links(f, &(struct link_faults) { .duplicates_per_mille = (unsigned) draw(f, 400),
                                             .late_per_mille = (unsigned) draw(f, 400),
                                             .late_usec = 1 + draw(f, LATE_MAX_USEC) });
}

/* ---- processes ---- */

static void end_nothing(struct fault *fault) {
}

static void begin_kill(struct fault *fault) {
        host_kill(target_host(fault));
}

static void end_kill(struct fault *fault) {
        host_start(target_host(fault));
}

static void begin_power(struct fault *fault) {
        host_kill(target_host(fault));
        disk_power_loss(target_disk(fault));
}

/* The whole room. */
static void begin_power_all(struct fault *fault) {
        struct faults *f = fault->faults;

        for (unsigned i = 0; i < f->world.n_victims; i++) {
                host_kill(f->world.hosts[i]);
                disk_power_loss(f->world.disks[i]);
        }
}

static void end_power_all(struct fault *fault) {
        for (unsigned i = 0; i < fault->faults->world.n_victims; i++)
                host_start(fault->faults->world.hosts[i]);
}

/* A machine that is gone, with all that runs on it; its disk may be another one when it is back. */
static void lose_machine(struct faults *f, unsigned target) {
        host_kill(f->world.hosts[target]);
        disk_power_loss(f->world.disks[target]);
        f->world.on_power_off(f->world.userdata, target);
}

static void begin_machine(struct fault *fault) {
        struct faults *f = fault->faults;
        bool other_disk = draw(f, 3) == 0 && f->world.may_damage(f->world.userdata, fault->target);

        lose_machine(f, fault->target);
        if (!other_disk)
                return;
        disk_replace(target_disk(fault));
        f->world.on_disk_lost(f->world.userdata, fault->target);
}

static void begin_machines(struct fault *fault) {
        for (unsigned i = 0; i < fault->faults->world.n_victims; i++)
                lose_machine(fault->faults, i);
}

static unsigned choose_target(const struct faults *f) {
        int favourite = draw(f, 2) ? f->world.favourite(f->world.userdata) : -1;

        return favourite >= 0 ? (unsigned) favourite : (unsigned) draw(f, f->world.n_victims);
}

static void on_start(void *userdata) {
        host_start(userdata);
}

static void on_restart(void *userdata) {
        struct fault *fault = userdata;
        struct faults *f = fault->faults;
        uint64_t now_usec = timeline_now_usec(f->world.timeline);

        if (now_usec >= fault->end_usec || f->ended) {
                free(fault);
                return;
        }
        fault->target = choose_target(f);
        if (draw(f, 2))
                begin_power(fault);
        else
                begin_kill(fault);
        timeline_at(f->world.timeline, now_usec + draw(f, RESTART_MAX_USEC), on_start, NULL, target_host(fault));
        timeline_at(f->world.timeline, now_usec + draw(f, RESTARTS_MAX_USEC), on_restart, free, fault);
}

/* The processes end one after the other and are back at once, as when each begins with what ended
 * the one before: votes that were given just before are asked for again just after. */
static void begin_restarts(struct fault *fault) {
        struct fault *copy = xcalloc(1, sizeof(*copy));

        *copy = *fault;
        on_restart(copy);
}

/* The next one that is about to do something delicate, and those after it. */
static void begin_amid(struct fault *fault) {
        fault->faults->amid_usec = fault->end_usec;
}

static void on_amid(void *userdata) {
        struct fault *fault = userdata;
        struct faults *f = fault->faults;

        if (!f->ended && draw(f, 2))
                begin_power(fault);
        else if (!f->ended)
                begin_kill(fault);
        timeline_at(f->world.timeline, timeline_now_usec(f->world.timeline) + draw(f, RESTARTS_MAX_USEC), on_start, NULL,
                    target_host(fault));
        free(fault);
}

void faults_delicate(struct faults *f, unsigned host) {
        uint64_t now_usec = timeline_now_usec(f->world.timeline);
        struct fault *fault;

        if (now_usec >= f->amid_usec || f->ended || draw(f, 2))
                return;
        fault = xcalloc(1, sizeof(*fault));
        fault->faults = f;
        fault->target = host;
        timeline_at(f->world.timeline, now_usec + draw(f, AMID_MAX_USEC), on_amid, free, fault);
}

static void begin_stop(struct fault *fault) {
        host_stop(target_host(fault));
}

static void end_stop(struct fault *fault) {
        host_continue(target_host(fault));
}

static void on_heal(void *userdata) {
        heal(userdata);
        free(userdata);
}

/* Two hosts hear only each other, one of them perhaps stopped for that time: a leader that does not
 * know yet that there is another, and a node that believes it. */
static void begin_aside(struct fault *fault) {
        struct faults *f = fault->faults;
        unsigned n = network_n_hosts(f->world.network), other = (unsigned) draw(f, n);

        timeline_trace(f->world.timeline, "net", "has %s and %s aside", host_name(target_host(fault)),
                       host_name(f->world.hosts[other]));
        for (unsigned i = 0; i < n; i++)
                for (unsigned k = 0; k < n; k++)
                        if ((i == fault->target || i == other) != (k == fault->target || k == other))
                                cut(f, i, k);
        if (draw(f, 2))
                host_stop(target_host(fault));
}

static void end_aside(struct fault *fault) {
        struct faults *f = fault->faults;
        struct fault *copy = xcalloc(1, sizeof(*copy));

        host_continue(target_host(fault));
        *copy = *fault;
        timeline_at(f->world.timeline, timeline_now_usec(f->world.timeline) + draw(f, HEAL_MAX_USEC), on_heal, free, copy);
}

/* ---- disks and clocks ---- */

static void begin_slow(struct fault *fault) {
        disk_set_slow(target_disk(fault), 2 + (unsigned) draw(fault->faults, SLOW_MAX));
}

static void end_slow(struct fault *fault) {
        disk_set_slow(target_disk(fault), 1);
}

static void begin_full(struct fault *fault) {
        disk_set_full(target_disk(fault), true);
}

static void end_full(struct fault *fault) {
        disk_set_full(target_disk(fault), false);
}

static void begin_broken(struct fault *fault) {
        disk_set_broken(target_disk(fault), true);
}

/* A process that has ended by it is started again. */
static void end_broken(struct fault *fault) {
        disk_set_broken(target_disk(fault), false);
        host_start(target_host(fault));
}

/* The damage is noticed when the process starts. */
static void begin_damage(struct fault *fault) {
        struct faults *f = fault->faults;

        if (!f->world.may_damage(f->world.userdata, fault->target))
                return;
        host_kill(target_host(fault));
        (void) disk_damage(target_disk(fault));
        f->world.on_disk_lost(f->world.userdata, fault->target);
}

/* Drift stays. */
static void begin_clock(struct fault *fault) {
        struct faults *f = fault->faults;

        switch (draw(f, 3)) {
        case 0:
                host_set_drift(target_host(fault), (int) draw(f, 2 * DRIFT_MAX_PPM) - DRIFT_MAX_PPM);
                break;
        case 1:
                host_jump(target_host(fault), draw(f, JUMP_MAX_USEC));
                break;
        default:
                host_set_real(target_host(fault), (int64_t) draw(f, 2 * REAL_JUMP_MAX_USEC) - (int64_t) REAL_JUMP_MAX_USEC);
        }
}

static const struct kind kinds[] = {
        { "partition", begin_partition, heal },
        { "one-way", begin_one_way, heal },
        { "flapping", begin_flapping, heal },
        { "loss", begin_loss, heal },
        { "aside", begin_aside, end_aside },
        { "disorder", begin_disorder, heal },
        { "kill", begin_kill, end_kill },
        { "power", begin_power, end_kill },
        { "power-all", begin_power_all, end_power_all },
        { "machine", begin_machine, end_kill },
        { "machine", begin_machine, end_kill },
        { "machines", begin_machines, end_power_all },
        { "restarts", begin_restarts, end_nothing },
        { "amid", begin_amid, end_nothing },
        { "stop", begin_stop, end_stop },
        { "slow-disk", begin_slow, end_slow },
        { "full-disk", begin_full, end_full },
        { "broken-disk", begin_broken, end_broken },
        { "damage", begin_damage, end_kill },
        { "clock", begin_clock, end_nothing },
};

/* ---- when ---- */

static void on_end(void *userdata) {
        struct fault *fault = userdata;

        if (!fault->faults->ended)
                fault->kind->end(fault);
        free(fault);
}

static void on_begin(void *userdata) {
        struct fault *fault = userdata;
        struct faults *f = fault->faults;
        uint64_t now_usec = timeline_now_usec(f->world.timeline);

        fault->target = choose_target(f);
        fault->end_usec = now_usec + 1 + draw(f, draw(f, 2) ? SHORT_MAX_USEC : LONG_MAX_USEC);
        timeline_trace(f->world.timeline, "----", "fault: %s, for %llu ms", fault->kind->name,
                       (unsigned long long) (fault->end_usec - now_usec) / 1000);
        fault->kind->begin(fault);
        timeline_at(f->world.timeline, fault->end_usec, on_end, free, fault);
}

static void on_all_end(void *userdata) {
        struct faults *f = userdata;

        timeline_trace(f->world.timeline, "----", "all faults end");
        f->ended = true;
        network_heal(f->world.network);
        for (unsigned i = 0; i < f->world.n_victims; i++) {
                disk_set_slow(f->world.disks[i], 1);
                disk_set_full(f->world.disks[i], false);
                disk_set_broken(f->world.disks[i], false);
                host_continue(f->world.hosts[i]);
                host_start(f->world.hosts[i]);
        }
}

struct faults *faults_create(const struct faults_world *world, unsigned n, uint64_t until_usec) {
        struct faults *f = xcalloc(1, sizeof(*f));

        f->world = *world;
        f->until_usec = until_usec;
        for (unsigned i = 0; i < n; i++) {
                struct fault *fault = xcalloc(1, sizeof(*fault));

                fault->faults = f;
                fault->kind = &kinds[draw(f, ARRAY_SIZE(kinds))];
                timeline_at(world->timeline, BEGIN_USEC + draw(f, until_usec - BEGIN_USEC), on_begin, free, fault);
        }
        timeline_at(world->timeline, until_usec, on_all_end, NULL, f);
        return f;
}

void faults_destroy(struct faults *f) {
        free(f);
}
