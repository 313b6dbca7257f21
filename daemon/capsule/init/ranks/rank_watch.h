/* Sees ranks end, in a job that goes on without those that are lost, tells rmd, and passes on to
 * the others which ones the job has lost (lost_ranks.h). Only while the payload runs: what ends
 * when it is moved, or with the capsule, is no loss. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_RANK_WATCH_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_RANK_WATCH_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/capsule.pb-c.h"
#include "proto/program.pb-c.h"

struct core;
struct rank_watch;

/* Creates the watch of the group's ranks. Never fails; the result lives as long as the process. */
struct rank_watch *rank_watch_create(struct core *core);

/* Takes an order of rmd. */
void rank_watch_order(struct rank_watch *watch, const Capsule__RankOrder *order);
/* Takes a word from process `pid` (0: not known), as the kernel says: a rank, or a program that
 * claims to be one. */
void rank_watch_receive(struct rank_watch *watch, pid_t pid, const Program__Loss *word);
/* Tells rmd all that is known. */
void rank_watch_resync(const struct rank_watch *watch);
/* The payload runs, or runs again. */
void rank_watch_scan(struct rank_watch *watch);

/* As lost_ranks_saved_state() and lost_ranks_set_saved_state(). */
Capsule__RankWatch *rank_watch_saved_state(const struct rank_watch *watch);
void rank_watch_set_saved_state(struct rank_watch *watch, const Capsule__RankWatch *saved_state);

/* Returns when rank_watch_timeout() is to be called; UINT64_MAX: never. */
uint64_t rank_watch_deadline(const struct rank_watch *watch);
void rank_watch_timeout(struct rank_watch *watch);

#endif
