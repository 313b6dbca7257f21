/*
 * Looks at files of users beside the loop: walking a path, opening and reading may take
 * indefinitely where a server or an automounter does not answer, and no deadline ends a system
 * call. So each user's files are looked at by a thread of their own, one after the other; a path
 * that hangs holds up the later questions about files of the same user, and nothing else. Threads
 * without work end.
 *
 * Used from one thread, that of the loop; all callbacks come from there.
 */
#ifndef RM_NODE_FILE_READER_H
#define RM_NODE_FILE_READER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <event2/event.h>

struct file_reader;
struct file_asking; /* one question under way */

struct file_reader_config {
        struct event_base *base;
        uint64_t late_usec; /* when on_late() is called; 0 = 5 s */
        /* How a file is opened; NULL = user_file_open(). For tests, which cannot make a file system
         * hang. */
        int (*open)(const char *path, uid_t uid, gid_t gid, int *ret_fd, struct stat *ret_stat);
};

/* All copied. */
struct file_question {
        const char *path;
        uid_t uid; /* with whose rights; USER_NONE = ours */
        gid_t gid;
        size_t max_bytes; /* one byte more than this is read at most; 0 = it is only looked at */
        int inotify_fd;   /* the watches are put there before the file is read; -1 = none */
        const char *directory;
        uint32_t directory_mask;
        uint32_t file_mask; /* only if it is a regular file that may be read */
};

struct file_answer {
        int error; /* 0, or why it could not be opened: a negative errno */
        struct stat st;
        int directory_wd, file_wd; /* -1: not watched */
        int read_error;
        char *data; /* belongs to the answer */
        size_t size_bytes;
        int after_error;
        struct stat after; /* once it was read */
};

struct file_asking_ops {
        void (*on_answer)(void *userdata,
                          struct file_answer *answer); /* the last that is heard of it; the answer is gone afterwards */
        void (*on_late)(void *userdata); /* once, when there is no answer yet; it may still come */
};

/* NULL config fields as said there. */
struct file_reader *file_reader_create(const struct file_reader_config *config);
/* Threads that hang are left behind; nothing of theirs is heard. Questions under way must have been
 * cancelled. NULL ok. */
void file_reader_destroy(struct file_reader *reader);

/* `ops` must outlive the question. Never calls back at once. */
struct file_asking *file_reader_ask(struct file_reader *reader, const struct file_question *question,
                                    const struct file_asking_ops *ops, void *userdata);
/* Nothing is heard of it any more. NULL ok. */
void file_asking_cancel(struct file_asking *asking);

#endif
