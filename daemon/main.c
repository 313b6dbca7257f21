/* rmd: parses the command line, builds one context, runs the loop. */
#include <argp.h>
#include <arpa/inet.h>
#include <event2/event.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "common/version.h"
#include "daemon/checkpoint/checkpoints.h"
#include "daemon/client/forwarding.h"
#include "daemon/client/sessions.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/context.h"
#include "daemon/doctor/doctor.h"
#include "daemon/health/conditions.h"
#include "daemon/job/bodies.h"
#include "daemon/job/limits.h"
#include "daemon/job/outputs.h"
#include "daemon/job/pages_test.h"
#include "daemon/job/runner.h"
#include "daemon/leader/leader.h"
#include "daemon/metrics/metrics.h"
#include "daemon/move/moves.h"
#include "daemon/node/topology.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/service.h"
#include "daemon/sensor/evaluator.h"
#include "daemon/sensor/sensors.h"
#include "daemon/setup/nodename.h"
#include "daemon/setup/notify.h"
#include "daemon/setup/setup.h"
#include "daemon/trim.h"
#include "daemon/web/web.h"

#define CONFIG_PATH "/etc/rmd/rmd.conf"
#define KEY_PATH "/etc/rmd/cluster.key"
#define SYSTEMD_RUNS "/run/systemd/system"
#define SYSTEMCTL_PATH "/usr/bin/systemctl"
#define CRIU_PATH "/usr/sbin/criu"
#define EXIT_STATE 3 /* state_dir or the cluster's log cannot be read, or is of another version: a restart does not help */
#define CLEAN_USEC 5000000
#define REMOVED_SEC 2
#define HAND_OVER_USEC 900000 /* at most, from the signal */
#define HANDED_OVER_USEC 50000 /* for its own vote to leave */
#define SENSORS_FIRST_USEC 1000000 /* after the start */
#define TRIM_FIRST_USEC 2000000 /* after the start: by then it has joined, or it waits */
#define TRIM_USEC 15000000 /* it takes 0.2 ms at most */

const char *argp_program_version = "rmd " RM_VERSION;

struct options {
        const char *config_path;
        bool check_config;
        bool init_cluster;
        const char *join;
        const char *uplink;
};

enum { OPTION_INIT_CLUSTER = 256, OPTION_JOIN, OPTION_UPLINK };

