#include "launcher/rmctl/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostlist.h"
#include "common/instruction_sets.h"
#include "common/util.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/kernel_faults.h"

/* A program sees the clock jump by as much. Clocks that NTP keeps differ by milliseconds. */
#define CLOCK_WARNING_USEC 100000
#define CLOCK_PROBLEM_USEC 5000000
/* The log and the spool go on for some time, or hardly. */
#define DISK_WARNING_BYTES (UINT64_C(1) << 30)
#define RUNTIME_WARNING_BYTES (UINT64_C(256) << 20)
#define DISK_PROBLEM_BYTES (UINT64_C(64) << 20)
#define FILES_PROBLEM 1000U
#define FILES_WARNING_SHARE 20U /* less than one in so many is free */
/* rmd has some descriptors for each capsule and each connection. rmd.service sets 65536. */
#define OPEN_FILES_LEAST 4096U

struct judging {
        const struct examined *nodes;
        size_t n;
        struct findings *findings;
};

const char *severity_name(enum severity severity) {
        return severity == SEVERITY_PROBLEM ? "problem" : severity == SEVERITY_WARNING ? "warning" : "ok";
}

/* Takes over all three texts. */
static void add(struct judging *j, const struct examined *of, const char *check, enum severity severity, char *text, char *means,
                char *fix) {
        struct findings *findings = j->findings;

        findings->list = xrealloc(findings->list, (findings->n + 1) * sizeof(*findings->list));
        findings->list[findings->n++] = (struct finding) { of->node, check, severity, text, means, fix };
}

static void add_ok(struct judging *j, const struct examined *of, const char *check, char *text) {
        add(j, of, check, SEVERITY_OK, text, NULL, NULL);
}

/* ---- comparing ---- */

/* A fact as text, NULL: the node has not told it; the caller frees it. `of` says which, where there
 * are several of a kind. */
typedef char *(*fact_fn)(const Rm__NodeFacts *facts, const char *of);

static char *fact_of(const struct examined *node, fact_fn fact, const char *of) {
        return node->facts ? fact(node->facts, of) : NULL;
}

/* A text, as a fact. */
static char *reported(const char *text) {
        return *text ? xstrdup(text) : NULL;
}

/* "n[1-3]": those that have this value. */
static char *who_has(const struct judging *j, fact_fn fact, const char *of, const char *value) {
        struct hostlist list = { 0 };
        char *names;

        for (size_t i = 0; i < j->n; i++) {
                cleanup_free char *have = fact_of(&j->nodes[i], fact, of);

                if (have && strcmp(have, value) == 0)
                        hostlist_add(&list, j->nodes[i].node);
        }
        names = hostlist_compress(list.names, list.n_names);
        hostlist_finish(&list);
        return names;
}

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* The value that most nodes have; of values that as many have, the leader's. NULL: no node has
 * reported one. The caller frees it. */
static char *usual(const struct judging *j, fact_fn fact, const char *of) {
        cleanup_free char **values = xcalloc(j->n, sizeof(*values));
        cleanup_free char *leaders = NULL;
        size_t n = 0, most = 0;
        char *best = NULL;

        for (size_t i = 0; i < j->n; i++) {
                values[n] = fact_of(&j->nodes[i], fact, of);
                if (values[n] && j->nodes[i].leader && !leaders)
                        leaders = xstrdup(values[n]);
                n += values[n] != NULL;
        }
        qsort(values, n, sizeof(*values), compare_texts);
        for (size_t i = 0, same; i < n; i += same) {
                same = 1;
                while (i + same < n && strcmp(values[i + same], values[i]) == 0)
                        same++;
                if (same > most || (same == most && leaders && strcmp(values[i], leaders) == 0)) {
                        best = values[i];
                        most = same;
                }
        }
        best = xstrdup(best);
        for (size_t i = 0; i < n; i++)
                free(values[i]);
        return best;
}

