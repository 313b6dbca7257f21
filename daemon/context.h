/* The context of one rmd: opaque handles of its parts, made and wired by main.c, NULL where a part
 * is not up yet. */
#ifndef RM_DAEMON_CONTEXT_H
#define RM_DAEMON_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

struct rm_error;
struct event_base;
struct config;
struct cluster;
struct capsule_ctx;
struct bodies;
struct runner;
struct outputs;
struct pages_test;
struct moves;
struct checkpoints;
struct conditions;
struct leader;
struct service;
struct sessions;
struct forwarding;
struct topology;
struct event_ring;
struct sensors;
struct metrics;
struct web;
struct doctor;
struct tls;

struct rmd {
        struct event_base *base;
        const struct config *config;
        struct topology *topology; /* of this machine */
        struct cluster *cluster;
        struct capsule_ctx *capsules;
        struct bodies *bodies;     /* job/: what jobs are launched with */
        struct runner *runner;     /* job/: this node's capsules */
        struct outputs *outputs;   /* job/: output of jobs whose head is here */
        struct pages_test *pages_test; /* job/: can memory be tracked here? */
        struct moves *moves;       /* move/ */
        struct checkpoints *checkpoints; /* checkpoint/ */
        struct conditions *conditions; /* health/: what this node's sensors say of it */
        struct leader *leader;     /* leader/: scheduling; NULL unless this node leads */
        struct service *service;   /* requests/: local clients */
        struct forwarding *forwarding;   /* requests/: requests carried to other nodes */
        struct event_ring *events; /* requests/: the last events */
        struct doctor *doctor;     /* doctor/: what rmctl doctor asks of this node */
        const struct tls *tls;     /* wire/: the cluster's key */
        struct sensors *sensors; /* sensor/: how healthy this node is */
        char *notify_socket; /* setup/notify.h: of the service manager; NULL: none wants to know */
        struct metrics *metrics; /* metrics/: what is counted */
        struct sessions *sessions; /* client/: who looks at the page over TCP */
        struct web *web;         /* web/: HTTP */
        uint32_t web_lacks;      /* web/: bit I: rmd could not listen at place I of [web] listen */
        uint64_t start_usec;
        bool stopping; /* it has been told to end */
        struct rm_error *failed; /* why the log cannot be used any more; code 0: it can */
};

#endif