/* Checks which options exclude each other, once all are read. */
static void check_options(const struct options *options, const struct argp_state *state) {
        if (options->init_cluster && options->join)
                argp_error(state, "--init-cluster begins a cluster, and --join joins one: give one of them");
        if (options->check_config && (options->init_cluster || options->join))
                argp_error(state, "--check-config looks at a configuration that is there: give it alone");
        if (options->uplink && !options->init_cluster && !options->join)
                argp_error(state, "--uplink is for --init-cluster and --join: otherwise the configuration names the interface");
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct options *options = state->input;

        switch (key) {
        case 'c':
                options->config_path = arg;
                return 0;
        case 'C':
                options->check_config = true;
                return 0;
        case 'f':
                return 0; /* it always is */
        case OPTION_INIT_CLUSTER:
                options->init_cluster = true;
                return 0;
        case OPTION_JOIN:
                options->join = arg;
                return 0;
        case OPTION_UPLINK:
                options->uplink = arg;
                return 0;
        case ARGP_KEY_END:
                check_options(options, state);
                return 0;
        case ARGP_KEY_ARG:
                argp_error(state, "no argument is expected, not '%s'", arg);
                return EINVAL;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp_option option_list[] = {
        { "config", 'c', "FILE", 0, "Read FILE instead of " CONFIG_PATH, 0 },
        { "check-config", 'C', NULL, 0, "Check the configuration and exit", 0 },
        { "foreground", 'f', NULL, 0, "Ignored: rmd always stays in the foreground", 0 },
        { "init-cluster", OPTION_INIT_CLUSTER, NULL, 0,
          "Write key and configuration of the first node, where there are none, start rmd, and exit", 1 },
        { "join", OPTION_JOIN, "HOST[,HOST...]", 0,
          "Write the configuration of a node that joins the cluster of HOST, where there is none, start rmd, and exit", 1 },
        { "uplink", OPTION_UPLINK, "INTERFACE", 0, "With these two: the interface that connects the nodes", 1 },
        { 0 },
};
static const struct argp argp_rmd = {
        option_list, parse_option, NULL, "Run-time resource manager for MPI clusters: the daemon, one on every node. See rmd(8).",
        NULL,        NULL,         NULL
};

/* ---- what the cluster tells ---- */

/* A removed node's rmd does not end at once: clients that have asked for the removal here are to be
 * answered. */
static void see_removed(struct rmd *rmd, const Rm__Command *command) {
        static const struct timeval soon = { REMOVED_SEC, 0 };

        if (command->body_case != RM__COMMAND__BODY_NODE_REMOVE ||
            strcmp(command->node_remove->node, rmd->config->node_name) != 0 ||
            state_node(cluster_state(rmd->cluster), rmd->config->node_name))
                return;
        log_warn("this node is removed from the cluster: rmd ends; started again, it joins anew");
        (void) event_base_loopexit(rmd->base, &soon);
}

static void on_applied(void *userdata, const Rm__Command *command, const struct state_result *result) {
        struct rmd *rmd = userdata;

        events_add(rmd->events, result);
        service_applied(rmd->service, command, result);
        if (result->repeated)
                return;
        if (rmd->runner)
                bodies_applied(rmd->bodies, command);
        if (result->error.code < 0 || !rmd->runner)
                return;
        metrics_applied(rmd->metrics, cluster_state(rmd->cluster), result);
        see_removed(rmd, command);
        if (command->body_case == RM__COMMAND__BODY_MOVE_START)
                moves_started(rmd->moves, result->created);
        if (command->body_case == RM__COMMAND__BODY_CHECKPOINT_START)
                checkpoints_started(rmd->checkpoints, command->checkpoint_start->job, result->created);
        moves_wake(rmd->moves);
        runner_wake(rmd->runner);
        checkpoints_wake(rmd->checkpoints);
        conditions_wake(rmd->conditions);
        leader_wake(rmd->leader, command);
        service_wake(rmd->service);
        web_wake(rmd->web);
}

static void on_installed(void *userdata) {
        struct rmd *rmd = userdata;

        if (!rmd->runner)
                return;
        metrics_installed(rmd->metrics, cluster_state(rmd->cluster));
        bodies_applied(rmd->bodies, NULL);
        moves_wake(rmd->moves);
        runner_wake(rmd->runner);
        checkpoints_wake(rmd->checkpoints);
        conditions_wake(rmd->conditions);
        leader_wake(rmd->leader, NULL);
        service_wake(rmd->service);
        web_wake(rmd->web);
}

static void on_message(void *userdata, const char *node, const Rm__PeerMessage *message) {
        struct rmd *rmd = userdata;

        if (!rmd->runner || forwarding_on_message(rmd->forwarding, node, message) || moves_on_message(rmd->moves, node, message) ||
            checkpoints_on_message(rmd->checkpoints, node, message) || bodies_on_message(rmd->bodies, node, message))
                return;
        switch (message->body_case) {
        case RM__PEER_MESSAGE__BODY_AGENT_RUN:
                runner_agent_run(rmd->runner, message->agent_run);
                break;
        case RM__PEER_MESSAGE__BODY_AGENT_DONE:
                runner_agent_done(rmd->runner, node, message->agent_done);
                break;
        case RM__PEER_MESSAGE__BODY_AGENT_KILL:
                runner_agent_kill(rmd->runner, message->agent_kill);
                break;
        case RM__PEER_MESSAGE__BODY_RANKS_END:
                runner_ranks_end(rmd->runner, message->ranks_end);
                break;
        case RM__PEER_MESSAGE__BODY_RANKS_ENDED:
                runner_ranks_ended(rmd->runner, message->ranks_ended);
                break;
        case RM__PEER_MESSAGE__BODY_ENDS_GET:
                runner_ends_get(rmd->runner, message->ends_get);
                break;
        case RM__PEER_MESSAGE__BODY_ENDS:
                runner_ends(rmd->runner, message->ends);
                break;
        case RM__PEER_MESSAGE__BODY_TRAFFIC:
                leader_on_traffic(rmd->leader, message->traffic);
                break;
        case RM__PEER_MESSAGE__BODY_NODE_MEMORY:
                leader_on_memory(rmd->leader, node, message->node_memory);
                break;
        case RM__PEER_MESSAGE__BODY_CORE_SHARE:
                leader_on_core_share(rmd->leader, message->core_share);
                break;
        default:
                log_warn("%s sent a message of kind %d, which is not known here", node, (int) message->body_case);
        }
}

static void on_peer(void *userdata, const char *node, bool connected) {
        struct rmd *rmd = userdata;

        if (!rmd->runner)
                return;
        forwarding_on_peer(rmd->forwarding, node, connected);
        moves_on_peer(rmd->moves, node, connected);
        checkpoints_on_peer(rmd->checkpoints, node, connected);
        if (connected)
                runner_peer_connected(rmd->runner, node);
        service_wake(rmd->service);
        web_wake(rmd->web);
}

/* Whether the service manager hears of it changes nothing else. */
__attribute__((format(printf, 2, 3))) static void notify(const struct rmd *rmd, const char *format, ...) {
        cleanup_free char *text = NULL;
        va_list ap;

        va_start(ap, format);
        text = xvasprintf(format, ap);
        va_end(ap);
        (void) notify_send(rmd->notify_socket, text);
}

/* The leader's object lives as long as this node leads. */
static void see_who_leads(struct rmd *rmd) {
        bool leads = cluster_is_leader(rmd->cluster);

        if (leads && !rmd->leader)
                rmd->leader = leader_create(rmd);
        else if (!leads)
                leader_destroy(take_ptr(rmd->leader));
}

static void on_leader(void *userdata, const char *leader) {
        static const struct timeval handed_over = { 0, HANDED_OVER_USEC };
        struct rmd *rmd = userdata;

        log_info("leader: %s", leader ? leader : "none");
        notify(rmd, "STATUS=node %s of cluster %s; leader: %s", rmd->config->node_name, rmd->config->cluster_name,
               leader ? leader : "none");
        if (!rmd->runner)
                return;
        if (rmd->stopping && !cluster_is_leader(rmd->cluster))
                (void) event_base_loopexit(rmd->base, &handed_over);
        see_who_leads(rmd);
        conditions_wake(rmd->conditions);
        if (leader)
                runner_report_memory(rmd->runner);
        runner_wake(rmd->runner);
        service_wake(rmd->service);
        web_wake(rmd->web);
}

static void on_failed(void *userdata, const struct rm_error *why) {
        struct rmd *rmd = userdata;

        *rmd->failed = *why;
        (void) event_base_loopbreak(rmd->base);
}

static void on_capsule(void *userdata, struct resident *resident, int error, const char *text) {
        struct rmd *rmd = userdata;

        if (rmd->checkpoints)
                checkpoints_capsule_ready(rmd->checkpoints, resident, error, text);
        /* A move that has failed drops the capsule that was made for it: it is the last that sees
         * it. */
        moves_capsule_ready(rmd->moves, resident, error, text);
}

static bool keeps_copy(void *userdata, const struct resident *resident) {
        struct rmd *rmd = userdata;

        return moves_own(rmd->moves, resident) || (rmd->checkpoints && checkpoints_own(rmd->checkpoints, resident));
}

static bool holds(void *userdata, const struct resident *resident) {
        struct rmd *rmd = userdata;

        return !rmd->moves || moves_hold(rmd->moves, resident);
}

static void on_filling(void *userdata, struct resident *resident) {
        struct rmd *rmd = userdata;

        moves_capsule_filling(rmd->moves, resident);
}

static void on_unfenced(void *userdata) {
        struct rmd *rmd = userdata;

        moves_wake(rmd->moves);
        checkpoints_wake(rmd->checkpoints);
}

static const struct runner_ops runner_ops = { on_capsule, keeps_copy, holds, on_filling, on_unfenced };

static void on_lease(void *userdata) {
        struct rmd *rmd = userdata;

        if (rmd->runner)
                runner_renew_leases(rmd->runner);
}

/* Modules that wait for a node which may be silent for long keep its connection, so that they hear
 * of its loss. */
static void on_heartbeat(void *userdata) {
        struct rmd *rmd = userdata;

        if (!rmd->runner)
                return;
        forwarding_keep(rmd->forwarding);
        moves_keep(rmd->moves);
        checkpoints_keep(rmd->checkpoints);
        runner_keep_peers(rmd->runner);
}

static const struct cluster_ops cluster_ops = { .on_applied = on_applied,
                                                .on_installed = on_installed,
                                                .on_message = on_message,
                                                .on_peer = on_peer,
                                                .on_heartbeat = on_heartbeat,
                                                .on_lease = on_lease,
                                                .on_leader = on_leader,
                                                .on_failed = on_failed };

/* ---- what the sensors tell ---- */

static int on_sensor_status(void *userdata, const char *sensor, enum rm_sensor_status status, const char *text) {
        static const Rm__Condition conditions[] = { [RM_SENSOR_OK] = RM__CONDITION__CONDITION_OK,
                                                    [RM_SENSOR_WARN] = RM__CONDITION__CONDITION_WARN,
                                                    [RM_SENSOR_FAILING] = RM__CONDITION__CONDITION_FAILING,
                                                    [RM_SENSOR_CRITICAL] = RM__CONDITION__CONDITION_CRITICAL };
        struct rmd *rmd = userdata;

        log_at(status == RM_SENSOR_OK ? LOG_INFO : LOG_WARNING, "sensor '%s' says %s%s%s", sensor, sensor_status_text(status),
               *text ? ": " : "", text);
        return conditions_report(rmd->conditions, sensor, conditions[status], text);
}

static const struct sensors_ops sensors_ops = { .on_status = on_sensor_status };

static void start_sensors(struct rmd *rmd) {
        const struct sensors_config config = { .sensors = &rmd->config->sensors, .first_usec = SENSORS_FIRST_USEC };

        rmd->sensors = sensors_create(rmd->base, &config, &sensors_ops, rmd);
        for (size_t i = 0; i < sensors_count(rmd->sensors); i++)
                (void) conditions_expect(rmd->conditions, sensors_view(rmd->sensors, i).name);
        conditions_expected(rmd->conditions);
}

/* ---- building the context ---- */

/* Peers and moves come to this address. */
static int find_address(struct config *config, struct rm_error *err) {
        struct ifaddrs *list = NULL;
        char number[INET_ADDRSTRLEN] = "";

        if (config->address[0])
                return 0;
        if (getifaddrs(&list) < 0)
                return error_sys(err, -errno, "reading the interfaces");
        for (struct ifaddrs *i = list; i && !number[0]; i = i->ifa_next)
                if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && strcmp(i->ifa_name, config->uplink) == 0)
                        (void) inet_ntop(AF_INET, &((struct sockaddr_in *) (void *) i->ifa_addr)->sin_addr, number, sizeof(number));
        freeifaddrs(list);
        if (!number[0])
                return error_set(err, -EADDRNOTAVAIL,
                                 "interface %s has no IPv4 address: set [node] uplink or address in the configuration",
                                 config->uplink);
        free(config->address);
        config->address = xstrdup(number);
        return 0;
}

static int start_cluster(struct rmd *rmd, struct tls *tls, struct rm_error *err) {
        const struct config *config = rmd->config;
        Rm__Node self = RM__NODE__INIT;
        struct topology *topology = rmd->topology = xcalloc(1, sizeof(*rmd->topology));
        cleanup_free char *list = xstrdup(config->peers);
        char *peers[64];
        size_t n_peers = 0;
        struct cluster_config cluster_config = {
                .name = config->cluster_name,
                .self = &self,
                .listen_address = config->address[0] ? config->address : NULL,
                .peers = (const char *const *) peers,
                .bootstrap = config->bootstrap,
                .state_dir = config->state_dir,
                .tls = tls,
                .node_timeout_usec = config->node_timeout_usec,
                .heartbeat_usec = config->heartbeat_usec,
                .lease_usec = config->lease_usec,
                .voters = config->voters,
                .voter_timeout_usec = config->voter_timeout_usec,
                .election_usec = config->election_usec,
        };
        char *saved = NULL;
        int r = topology_read(topology, err);

        if (r < 0)
                return r;
        for (char *word = strtok_r(list, " ,\t", &saved); word && n_peers < ARRAY_SIZE(peers);
             word = strtok_r(NULL, " ,\t", &saved))
                peers[n_peers++] = strchr(word, ':') ? xstrdup(word) : xasprintf("%s:%u", word, config->port);
        cluster_config.n_peers = n_peers;
        self.name = config->node_name;
        self.address = config->address;
        self.port = config->port;
        self.cores = config->cores ? config->cores : topology->cores;
        self.topology = topology->description;
        self.boot_id = topology->boot_id;
        self.instruction_sets = topology->instruction_sets;
        self.memory_bytes = limits_node_memory(config, topology->memory_bytes);
        r = cluster_create(rmd->base, &cluster_config, &cluster_ops, rmd, &rmd->cluster, err);
        if (r == -ENOTSUP || r == -EBADMSG)
                *rmd->failed = *err;
        while (n_peers > 0)
                free(peers[--n_peers]);
        return r;
}

static int start_capsules(struct rmd *rmd, struct rm_error *err) {
        cleanup_free char *runtime_dir = xasprintf("%s/capsules", rmd->config->runtime_dir);
        struct capsule_config config = {
                .base = rmd->base,
                .runtime_dir = runtime_dir,
                .cgroup_parent = rmd->config->cgroup_parent[0] ? rmd->config->cgroup_parent : NULL,
                .init_path = RM_LIBEXEC_DIR "/rm-capsule",
                .criu_path = CRIU_PATH,
                .kdat_path = "/run/criu.kdat",
                .writable = rmd->config->writable,
        };

        return capsule_ctx_create(&config, &rmd->capsules, err);
}

/* So that the counters of this rmd are not taken for those of the one before. */
static uint64_t random_number(void) {
        uint64_t number;

        if (getrandom(&number, sizeof(number), 0) != (ssize_t) sizeof(number))
                number = now_real_usec();
        return number;
}

static int start(struct rmd *rmd, struct tls *tls, struct rm_error *err) {
        int r;

        rmd->start_usec = now_usec();
        rmd->events = events_create();
        rmd->metrics = metrics_create(rmd->config->node_name, random_number(), now_usec());
        r = mkdir_p(rmd->config->runtime_dir, 0755);
        if (r < 0)
                return error_sys(err, r, "making %s", rmd->config->runtime_dir);
        r = start_capsules(rmd, err);
        if (r == 0)
                r = start_cluster(rmd, tls, err);
        if (r < 0)
                return r;
        limits_begin(rmd);
        rmd->forwarding = forwarding_create(rmd, service_forwarded_request, service_forwarded_gone);
        rmd->outputs = outputs_create(rmd);
        rmd->conditions = conditions_create(rmd);
        rmd->doctor = doctor_create(rmd);
        rmd->sessions = sessions_create();
        if (rmd->config->move_tracking)
                rmd->pages_test = pages_test_start(rmd->base, CRIU_PATH);
        r = moves_create(rmd, &rmd->moves, err);
        if (r == 0)
                r = checkpoints_create(rmd, &rmd->checkpoints, err);
        if (r == 0)
                r = bodies_create(rmd, &rmd->bodies, err);
        if (r == 0)
                r = runner_create(rmd, &runner_ops, rmd, &rmd->runner, err);
        if (r == 0)
                r = service_create(rmd, &rmd->service, err);
        if (r == 0)
                r = web_create(rmd, &rmd->web, err);
        if (r == 0) {
                start_sensors(rmd);
                see_who_leads(rmd);
                on_installed(rmd);
        }
        return r;
}

static void stop(struct rmd *rmd) {
        sensors_destroy(rmd->sensors);
        doctor_destroy(rmd->doctor);
        web_destroy(take_ptr(rmd->web));
        sessions_destroy(rmd->sessions);
        service_destroy(take_ptr(rmd->service));
        checkpoints_destroy(rmd->checkpoints);
        rmd->checkpoints = NULL;
        moves_destroy(rmd->moves);
        rmd->moves = NULL;
        leader_destroy(rmd->leader);
        rmd->leader = NULL;
        runner_destroy(rmd->runner);
        rmd->runner = NULL; /* nothing of what the cluster still says is listened to */
        bodies_destroy(rmd->bodies);
        rmd->bodies = NULL;
        cluster_destroy(rmd->cluster);
        forwarding_destroy(rmd->forwarding);
        outputs_destroy(rmd->outputs);
        conditions_destroy(rmd->conditions);
        pages_test_destroy(rmd->pages_test);
        capsule_ctx_destroy(rmd->capsules);
        events_destroy(rmd->events);
        metrics_destroy(rmd->metrics);
        free(rmd->topology);
}

/* The leader hands over first; told once more, it stops at once. */
static void on_signal(evutil_socket_t signo, short what, void *arg) {
        static const struct timeval most = { 0, HAND_OVER_USEC };
        struct rmd *rmd = arg;

        notify(rmd, "STOPPING=1");
        if (rmd->stopping || !cluster_hand_over(rmd->cluster)) {
                (void) event_base_loopbreak(rmd->base);
                return;
        }
        log_info("ending: another node is to lead");
        rmd->stopping = true;
        (void) event_base_loopexit(rmd->base, &most);
}

static void on_clean(evutil_socket_t fd, short what, void *arg) {
        struct rmd *rmd = arg;

        outputs_clean(rmd->outputs);
        bodies_clean(rmd->bodies);
}

static void on_trim(evutil_socket_t fd, short what, void *arg) {
        struct event **trimmer = arg;

        trim_memory();
        timer_arm(*trimmer, TRIM_USEC);
}

static void run(struct rmd *rmd) {
        struct event *term = evsignal_new(rmd->base, SIGTERM, on_signal, rmd);
        struct event *interrupt = evsignal_new(rmd->base, SIGINT, on_signal, rmd);
        struct event *cleaner = event_new(rmd->base, -1, EV_PERSIST, on_clean, rmd);
        struct event *trimmer = evtimer_new(rmd->base, on_trim, &trimmer);

        (void) event_add(term, NULL);
        (void) event_add(interrupt, NULL);
        timer_arm(cleaner, CLEAN_USEC);
        timer_arm(trimmer, TRIM_FIRST_USEC);
        log_info("rmd " RM_VERSION " on node %s of cluster %s", rmd->config->node_name, rmd->config->cluster_name);
        notify(rmd, "READY=1");
        (void) event_base_dispatch(rmd->base);
        log_info("ending; capsules go on");
        event_free(term);
        event_free(interrupt);
        event_free(cleaner);
        event_free(trimmer);
}

/* Ranks that poll must not keep the daemon from its heartbeats: on some kernels ordinary processes
 * wait for seconds beside them, and a silent daemon is taken for a dead node. What it starts does
 * not inherit this. */
static void keep_responsive(void) {
        const struct sched_param param = { .sched_priority = 1 };

        if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param) < 0)
                (void) setpriority(PRIO_PROCESS, 0, -10);
}

