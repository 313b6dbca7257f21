/* Frames on every stream of ours: magic (4 bytes), payload length (4 bytes), both big endian, then
 * one protobuf message. */
#ifndef RM_COMMON_FRAME_H
#define RM_COMMON_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#define FRAME_HEADER_BYTES 8U

/* Each protocol has a magic of its own, so that a stray client is refused at its first bytes. */
#define FRAME_MAGIC_LOCAL 0x524d4c31U   /* "RML1" rmctl, rm-mpirun, RTLib with rmd */
#define FRAME_MAGIC_PEER 0x524d5031U    /* "RMP1" rmd with rmd */
#define FRAME_MAGIC_CAPSULE 0x524d4331U /* "RMC1" rmd with a capsule's init */
#define FRAME_MAGIC_MOVER 0x524d4d31U   /* "RMM1" rmd with its movers */
#define FRAME_MAGIC_IMAGE 0x524d4931U   /* "RMI1" the image stream */
#define FRAME_MAGIC_STORE 0x524d5331U   /* "RMS1" manifests of checkpoints */
#define FRAME_MAGIC_EXPORT 0x524d4531U  /* "RME1" exported checkpoints */

/* Largest payloads, refused above. */
#define FRAME_MAX_LOCAL_BYTES (4U << 20)
#define FRAME_MAX_PEER_BYTES (64U << 20)
#define FRAME_MAX_CAPSULE_BYTES (4U << 20)
#define FRAME_MAX_MOVER_BYTES (1U << 20)
#define FRAME_MAX_IMAGE_BYTES (4U << 20)

void frame_header_write(uint8_t out[static FRAME_HEADER_BYTES], uint32_t magic, uint32_t payload_bytes);

/* -EPROTO for a wrong magic, -EMSGSIZE for a payload over `max_bytes`. */
int frame_header_read(const uint8_t in[static FRAME_HEADER_BYTES], uint32_t magic, uint32_t max_bytes, uint32_t *ret_payload_bytes);

/* Blocking send of one message as one frame. 0 or negative errno. */
int frame_send(int fd, uint32_t magic, const ProtobufCMessage *message);

/* Blocking receive of one frame and decoding. The caller frees with
 * protobuf_c_message_free_unpacked(). -ENODATA: the stream ended between frames; -EPIPE: inside
 * one; -EBADMSG: not a message of `type`. */
int frame_receive(int fd, uint32_t magic, uint32_t max_bytes, const ProtobufCMessageDescriptor *type,
                  ProtobufCMessage **ret_message);

/* A whole frame in a malloc'ed buffer owned by the caller. */
uint8_t *frame_pack(uint32_t magic, const ProtobufCMessage *message, size_t *ret_size_bytes);

#endif
