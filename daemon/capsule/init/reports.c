#include "daemon/capsule/init/reports.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/door.h"
#include "common/util.h"
#include "proto/door.pb-c.h"

struct rank {
        uint32_t number;
        uint64_t done;
        uint64_t total;
        UT_hash_handle hh;
};

struct reports {
        struct rank *ranks;
        double goal_min, goal_max; /* the last one that was said */
};

struct reports *reports_create(void) {
        return xcalloc(1, sizeof(struct reports));
}

void reports_destroy(struct reports *reports) {
        struct rank *rank, *next;

        if (!reports)
                return;
        HASH_ITER (hh, reports->ranks, rank, next) {
                HASH_DEL(reports->ranks, rank);
                free(rank);
        }
        free(reports);
}

static bool is_goal(double goal) {
        return goal >= 0 && isfinite(goal);
}

static int take_report(struct reports *reports, const Door__Report *report) {
        struct rank *rank = NULL;

        if ((report->total > 0 && report->done > report->total) || !is_goal(report->goal_min) || !is_goal(report->goal_max))
                return -EBADMSG;
        HASH_FIND(hh, reports->ranks, &report->rank, sizeof(report->rank), rank);
        if (!rank && HASH_COUNT(reports->ranks) >= REPORTS_RANKS_MAX)
                return -EUSERS;
        if (!rank) {
                rank = xcalloc(1, sizeof(*rank));
                rank->number = report->rank;
                HASH_ADD(hh, reports->ranks, number, sizeof(rank->number), rank);
        }
        rank->done = report->done;
        rank->total = report->total;
        reports->goal_min = report->goal_min;
        reports->goal_max = report->goal_max;
        return 0;
}

int reports_take(struct reports *reports, const void *data, size_t size) {
        Door__Request *request = size <= DOOR_MESSAGE_BYTES ? door__request__unpack(NULL, size, data) : NULL;
        int r = -EBADMSG;

        if (request && request->body_case == DOOR__REQUEST__BODY_REPORT)
                r = take_report(reports, request->report);
        if (request)
                door__request__free_unpacked(request, NULL);
        return r;
}

void reports_sum(const struct reports *reports, Capsule__Progress *ret) {
        struct rank *rank, *next;

        ret->ranks = HASH_COUNT(reports->ranks);
        ret->goal_min = reports->goal_min;
        ret->goal_max = reports->goal_max;
        ret->done = ret->total = 0;
        HASH_ITER (hh, reports->ranks, rank, next) {
                if (rank != reports->ranks && rank->done >= ret->done)
                        continue;
                ret->done = rank->done;
                ret->total = rank->total;
        }
}