/* A fact that is to be the same everywhere. */
struct likeness {
        const char *check, *what;
        fact_fn fact;
        enum severity severity; /* of a node that differs */
        const char *means, *fix;
        char *usual; /* of all nodes */
        char *who; /* have it */
};

static void judge_likeness(struct judging *j, const struct examined *node, const struct likeness *like) {
        cleanup_free char *have = fact_of(node, like->fact, NULL);

        if (!have)
                return;
        if (strcmp(have, like->usual) == 0)
                add_ok(j, node, like->check, xasprintf("%s is %s", like->what, have));
        else
                add(j, node, like->check, like->severity,
                    xasprintf("%s is %s, but %s on %s", like->what, have, like->usual, like->who), xstrdup(like->means),
                    xstrdup(like->fix));
}

static char *rmd_fact(const Rm__NodeFacts *facts, const char *of) {
        return reported(facts->rmd_version);
}

static char *kernel_fact(const Rm__NodeFacts *facts, const char *of) {
        return *facts->kernel ? xasprintf("%s (%s)", facts->kernel, facts->machine) : NULL;
}

static char *criu_fact(const Rm__NodeFacts *facts, const char *of) {
        return reported(facts->criu_version);
}

static char *mpi_fact(const Rm__NodeFacts *facts, const char *of) {
        return reported(facts->mpi_version);
}

static char *model_fact(const Rm__NodeFacts *facts, const char *of) {
        return reported(facts->processor);
}

static char *mtu_fact(const Rm__NodeFacts *facts, const char *of) {
        return facts->mtu > 0 ? xasprintf("%u", facts->mtu) : NULL;
}

static const struct likeness likenesses[] = {
        { .check = "rmd",
          .what = "rmd's version",
          .fact = rmd_fact,
          .severity = SEVERITY_WARNING,
          .means = "the cluster uses only what all versions know",
          .fix = "install the same version of rmd, then systemctl restart rmd" },
        { .check = "kernel",
          .what = "the kernel",
          .fact = kernel_fact,
          .severity = SEVERITY_WARNING,
          .means = "a group that moves between different kernels may meet what the other one does not know",
          .fix = "install the same kernel (apt install linux-image-amd64) and reboot" },
        { .check = "criu-version",
          .what = "CRIU's version",
          .fact = criu_fact,
          .severity = SEVERITY_WARNING,
          .means = "an older CRIU may not restore what a newer one has dumped",
          .fix = "apt install criu, in the same version on all nodes" },
        { .check = "mpi",
          .what = "the version of Open MPI",
          .fact = mpi_fact,
          .severity = SEVERITY_PROBLEM,
          .means = "ranks that use the system's Open MPI cannot be restored where it is another one",
          .fix = "apt install openmpi-bin, in the same version on all nodes" },
        { .check = "processor-model",
          .what = "the processor",
          .fact = model_fact,
          .severity = SEVERITY_WARNING,
          .means = "what a program found out about the processor when it began does not hold after a move",
          .fix = "put nodes of one kind into a cluster, or drain those of the other: rmctl drain-node" },
};

/* ---- files that must be the same ---- */

static char *library_fact(const Rm__NodeFacts *facts, const char *of) {
        for (size_t i = 0; i < facts->n_libraries; i++)
                if (strcmp(facts->libraries[i]->name, of) == 0)
                        return reported(facts->libraries[i]->digest);
        return NULL;
}

/* All names that any node has told. */
static void collect_library_names(const struct judging *j, struct hostlist *names) {
        for (size_t i = 0; i < j->n; i++)
                for (size_t k = 0; j->nodes[i].facts && k < j->nodes[i].facts->n_libraries; k++)
                        hostlist_add(names, j->nodes[i].facts->libraries[k]->name);
}

static void append(char **list, const char *word) {
        cleanup_free char *before = *list;

        *list = before ? xasprintf("%s %s", before, word) : xstrdup(word);
}

/* A thing that nodes are compared by, and what most of them have. */
struct shared {
        char *name, *usual;
};