/* So that nodes can be compared while the key is changed. */
static void say_keys(const struct config *config, const struct tls *tls) {
        const char *second = tls_fingerprint(tls, true);

        log_info("fingerprint of the cluster's key: %s (%s)", tls_fingerprint(tls, false), config->key_file);
        if (second)
                log_warn("a second key is accepted, of fingerprint %s (%s)", second, config->second_key_file);
}

/* All nodes draw from random(): whom to ask for the leader, and when to try again. They are not to
 * draw the same. */
static void seed_random(void) {
        unsigned seed;

        if (getrandom(&seed, sizeof(seed), 0) != (ssize_t) sizeof(seed))
                seed = (unsigned) now_usec();
        srandom(seed);
}

/* -EUCLEAN: what state_dir or the log holds cannot be used. */
static int serve(struct config *config, struct rm_error *err) {
        struct rm_error failed = { 0 };
        struct rmd rmd = { .config = config, .failed = &failed };
        struct tls *tls = NULL;
        int r;

        if (geteuid() != 0)
                return error_set(err, -EPERM, "rmd makes namespaces and runs CRIU: start it as root");
        r = find_address(config, err);
        if (r == 0)
                r = nodename_keep(config->runtime_dir, &config->node_name, err);
        if (r == 0)
                r = tls_create_from_files(config->cluster_name, TLS_PEER, config->key_file, config->second_key_file, &tls, err);
        if (r < 0)
                return r;
        rmd.tls = tls;
        rmd.notify_socket = notify_take_socket();
        say_keys(config, tls);
        keep_responsive();
        seed_random();
        rmd.base = event_base_new();
        r = rmd.base ? start(&rmd, tls, err) : error_set(err, -ENOMEM, "no event loop");
        if (r == 0)
                run(&rmd);
        stop(&rmd);
        tls_destroy(tls);
        if (rmd.base)
                event_base_free(rmd.base);
        free(rmd.notify_socket);
        if (failed.code < 0) {
                *err = failed;
                return -EUCLEAN;
        }
        return r;
}

