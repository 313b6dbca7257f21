/* Messages between rmds, made in one line: PEER_MESSAGE(&body) is the PeerMessage of peer.proto
 * that has this body, which is borrowed. It lasts until the end of the block, as compound literals
 * do.
 *
 * cluster_send(cluster, node, &PEER_MESSAGE(&traffic));
 *
 * Each kind of body belongs to one kind of message; what belongs to none does not compile. */
#ifndef RM_PEERS_PEER_MESSAGE_H
#define RM_PEERS_PEER_MESSAGE_H

#include "proto/peer.pb-c.h"

#define PEER_MESSAGE(body_)                                                                                                        \
        ((Rm__PeerMessage) { .base = PROTOBUF_C_MESSAGE_INIT(&rm__peer_message__descriptor),                                       \
                             .body_case = PEER_MESSAGE_CASE(body_),                                                                \
                             .hello = (void *) (body_) })

#define PEER_MESSAGE_CASE(body_)                                                                                                   \
        _Generic(*(body_),                                                                                                         \
                Rm__PeerHello: RM__PEER_MESSAGE__BODY_HELLO,                                                                       \
                Rm__PeerLeader: RM__PEER_MESSAGE__BODY_LEADER,                                                                     \
                Rm__PeerIdle: RM__PEER_MESSAGE__BODY_IDLE,                                                                         \
                Rm__Heartbeat: RM__PEER_MESSAGE__BODY_HEARTBEAT,                                                                   \
                Rm__Follow: RM__PEER_MESSAGE__BODY_FOLLOW,                                                                         \
                Rm__Install: RM__PEER_MESSAGE__BODY_INSTALL,                                                                       \
                Rm__Append: RM__PEER_MESSAGE__BODY_APPEND,                                                                         \
                Rm__Propose: RM__PEER_MESSAGE__BODY_PROPOSE,                                                                       \
                Rm__ProposeReply: RM__PEER_MESSAGE__BODY_PROPOSE_REPLY,                                                            \
                Rm__ForwardRequest: RM__PEER_MESSAGE__BODY_FORWARD_REQUEST,                                                        \
                Rm__ForwardReply: RM__PEER_MESSAGE__BODY_FORWARD_REPLY,                                                            \
                Rm__ForwardClose: RM__PEER_MESSAGE__BODY_FORWARD_CLOSE,                                                            \
                Rm__AgentRun: RM__PEER_MESSAGE__BODY_AGENT_RUN,                                                                    \
                Rm__AgentDone: RM__PEER_MESSAGE__BODY_AGENT_DONE,                                                                  \
                Rm__AgentKill: RM__PEER_MESSAGE__BODY_AGENT_KILL,                                                                  \
                Rm__RanksEnd: RM__PEER_MESSAGE__BODY_RANKS_END,                                                                    \
                Rm__RanksEnded: RM__PEER_MESSAGE__BODY_RANKS_ENDED,                                                                \
                Rm__EndsGet: RM__PEER_MESSAGE__BODY_ENDS_GET,                                                                      \
                Rm__Ends: RM__PEER_MESSAGE__BODY_ENDS,                                                                             \
                Rm__MovePrepare: RM__PEER_MESSAGE__BODY_MOVE_PREPARE,                                                              \
                Rm__MovePrepared: RM__PEER_MESSAGE__BODY_MOVE_PREPARED,                                                            \
                Rm__MoveImageSent: RM__PEER_MESSAGE__BODY_MOVE_IMAGE_SENT,                                                         \
                Rm__MoveFailed: RM__PEER_MESSAGE__BODY_MOVE_FAILED,                                                                \
                Rm__MoveOpened: RM__PEER_MESSAGE__BODY_MOVE_OPENED,                                                                \
                Rm__PeerRefuse: RM__PEER_MESSAGE__BODY_REFUSE,                                                                     \
                Rm__Followed: RM__PEER_MESSAGE__BODY_FOLLOWED,                                                                     \
                Rm__Traffic: RM__PEER_MESSAGE__BODY_TRAFFIC,                                                                       \
                Rm__InstallPart: RM__PEER_MESSAGE__BODY_INSTALL_PART,                                                              \
                Rm__BodyGet: RM__PEER_MESSAGE__BODY_BODY_GET,                                                                      \
                Rm__BodyPart: RM__PEER_MESSAGE__BODY_BODY_PART,                                                                    \
                Rm__RaftPart: RM__PEER_MESSAGE__BODY_RAFT_PART,                                                                    \
                Rm__VoterInvite: RM__PEER_MESSAGE__BODY_VOTER_INVITE,                                                              \
                Rm__VoterReady: RM__PEER_MESSAGE__BODY_VOTER_READY,                                                                \
                Rm__VoterRetire: RM__PEER_MESSAGE__BODY_VOTER_RETIRE,                                                              \
                Rm__NodeMemory: RM__PEER_MESSAGE__BODY_NODE_MEMORY,                                                                \
                Rm__CoreShare: RM__PEER_MESSAGE__BODY_CORE_SHARE,                                                                  \
                Rm__CheckpointAt: RM__PEER_MESSAGE__BODY_CHECKPOINT_AT,                                                            \
                Rm__CheckpointGo: RM__PEER_MESSAGE__BODY_CHECKPOINT_GO,                                                            \
                Rm__CopyOffer: RM__PEER_MESSAGE__BODY_COPY_OFFER,                                                                  \
                Rm__CopyAccept: RM__PEER_MESSAGE__BODY_COPY_ACCEPT,                                                                \
                Rm__RestoreAsk: RM__PEER_MESSAGE__BODY_RESTORE_ASK,                                                                \
                Rm__RestoreSavedState: RM__PEER_MESSAGE__BODY_RESTORE_SAVED_STATE)

#endif
