/* Shared by fakemover.c, which has the rm-movers of moves and what all have in common, and
 * fakesaver.c, which has those of checkpoints. */
#ifndef RM_TESTS_SIM_FAKEMOVER_INTERNAL_H
#define RM_TESTS_SIM_FAKEMOVER_INTERNAL_H

#include <sys/queue.h>

#include "daemon/transfer/mover.h"
#include "tests/sim/capsules.h"
#include "tests/sim/fakemover.h"

#define TOKEN_BYTES 32U
/* How long things take, at most. */
#define START_MAX_USEC 5000U
#define MESSAGE_MAX_USEC 2000U
#define ROUND_MAX_USEC 400000U
#define ROUNDS_MAX 4U
#define TRANSFER_MAX_USEC 150000U
#define SCAN_USEC 200000U
#define SILENCE_MAX_USEC 10000000U /* as rm-mover's own */
#define ACCEPT_MAX_USEC 60000000U
/* The shares of failures, of a thousand. */
#define FAIL_PRECOPY 15U
#define FAIL_TRANSFER 20U
#define FAIL_VERIFY 10U
#define UNTRACKED 150U

enum role { ROLE_SEND, ROLE_RECEIVE, ROLE_SAVE, ROLE_LOAD, ROLE_VERIFY };

enum stage {
        STAGE_BEGIN,
        STAGE_CONNECT, /* receive: it listens */
        STAGE_READY, /* the two have a connection */
        STAGE_CAPTURE, /* send: it serves CRIU */
        STAGE_SEND, /* CRIU is done: what is left follows */
        STAGE_SENT, /* send: the end mark is written */
        STAGE_RECEIVED, /* all verified, and acknowledged */
        STAGE_STORE, /* save: it writes to the disk; verify: it reads */
        STAGE_FAILED,
};

/* A file that is to come, and where it goes. */
struct arriving {
        char *role, *path;
};

/* The store of a mover. */
struct stored {
        char *dir;
        uint64_t checkpoint; /* that is made, or sent */
        bool released; /* save: it tracks no more, and ends when all is stored */
        bool under_way; /* save: a checkpoint is */
        bool files_only; /* load */
        uint64_t *numbers; /* verify: what was there when it began */
        size_t n_numbers;
};

struct mover {
        struct movers *movers;
        struct host *host;
        uint64_t number, life;
        const struct mover_ops *ops;
        void *userdata;
        enum role role;
        bool send; /* as ROLE_SEND and ROLE_LOAD do */
        bool pages;
        enum stage stage;
        uint8_t token[TOKEN_BYTES];
        char *dir;
        unsigned rounds; /* to come */
        uint64_t since_usec; /* that it waits for the other one */
        struct image image;
        bool has_image;
        struct saved *saved; /* of a checkpoint; NULL: none has come, or is made */
        struct stored store;
        struct arriving *files;
        size_t n_files;
        char **have; /* load: names of files that the other end has */
        size_t n_have;
        uint64_t last_usec; /* when its last event is to arrive */
        LIST_ENTRY(mover) entry;
};

struct movers {
        struct timeline *timeline;
        uint64_t last_number;
        LIST_HEAD(, mover) list;
};

/* ---- fakemover.c ---- */

/* The mover tells rmd; NULL: that it has gone. */
void fakemover_report(struct mover *mover, const Rm__MoverEvent *event);
void fakemover_report_figures(struct mover *mover, Rm__MoverEvent__BodyCase kind);
void fakemover_fail(struct mover *mover, int code, const char *text, bool by_peer);
bool fakemover_chance(const struct mover *mover, unsigned per_mille);
uint64_t fakemover_draw(const struct mover *mover, uint64_t max_usec);
void fakemover_step_after(struct mover *mover, uint64_t delay_usec);
struct mover *fakemover_find(const struct movers *movers, uint64_t number);
struct mover *fakemover_peer(const struct mover *mover);
/* False: the two do not reach each other now; it is looked again, or given up after so long. */
bool fakemover_has_peer(struct mover *mover, struct mover *peer, uint64_t max_usec);
/* The first command of a mover names the peer that may come, and where the images lie ("":
 * nowhere). */
void fakemover_take(struct mover *mover, const ProtobufCBinaryData *token, const char *dir);

/* ---- fakesaver.c: save, load and verify ---- */

/* False: it is no command of theirs. */
bool fakesaver_command(struct mover *mover, const Rm__MoverCommand *command);
void fakesaver_step(struct mover *mover);
void fakesaver_finish(struct mover *mover);
/* Files come instead of images. */
void fakesaver_receive(struct mover *mover, const Rm__MoverReceive *receive);

#endif