static void judge_libraries(struct judging *j, const struct examined *node, const struct shared *libraries, size_t n) {
        cleanup_free char *different = NULL, *missing = NULL;

        for (size_t i = 0; i < n; i++) {
                cleanup_free char *have = library_fact(node->facts, libraries[i].name);

                if (!have)
                        append(&missing, libraries[i].name);
                else if (strcmp(have, libraries[i].usual) != 0)
                        append(&different, libraries[i].name);
        }
        if (n == 0)
                add(j, node, "libraries", SEVERITY_WARNING, xstrdup("the libraries of MPI programs are not known"),
                    xstrdup("whether groups can be restored on other nodes is not known either"),
                    xstrdup("see whether 'ldconfig -p' works"));
        else if (!different && !missing)
                add_ok(j, node, "libraries", xasprintf("%zu libraries are the same as on most nodes", n));
        else
                add(j, node, "libraries", SEVERITY_PROBLEM,
                    xasprintf("%s%s%s%s%s", different ? different : "", different ? ": not as on most nodes" : "",
                              different && missing ? "; " : "", missing ? "missing or unreadable: " : "", missing ? missing : ""),
                    xstrdup("groups that have mapped them cannot be restored from here elsewhere, nor from elsewhere here"),
                    xstrdup("apt install --reinstall libc6 openmpi-bin libopenmpi3t64, in the same version on all nodes"));
}

/* ---- the processor ---- */

/* Adds those of `flags` that are instruction sets to `known`, if they are not in it yet. */
static void add_flags(const char *flags, const char *machine, char **known) {
        cleanup_free char *sets = instruction_sets_of(flags, machine);
        char *more = *known ? instruction_sets_lacking(*known, sets) : *sets ? take_ptr(sets) : NULL;

        if (more)
                append(known, more);
        free(more);
}

static void judge_flags(struct judging *j, const struct examined *node, const char *all) {
        cleanup_free char *lacks = NULL;

        if (!*node->facts->processor_flags)
                return;
        lacks = instruction_sets_lacking(node->facts->processor_flags, all);
        if (!lacks)
                add_ok(j, node, "processor-flags", xstrdup("the processor knows all instruction sets that others know"));
        else
                add(j, node, "processor-flags", SEVERITY_PROBLEM,
                    xasprintf("the processor does not know %s, which others know", lacks),
                    xstrdup("a program that began on a node that knows them may be killed by SIGILL when it moves here"),
                    xstrdup("put nodes of one kind into a cluster, or drain those of the other: rmctl drain-node"));
}

/* ---- one node by itself ---- */

/* "6.18.44-amd64" is at least 6.16; a version that cannot be read is not. */
static bool at_least(const char *version, unsigned major, unsigned minor) {
        unsigned a = 0, b = 0;

        return sscanf(version, "%u.%u", &a, &b) == 2 &&
               (a > major || (a == major && b >= minor)); /* NOLINT(cert-err34-c): two small numbers */
}

static void judge_criu(struct judging *j, const struct examined *node) {
        const Rm__NodeFacts *f = node->facts;

        if (*f->criu_error)
                add(j, node, "criu", SEVERITY_PROBLEM, xasprintf("CRIU does not run: %s", f->criu_error),
                    xstrdup("no group can be moved from or to this node, nor restored here"), xstrdup("apt install criu"));
        else if (*f->criu_check_error)
                /* A dump that was tried tells more, and one may still be under way. */
                add(j, node, "criu", f->tracking || !f->tested ? SEVERITY_WARNING : SEVERITY_PROBLEM,
                    xasprintf("'criu check' fails: %s", f->criu_check_error),
                    xstrdup("groups may not be movable from or to this node"),
                    xstrdup("criu check, as root, says what the kernel lacks; install a kernel and a CRIU that fit"));
        else if (at_least(f->kernel, 6, 16) && *f->criu_version && !at_least(f->criu_version, 4, 2))
                add(j, node, "criu", SEVERITY_PROBLEM, xasprintf("CRIU %s does not fit kernel %s", f->criu_version, f->kernel),
                    xstrdup("it cannot dump TCP connections there, and ranks have some: no group can be moved"),
                    xstrdup("install CRIU 4.2.1 or later, or a kernel before 6.16"));
        else
                add_ok(j, node, "criu", xstrdup("CRIU's own check passes"));
}

