#include "rtlib/ft/meet.h"

#include <stdlib.h>

#include "common/util.h"
#include "rtlib/ft/create.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/members.h"
#include "rtlib/ft/spare.h"
#include "rtlib/ft/watch.h"

struct word {
        uint32_t losses, try_number;
};

/* The words of a meeting: on the lowest living rank, the last one of each of the others. */
static struct {
        struct word *joined; /* by rank; without losses: nothing */
        struct word said;    /* by this one, to `said_to` */
        uint32_t said_to;
} meeting;

static void say(uint32_t to, int tag, struct word word) {
        /* The word is so small that it goes without the other's help. A rank that is dead is known
         * to be before long. */
        (void) mpi.Send(&word, sizeof(word), mpi.byte, (int) to, tag, ft.meeting);
}

static bool receive_any(uint32_t from, int tag, void *ret, int bytes) {
        int there = 0;

        if (mpi.Iprobe((int) from, tag, ft.meeting, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS || !there)
                return false;
        return mpi.Recv(ret, bytes, mpi.byte, (int) from, tag, ft.meeting, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static bool receive(uint32_t from, int tag, struct word *ret) {
        return receive_any(from, tag, ret, sizeof(*ret));
}

static bool all_joined(uint32_t losses, struct word *ret) {
        bool all = true;

        for (uint32_t i = 0; i < (uint32_t) ft.size; i++) {
                if ((int) i == ft.rank || !members_has(i))
                        continue;
                while (receive(i, TAG_JOIN, &meeting.joined[i]))
                        ;
                if (meeting.joined[i].losses != losses)
                        all = false;
                else if (meeting.joined[i].try_number > ret->try_number)
                        ret->try_number = meeting.joined[i].try_number;
        }
        return all;
}

static bool lead(uint32_t losses, uint32_t try_number, struct word *ret) {
        *ret = (struct word) { losses, try_number };
        if (!meeting.joined)
                meeting.joined = xcalloc((size_t) ft.size, sizeof(*meeting.joined));
        if (!all_joined(losses, ret))
                return false;
        for (uint32_t i = 0; i < (uint32_t) ft.size; i++)
                if ((int) i != ft.rank && members_has(i)) {
                        meeting.joined[i] = (struct word) { 0 };
                        say(i, TAG_GO, *ret);
                }
        return true;
}

static bool follow(uint32_t leader, uint32_t losses, uint32_t try_number, struct word *ret) {
        const struct word join = { losses, try_number };

        /* The message is sent once: a late one would count as an answer to the next question. */
        if (meeting.said_to != leader || meeting.said.losses != losses || meeting.said.try_number != try_number) {
                meeting.said = join;
                meeting.said_to = leader;
                say(leader, TAG_JOIN, join);
        }
        return receive(leader, TAG_GO, ret);
}

uint32_t meet(uint32_t *try_number) {
        struct word word;
        uint32_t known = 0;

        for (unsigned turns = 0;; wait_pause(&turns)) {
                uint32_t losses = ft.losses.count, leader;

                members_update(losses);
                leader = members_first();
                if (losses != known)
                        turns = 0;
                known = losses;
                if ((int) leader == ft.rank ? lead(losses, *try_number, &word) : follow(leader, losses, *try_number, &word))
                        break;
                spare_scan();
                watch_scan();
        }
        *try_number = word.try_number;
        return word.losses;
}

struct token {
        uint64_t name;
        uint64_t losses; /* what was said before a loss is not meant any more */
};

static bool await_token(int from, struct token requested) {
        struct token token;
        int there;

        for (unsigned turns = 0;;) {
                if (ft_is_behind())
                        return false;
                if (mpi.Iprobe(from, TAG_GROUP, ft.meeting, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS)
                        return false;
                if (!there)
                        wait_pause(&turns);
                else if (mpi.Recv(&token, sizeof(token), mpi.byte, from, TAG_GROUP, ft.meeting, MPI_STATUS_IGNORE) != MPI_SUCCESS)
                        return false;
                else if (token.name == requested.name && token.losses == requested.losses)
                        return true;
        }
}

static void give_token(int to, struct token token) {
        (void) mpi.Send(&token, sizeof(token), mpi.byte, to, TAG_GROUP, ft.meeting);
}

/* The first of them waits for all, and then lets them go. */
bool meet_group(MPI_Group group, uint64_t name) {
        const struct token token = { name, ft.repaired };
        int n, own = 0, *processes = group_processes(group, &n);
        bool ok = true;

        (void) mpi.Group_rank(group, &own);
        if (own != 0) {
                give_token(processes[0], token);
                ok = await_token(processes[0], token);
        }
        for (int i = 1; own == 0 && ok && i < n; i++)
                ok = await_token(processes[i], token);
        for (int i = 1; own == 0 && ok && i < n; i++)
                give_token(processes[i], token);
        free(processes);
        return ok;
}

int meet_gather(MPI_Comm comm, int ranks, const uint64_t *own, int n, struct gathered *ret) {
        int rc;

        *ret = (struct gathered) { NULL, xcalloc((size_t) ranks, sizeof(int)), xcalloc((size_t) ranks, sizeof(int)), 0 };
        blocked_enter(comm);
        rc = mpi.Allgather(&n, sizeof(n), mpi.byte, ret->counts, sizeof(n), mpi.byte, comm);
        for (int i = 0; rc == MPI_SUCCESS && i < ranks; i++) {
                ret->firsts[i] = ret->all;
                ret->all += ret->counts[i];
        }
        if (rc == MPI_SUCCESS) {
                ret->numbers = xcalloc((size_t) ret->all + 1, sizeof(*ret->numbers));
                rc = mpi.Allgatherv(own, n, mpi.uint64, ret->numbers, ret->counts, ret->firsts, mpi.uint64, comm);
        }
        blocked_leave();
        return rc;
}

void gathered_finish(struct gathered *g) {
        free(g->numbers);
        free(g->counts);
        free(g->firsts);
}

void meet_say_waiting(uint32_t to, uint64_t serial) {
        (void) mpi.Send(&serial, sizeof(serial), mpi.byte, (int) to, TAG_WAITING, ft.meeting);
}

bool meet_receive_waiting(uint32_t from, uint64_t *ret_serial) {
        return receive_any(from, TAG_WAITING, ret_serial, sizeof(*ret_serial));
}

void meet_say_stuck(uint32_t to) {
        (void) mpi.Send(NULL, 0, mpi.byte, (int) to, TAG_STUCK, ft.meeting);
}

bool meet_receive_stuck(uint32_t from) {
        return receive_any(from, TAG_STUCK, NULL, 0);
}
