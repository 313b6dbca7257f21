/* The contents of an exported checkpoint (proto/export.proto), inside its seal. */
#ifndef RM_MOVER_EXPORT_STREAM_H
#define RM_MOVER_EXPORT_STREAM_H

#include "daemon/mover/seal.h"
#include "proto/export.pb-c.h"

#define EXPORT_MESSAGE_MAX_BYTES (1U << 20) /* a head goes between rmd and rm-mover in one frame */

/* -EFBIG: over EXPORT_MESSAGE_MAX_BYTES. */
int export_write_message(struct seal *s, const ProtobufCMessage *message, struct rm_error *err);
/* The caller frees with protobuf_c_message_free_unpacked(). -EBADMSG: it is none of that type. */
int export_read_message(struct seal *s, const ProtobufCMessageDescriptor *type, ProtobufCMessage **ret, struct rm_error *err);

/* Is it one job with one checkpoint, of parts that begin with that of mpirun? */
bool export_head_valid(const Rm__ExportHead *head);

#endif