static void judge_tracking(struct judging *j, const struct examined *node) {
        const Rm__NodeFacts *f = node->facts;

        if (f->tracking)
                add_ok(j, node, "tracking", xstrdup("a process was tracked, dumped and restored"));
        else
                add(j, node, "tracking", SEVERITY_WARNING,
                    xasprintf("memory cannot be tracked: %s", f->tracking_off ? "[move] tracking = no" : f->untracked),
                    xstrdup("moves from here read all memory again while the group stands still, so the freeze grows with its "
                            "memory"),
                    xstrdup(f->tracking_off ? "[move] tracking = yes in rmd.conf, then systemctl restart rmd"
                                            : "Linux 6.13 or later and the CRIU that belongs to it, then systemctl restart rmd"));
}

/* Only a hint: distributions correct kernels and keep their numbers. */
static void judge_kernel_faults(struct judging *j, const struct examined *node) {
        const Rm__NodeFacts *f = node->facts;
        const struct kernel_fault *fault = kernel_fault_of(f->kernel, f->tracking, f->huge_page_bytes > 0);

        if (fault)
                add(j, node, "kernel-faults", SEVERITY_WARNING,
                    xasprintf("by its version, kernel %s %s (%s)", f->kernel, fault->what, fault->name), xstrdup(fault->means),
                    xasprintf("a kernel with the correction (%s; the changelog of a distribution's kernel tells whether it has "
                              "it), and reboot",
                              fault->fixed));
        else if (*f->kernel)
                add_ok(j, node, "kernel-faults", xstrdup("no fault that touches moves is known of this version of the kernel"));
}

static void judge_limits(struct judging *j, const struct examined *node) {
        const Rm__NodeFacts *f = node->facts;

        if (*f->limits_missing)
                add(j, node, "limits", SEVERITY_WARNING, xstrdup(f->limits_missing),
                    xstrdup("a group that comes here is not kept to what it may use"),
                    xstrdup("Delegate=yes in rmd.service, and no cgroup_disable= of the kernel; [node] cores not above what there "
                            "is"));
        else
                add_ok(j, node, "limits", xstrdup("all limits of capsules are enforced"));
        if (*f->no_collection)
                return;
        if (f->open_files_max < OPEN_FILES_LEAST)
                add(j, node, "open-files", SEVERITY_WARNING, xasprintf("rmd may have %" PRIu64 " open files", f->open_files_max),
                    xstrdup("with many groups and connections moves fail for want of descriptors"),
                    xstrdup("LimitNOFILE=65536 in rmd.service, then systemctl daemon-reload and systemctl restart rmd"));
        else
                add_ok(j, node, "open-files", xasprintf("rmd may have %" PRIu64 " open files", f->open_files_max));
}

static void judge_uplink(struct judging *j, const struct examined *node, const char *mtu, const char *who) {
        const Rm__NodeFacts *f = node->facts;
        cleanup_free char *have = mtu_fact(f, NULL);

        if (*f->uplink_error)
                add(j, node, "uplink", SEVERITY_PROBLEM, xasprintf("interface %s: %s", f->uplink, f->uplink_error),
                    xstrdup("capsules cannot be connected here: no group can come"),
                    xstrdup("[node] uplink in rmd.conf, then systemctl restart rmd; 'ip link' lists interfaces"));
        else if (strcmp(f->uplink_state, "down") == 0 || strcmp(f->uplink_state, "lowerlayerdown") == 0)
                add(j, node, "uplink", SEVERITY_PROBLEM, xasprintf("interface %s is %s", f->uplink, f->uplink_state),
                    xstrdup("groups that come here are cut off from the others"), xasprintf("ip link set dev %s up", f->uplink));
        else if (have && mtu && strcmp(have, mtu) != 0)
                add(j, node, "uplink", SEVERITY_PROBLEM, xasprintf("the MTU of %s is %s, but %s on %s", f->uplink, have, mtu, who),
                    xstrdup("frames larger than the smaller of the two are lost, so connections of groups stand still after a "
                            "move"),
                    xasprintf("ip link set dev %s mtu %s", f->uplink, mtu));
        else
                add_ok(j, node, "uplink", xasprintf("the MTU of %s is %u", f->uplink, f->mtu));
}

