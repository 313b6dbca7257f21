#include "daemon/mover/pace.h"

uint64_t pace_wait_usec(struct pace *pace, uint64_t sent_bytes, uint64_t now_usec) {
        uint64_t bytes = sent_bytes - pace->sent_bytes;
        uint64_t owed;

        if (pace->bytes_per_sec == 0)
                return 0;
        if (pace->free_usec + PACE_BURST_USEC < now_usec)
                pace->free_usec = now_usec - PACE_BURST_USEC;
        owed = bytes % pace->bytes_per_sec * 1000000U + pace->rest;
        pace->free_usec += bytes / pace->bytes_per_sec * 1000000U + owed / pace->bytes_per_sec;
        pace->rest = owed % pace->bytes_per_sec;
        pace->sent_bytes = sent_bytes;
        return pace->free_usec > now_usec ? pace->free_usec - now_usec : 0;
}
