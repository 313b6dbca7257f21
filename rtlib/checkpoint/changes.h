/* The changes of a rank's arrays since it saved them last: found by the hashes of blocks, which all
 * have one size, or sizes of their own, by what changes (adaptive.h). Which of both is better
 * depends on the program and on its storage, and is measured where the user leaves it open. Pure,
 * but for the clock. */
#ifndef RM_RTLIB_CHECKPOINT_CHANGES_H
#define RM_RTLIB_CHECKPOINT_CHANGES_H

#include "rtlib/checkpoint/adaptive.h"
#include "rtlib/checkpoint/arrays.h"
#include "rtlib/checkpoint/options.h"
#include "rtlib/checkpoint/rank_file.h"

/* Adaptive blocks have a table with as many bytes as hashes of blocks of this size would have,
 * which are 6 % of the memory. Where what changes moves on, blocks of up to four times that size
 * cost least, and where it stays, those of up to any size have no more to win. bench/rtlib has what
 * others give. */
#define CHANGES_TABLE_BLOCK_BYTES 512U
#define CHANGES_LARGEST_BYTES (4 * CHANGES_TABLE_BLOCK_BYTES)
#define CHANGES_LEAST_BYTES 64U
/* The size of an entry of the index, with its hash. */
#define CHANGES_ENTRY_BYTES 40U
/* So many saves are measured: adaptive blocks first have to find their sizes. */
#define CHANGES_TRIAL_SAVES 10U
#define CHANGES_LEARNING_SAVES 5U

/* How increments did in so many saves, by either kind of blocks: what is to be written, and the
 * time that hashing takes. */
struct changes_trial {
        uint32_t saves;
        uint64_t fixed_bytes, fixed_nsec, adaptive_bytes, adaptive_nsec;
        uint64_t written_bytes, write_nsec; /* of all saves */
};

/* The knowledge of this rank of its last save. */
struct saved {
        uint64_t number; /* of the checkpoint; 0: there is none */
        uint8_t digest[PORTABLE_DIGEST_BYTES];
        uint32_t n_increments; /* since the last full one */
        int rank, size;
        uint32_t block_bytes; /* the largest, if `adaptive` */
        bool adaptive; /* blocks have sizes of their own */
        uint8_t layout[PORTABLE_DIGEST_BYTES]; /* arrays_digest() with counts */
        uint8_t *hashes; /* array after array, block after block; NULL if `adaptive` */
        struct adaptive *tables; /* of each array, where there are adaptive blocks, or they are tried */
        size_t n_tables;
        enum options_blocks chosen; /* OPTIONS_BLOCKS_AUTO: it is not known yet which is better */
        struct changes_trial trial;
};
void saved_finish(struct saved *saved);

struct changes {
        const struct arrays *arrays;
        int rank;
        const struct saved *before;
        bool increment; /* only what differs from `before` is written */
        bool trial; /* adaptive blocks are measured beside those of one size */
};

/* Prepares a table of as many blocks as such a table has for so many bytes. */
void changes_table_init(struct adaptive *table, uint64_t bytes);

/* Writes what is to be written, and sets hashes, tables and the trial of `now`, whose layout is
 * set. */
int changes_write(const struct changes *c, struct saved *now, struct rank_writer *w, struct rm_error *err);

/* The costs, on a rank that has measured enough: seconds that an increment takes with either kind
 * of blocks. False: it has not. */
bool changes_costs(const struct changes_trial *trial, double *ret_fixed_sec, double *ret_adaptive_sec);

#endif