/* The switches are read to see whether they are good; the leader reads them for use. */
static int load(const char *path, struct config *ret_config, struct rm_error *err) {
        struct switches switches;
        int r = config_load(path, ret_config, err);

        if (r < 0)
                return r;
        r = config_load_switches(ret_config, &switches, err);
        if (r < 0)
                config_finish(ret_config);
        else
                switches_finish(&switches);
        return r;
}

/* Exit status of `rmd --init-cluster` and `rmd --join`. */
static int first_setup(const struct options *options) {
        const struct setup setup = { .config_path = options->config_path,
                                     .key_path = KEY_PATH,
                                     .join = options->join,
                                     .uplink = options->uplink,
                                     .systemctl = access(SYSTEMD_RUNS, F_OK) == 0 ? SYSTEMCTL_PATH : NULL };
        struct rm_error err = { 0 };
        int r = geteuid() == 0 ? setup_node(&setup, stdout, &err) : error_set(&err, -EPERM, "only root can set up a node");

        if (r == 0)
                return 0;
        (void) fflush(stdout);
        (void) fprintf(stderr, "rmd: %s\n", error_text(&err));
        return r == -EINVAL ? 2 : 1;
}

int main(int argc, char **argv) {
        struct options options = { .config_path = CONFIG_PATH };
        struct config config;
        struct rm_error err = { 0 };
        int r;

        stdio_begin();
        argp_err_exit_status = 2;
        if (argp_parse(&argp_rmd, argc, argv, 0, NULL, &options) != 0)
                return 2;
        log_setup("rmd", LOG_INFO);
        (void) signal(SIGPIPE, SIG_IGN);
        if (options.init_cluster || options.join)
                return first_setup(&options);
        r = load(options.config_path, &config, &err);
        if (r < 0) {
                (void) fprintf(stderr, "rmd: %s\n", error_text(&err));
                if (access(options.config_path, F_OK) < 0 && errno == ENOENT)
                        (void) fprintf(stderr, "rmd: 'rmd --init-cluster' begins a cluster here, 'rmd --join NODE' joins one\n");
                return 2;
        }
        if (options.check_config) {
                (void) printf("%s: configuration OK\n", options.config_path);
                config_finish(&config);
                return 0;
        }
        log_setup("rmd", config.log_level);
        r = serve(&config, &err);
        if (r < 0)
                log_error("%s", error_text(&err));
        config_finish(&config);
        if (r == -EUCLEAN)
                return EXIT_STATE;
        return r < 0 ? 1 : 0;
}