static void judge_ports(struct judging *j, const struct examined *node) {
        const Rm__NodeFacts *f = node->facts;
        uint32_t few = f->port_last - f->port_first + 1;
        cleanup_free char *range = f->port_first > 0 ? xasprintf("ports %u-%u", f->port_first, f->port_last) : xstrdup("any port");

        if (f->ports_free == 0)
                add(j, node, "ports", SEVERITY_PROBLEM, xasprintf("movers can listen on none of %s: %s", range, f->port_error),
                    xstrdup("no group can come here"),
                    xstrdup("[node] move_ports in rmd.conf; 'ss -ltnp' shows who has the ports"));
        else if (f->port_first > 0 && f->ports_tried == few && f->ports_free < f->moves_at_once)
                add(j, node, "ports", SEVERITY_WARNING,
                    xasprintf("movers can listen on %u of %s, and %u moves may run at once", f->ports_free, range,
                              f->moves_at_once),
                    xstrdup("moves to this node fail while the ports are taken, and are tried again"),
                    xasprintf("[node] move_ports in rmd.conf with at least %u free ports, then systemctl restart rmd",
                              f->moves_at_once));
        else
                add_ok(j, node, "ports", xasprintf("movers can listen on %s", range));
}

static void judge_key(struct judging *j, const struct examined *node) {
        const Rm__NodeFacts *f = node->facts;
        bool scanned_at = !*f->no_collection;

        if (scanned_at && *f->key_error)
                add(j, node, "key", SEVERITY_PROBLEM, xstrdup(f->key_error),
                    xstrdup("when rmd starts again here it cannot join, and no group can come"),
                    xasprintf("chown root %s; chmod 0600 %s; if it is damaged, copy it from another node", f->key_file,
                              f->key_file));
        else if (scanned_at && !f->key_current)
                add(j, node, "key", SEVERITY_PROBLEM, xasprintf("%s has another key than rmd uses", f->key_file),
                    xstrdup("when rmd starts again here it uses that one, and may not be able to join"),
                    xstrdup("copy the file from another node; or, where the key is being changed, systemctl restart rmd"));
        else if (!f->key_same)
                add(j, node, "key", SEVERITY_WARNING, xstrdup("rmd uses another key than the node that was asked"),
                    xstrdup("nodes that accept only one of the keys cannot reach the others"),
                    xstrdup("finish changing the key on all nodes, as rmd-cluster(7) says"));
        else
                add_ok(j, node, "key", xstrdup("the key is the same, and nobody else can read it"));
}

