/* A pair of movers with directories to move from and to. */
#ifndef RM_TESTS_MOVER_BED_H
#define RM_TESTS_MOVER_BED_H

#include <stdbool.h>
#include <stdint.h>

#include "mover_pair.h"

#define TOKEN "a token of a move"

struct bed {
        char base[64];
        char *key_file;
        const char *second_key_file; /* of the receiver; NULL: none */
        char *procs; /* file that names the processes */
        char *images;
        char *out;
        char *tree_from;
        char *tree_to;
        bool postcopy; /* of the pre-copy */
        uint64_t deadline_usec; /* likewise */
        Rm__MoverCodec codec;
        unsigned accept_timeout_msec; /* of the receiver; 0: as rm-mover has it by default */
        uint64_t max_bytes; /* that the receiver keeps; 0: no limit */
        struct pair pair;
        int codes[2];
};

int bed_setup(void **state);
int bed_teardown(void **state);

/* The port it listens on. */
uint32_t say_receive(struct bed *b, const char *key_file, const char *token);
void say_send(struct bed *b, const char *key_file, const char *token, uint32_t port);
/* `procs`: pids, one a line, for the file that names them, in place of what it named before. */
void procs_write(const struct bed *b, const char *procs);
void say_precopy(struct bed *b, const char *procs, bool pages, uint64_t bytes_per_sec);
/* Another deadline. */
void say_expedite(struct bed *b, uint64_t deadline_usec);
void say_done(struct bed *b);

void expect(struct bed *b, int side, Rm__MoverEvent__BodyCase kind);
/* The side must fail with this in its text. */
void expect_failure(struct bed *b, int side, const char *text, int *ret_code, bool *ret_end_mark_sent);
/* Both have failed. */
void finish_failed(struct bed *b);

void connect_unstarted(struct bed *b, const char *environment);
void connect_pair(struct bed *b, const char *environment);

/* An image that has arrived. */
void image_check(const struct bed *b, const char *name, const void *data, size_t size_bytes);

#endif
