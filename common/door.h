/* Of the door: where a program in a capsule can speak to PID 1 (proto/door.proto). */
#ifndef RM_COMMON_DOOR_H
#define RM_COMMON_DOOR_H

#define DOOR_PATH "/run/rm/door"

enum {
        DOOR_MESSAGE_BYTES = 256, /* at most */
};

#endif