static void judge_disk(struct judging *j, const struct examined *node, const Rm__DiskFact *d) {
        bool is_state = strcmp(d->setting, "state_dir") == 0;
        const char *check = is_state ? "state-dir" : "runtime-dir";
        const char *means = is_state ? "without room for the log and for output the node can take no jobs"
                                     : "images of groups that come cannot be kept";
        uint64_t warning = is_state ? DISK_WARNING_BYTES : RUNTIME_WARNING_BYTES;
        cleanup_free char *left = human_bytes(d->free_bytes);
        bool counted = d->total_files > 0;

        if (*d->error)
                add(j, node, check, SEVERITY_PROBLEM, xasprintf("%s: %s", d->path, d->error), xstrdup(means),
                    xasprintf("mkdir -p %s, or %s in rmd.conf", d->path, d->setting));
        else if (d->read_only)
                add(j, node, check, SEVERITY_PROBLEM, xasprintf("%s is read-only", d->path), xstrdup(means),
                    xasprintf("mount -o remount,rw its file system ('findmnt -T %s')", d->path));
        else if (d->free_bytes < warning || (counted && d->free_files < d->total_files / FILES_WARNING_SHARE))
                add(j, node, check,
                    d->free_bytes < DISK_PROBLEM_BYTES || (counted && d->free_files < FILES_PROBLEM) ? SEVERITY_PROBLEM
                                                                                                     : SEVERITY_WARNING,
                    xasprintf("%s has room for %s, and %" PRIu64 " of %" PRIu64 " files", d->path, left, d->free_files,
                              d->total_files),
                    xstrdup(means), xasprintf("make room ('du -x %s'), or %s on another disk in rmd.conf", d->path, d->setting));
        else
                add_ok(j, node, check, xasprintf("%s has room for %s", d->path, left));
}

/* ---- the clock ---- */

static int compare_numbers(const void *a, const void *b) {
        int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;

        return (x > y) - (x < y);
}

/* The usual clock: of three nodes or more the one in the middle, so that no single clock makes all
 * others wrong; of two the leader's. */
static int64_t usual_clock(const struct judging *j) {
        cleanup_free int64_t *clocks = xcalloc(j->n, sizeof(*clocks));
        int64_t leaders = 0;
        size_t n = 0;

        for (size_t i = 0; i < j->n; i++)
                if (j->nodes[i].facts) {
                        clocks[n++] = j->nodes[i].clock_usec;
                        leaders = j->nodes[i].leader ? j->nodes[i].clock_usec : leaders;
                }
        qsort(clocks, n, sizeof(*clocks), compare_numbers);
        return n > 2 ? clocks[n / 2] : leaders;
}

static void judge_clock(struct judging *j, const struct examined *node, int64_t reference) {
        int64_t apart = node->clock_usec - reference;
        uint64_t size = (uint64_t) (apart < 0 ? -apart : apart);
        uint64_t sure = size > node->clock_error_usec ? size - node->clock_error_usec : 0;
        cleanup_free char *text = human_duration(size);

        if (sure < CLOCK_WARNING_USEC)
                add_ok(j, node, "clock", xstrdup("the clock is as on other nodes"));
        else
                add(j, node, "clock", sure < CLOCK_PROBLEM_USEC ? SEVERITY_WARNING : SEVERITY_PROBLEM,
                    xasprintf("the clock is %s %s others", text, apart < 0 ? "behind" : "ahead of"),
                    xstrdup("a program that moves sees its clock jump by as much, and times of files and events are wrong"),
                    xstrdup("chronyc makestep, and systemctl enable --now chrony"));
}

/* ---- all ---- */

/* The facts that follow from all nodes together. */
struct whole {
        struct likeness likenesses[ARRAY_SIZE(likenesses)];
        struct shared *libraries;
        size_t n_libraries;
        char *flags, *mtu, *mtu_who;
        int64_t clock;
};

static void scan_all(const struct judging *j, struct whole *whole) {
        struct hostlist names = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(likenesses); i++) {
                struct likeness *like = &whole->likenesses[i];

                *like = likenesses[i];
                like->usual = usual(j, like->fact, NULL);
                like->who = like->usual ? who_has(j, like->fact, NULL, like->usual) : NULL;
        }
        collect_library_names(j, &names);
        whole->libraries = xcalloc(names.n_names, sizeof(*whole->libraries));
        for (size_t i = 0; i < names.n_names; i++) {
                char *best = usual(j, library_fact, names.names[i]);

                if (best)
                        whole->libraries[whole->n_libraries++] = (struct shared) { xstrdup(names.names[i]), best };
        }
        hostlist_finish(&names);
        for (size_t i = 0; i < j->n; i++)
                if (j->nodes[i].facts)
                        add_flags(j->nodes[i].facts->processor_flags, j->nodes[i].facts->machine, &whole->flags);
        whole->mtu = usual(j, mtu_fact, NULL);
        whole->mtu_who = whole->mtu ? who_has(j, mtu_fact, NULL, whole->mtu) : NULL;
        whole->clock = usual_clock(j);
}

