#include "rtlib/ft/meet.h"

#include "common/util.h"
#include "rtlib/ft/ft.h"

enum { TAG_JOIN = 1, TAG_GO = 2 };

struct word {
        uint32_t losses, try_number;
};

/* Of the lowest rank that lives: what each of the others has said last. */
static struct {
        struct word *joined; /* by rank; without losses: nothing */
        struct word said;    /* by this one, to `said_to` */
        uint32_t said_to;
} meeting;

static void say(uint32_t to, int tag, struct word word) {
        /* So small that it goes without the other's help. One that is dead is known to be before long. */
        (void) mpi.Send(&word, sizeof(word), mpi.byte, (int) to, tag, ft.meeting);
}

static bool hear(uint32_t from, int tag, struct word *ret) {
        int there = 0;

        if (mpi.Iprobe((int) from, tag, ft.meeting, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS || !there)
                return false;
        return mpi.Recv(ret, sizeof(*ret), mpi.byte, (int) from, tag, ft.meeting, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static bool all_joined(uint32_t losses, struct word *ret) {
        bool all = true;

        for (uint32_t i = 0; i < (uint32_t) ft.size; i++) {
                if ((int) i == ft.rank || losses_has(&ft.losses, i, losses))
                        continue;
                while (hear(i, TAG_JOIN, &meeting.joined[i]))
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
                if ((int) i != ft.rank && !losses_has(&ft.losses, i, losses)) {
                        meeting.joined[i] = (struct word) { 0 };
                        say(i, TAG_GO, *ret);
                }
        return true;
}

static bool follow(uint32_t leader, uint32_t losses, uint32_t try_number, struct word *ret) {
        const struct word join = { losses, try_number };

        /* Once: one that came late would count as an answer to the next question. */
        if (meeting.said_to != leader || meeting.said.losses != losses || meeting.said.try_number != try_number) {
                meeting.said = join;
                meeting.said_to = leader;
                say(leader, TAG_JOIN, join);
        }
        return hear(leader, TAG_GO, ret);
}

uint32_t meet(uint32_t *try_number) {
        struct word word;
        uint32_t known = 0;
        bool all = false;

        for (unsigned turns = 0; !all;) {
                uint32_t losses = ft.losses.count, leader = losses_first_living(&ft.losses, losses);

                if (losses != known)
                        turns = 0;
                known = losses;
                all = (int) leader == ft.rank ? lead(losses, *try_number, &word) : follow(leader, losses, *try_number, &word);
                if (!all)
                        wait_pause(&turns);
        }
        *try_number = word.try_number;
        return word.losses;
}
