/* Notices to ranks that listen: datagrams to the socket of each (program.proto). None waits; one
 * that a rank does not take in time is lost. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_NOTICE_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/program.pb-c.h"

/* A Notice for a rank, whoever of the capsule's owner has its name. False: there is none, or it
 * does not read what it was sent before. */
bool notice_send(uint32_t rank, const void *data, size_t size);
/* Sends to the rank that `word` names, without a serial: the caller sends it again until the rank
 * answers. */
void notice_send_resize(const Program__Resize *word);
void notice_send_loss(const Program__Loss *word);

#endif