static void whole_finish(struct whole *whole) {
        for (size_t i = 0; i < ARRAY_SIZE(likenesses); i++) {
                free(whole->likenesses[i].usual);
                free(whole->likenesses[i].who);
        }
        for (size_t i = 0; i < whole->n_libraries; i++) {
                free(whole->libraries[i].name);
                free(whole->libraries[i].usual);
        }
        free(whole->libraries);
        free(whole->flags);
        free(whole->mtu);
        free(whole->mtu_who);
}

static void judge_groups(struct judging *j, const struct examined *node) {
        for (size_t i = 0; i < node->n_staying; i++)
                add(j, node, "groups", SEVERITY_WARNING, xstrdup(node->staying[i]),
                    xstrdup("the group cannot leave this node before this has changed, and a drain does not end before"),
                    xstrdup("'What prevents a move' in rm-mpirun(1) tells what the program may do; 'rmctl cancel-job' ends it"));
        if (node->n_staying == 0)
                add_ok(j, node, "groups", xstrdup("nothing is known to keep a group from being moved"));
}

static void judge_collected(struct judging *j, const struct examined *node, const struct whole *whole) {
        const Rm__NodeFacts *f = node->facts;

        judge_criu(j, node);
        if (*f->mpi_error)
                add(j, node, "mpi", SEVERITY_WARNING, xasprintf("Open MPI of the system does not run: %s", f->mpi_error),
                    xstrdup("jobs need one of their own here, at the same path as on other nodes"),
                    xstrdup("apt install openmpi-bin"));
        judge_libraries(j, node, whole->libraries, whole->n_libraries);
        judge_flags(j, node, whole->flags ? whole->flags : "");
        judge_uplink(j, node, whole->mtu, whole->mtu_who);
        judge_ports(j, node);
        for (size_t i = 0; i < f->n_disks; i++)
                judge_disk(j, node, f->disks[i]);
}

static void judge_node(struct judging *j, const struct examined *node, const struct whole *whole) {
        if (!node->facts) {
                add(j, node, "answer", SEVERITY_PROBLEM, xstrdup(node->silence),
                    xstrdup("nothing is known of this node: no group should move there"), xstrdup(node->silence_fix));
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(likenesses); i++)
                judge_likeness(j, node, &whole->likenesses[i]);
        judge_tracking(j, node);
        judge_kernel_faults(j, node);
        judge_limits(j, node);
        judge_clock(j, node, whole->clock);
        judge_key(j, node);
        judge_groups(j, node);
        if (*node->facts->no_collection)
                add(j, node, "answer", SEVERITY_PROBLEM, xasprintf("the node cannot be looked at: %s", node->facts->no_collection),
                    xstrdup("a disk or a program hangs there; what does so may hang moves too"),
                    xstrdup("journalctl -u rmd; ps -eo pid,stat,wchan,cmd shows what waits (state D)"));
        else
                judge_collected(j, node, whole);
}

void judge(const struct examined *nodes, size_t n, struct findings *findings) {
        struct judging j = { nodes, n, findings };
        struct whole whole = { 0 };

        scan_all(&j, &whole);
        for (size_t i = 0; i < n; i++)
                if (nodes[i].requested)
                        judge_node(&j, &nodes[i], &whole);
        whole_finish(&whole);
}

void findings_finish(struct findings *findings) {
        for (size_t i = 0; i < findings->n; i++) {
                free(findings->list[i].text);
                free(findings->list[i].means);
                free(findings->list[i].fix);
        }
        free(findings->list);
        *findings = (struct findings) { 0 };
}
