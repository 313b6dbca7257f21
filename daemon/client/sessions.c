#include "daemon/client/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "common/util.h"

enum { SECRET_RANDOM_BYTES = (SESSIONS_SECRET_BYTES - 1) / 2 };

/* A token or a session. */
struct secret {
        char text[SESSIONS_SECRET_BYTES];
        bool session;
        uid_t uid;
        uint64_t end_usec;
        TAILQ_ENTRY(secret) entry;
};

struct sessions {
        TAILQ_HEAD(, secret) list; /* the oldest first */
        unsigned n_of_users; /* all but root's */
};

struct sessions *sessions_create(void) {
        struct sessions *sessions = xcalloc(1, sizeof(*sessions));

        TAILQ_INIT(&sessions->list);
        return sessions;
}

static void forget(struct sessions *sessions, struct secret *secret) {
        TAILQ_REMOVE(&sessions->list, secret, entry);
        sessions->n_of_users -= secret->uid != 0;
        explicit_bzero(secret, sizeof(*secret));
        free(secret);
}

void sessions_destroy(struct sessions *sessions) {
        if (!sessions)
                return;
        while (!TAILQ_EMPTY(&sessions->list))
                forget(sessions, TAILQ_FIRST(&sessions->list));
        free(sessions);
}

static void forget_ended(struct sessions *sessions, uint64_t now_usec) {
        struct secret *secret = TAILQ_FIRST(&sessions->list);

        while (secret) {
                struct secret *next = TAILQ_NEXT(secret, entry);

                if (now_usec >= secret->end_usec)
                        forget(sessions, secret);
                secret = next;
        }
}

/* Makes room for one more of this user's. */
static void forget_oldest(struct sessions *sessions, uid_t uid, bool session) {
        struct secret *secret, *oldest = NULL;
        unsigned n = 0;

        TAILQ_FOREACH (secret, &sessions->list, entry) {
                if (secret->uid != uid || secret->session != session)
                        continue;
                oldest = oldest ? oldest : secret;
                n++;
        }
        if (n >= SESSIONS_OF_USER)
                forget(sessions, oldest);
}

static int draw(char ret_text[static SESSIONS_SECRET_BYTES]) {
        unsigned char bytes[SECRET_RANDOM_BYTES];

        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t) sizeof(bytes))
                return -EIO;
        for (size_t i = 0; i < sizeof(bytes); i++)
                (void) snprintf(ret_text + 2 * i, 3, "%02x", bytes[i]);
        return 0;
}

static int add(struct sessions *sessions, uid_t uid, bool session, uint64_t end_usec, char ret_text[static SESSIONS_SECRET_BYTES]) {
        struct secret *secret;

        forget_oldest(sessions, uid, session);
        if (uid != 0 && sessions->n_of_users >= SESSIONS_ALL)
                return -EUSERS;
        secret = xcalloc(1, sizeof(*secret));
        if (draw(secret->text) < 0) {
                free(secret);
                return -EIO;
        }
        secret->session = session;
        secret->uid = uid;
        secret->end_usec = end_usec;
        TAILQ_INSERT_TAIL(&sessions->list, secret, entry);
        sessions->n_of_users += uid != 0;
        memcpy(ret_text, secret->text, sizeof(secret->text));
        return 0;
}

/* How long it takes does not tell how much of the text was right. */
static bool is_same(const char *secret, const char *text) {
        unsigned char differ = 0;

        if (strlen(text) != SESSIONS_SECRET_BYTES - 1)
                return false;
        for (size_t i = 0; i < SESSIONS_SECRET_BYTES - 1; i++)
                differ |= (unsigned char) (secret[i] ^ text[i]);
        return differ == 0;
}

static struct secret *find(struct sessions *sessions, bool session, const char *text, uint64_t now_usec) {
        struct secret *secret;

        forget_ended(sessions, now_usec);
        TAILQ_FOREACH (secret, &sessions->list, entry)
                if (secret->session == session && is_same(secret->text, text))
                        return secret;
        return NULL;
}

int sessions_offer(struct sessions *sessions, uid_t uid, uint64_t now_usec, char ret_token[static SESSIONS_SECRET_BYTES]) {
        forget_ended(sessions, now_usec);
        return add(sessions, uid, false, now_usec + SESSIONS_TOKEN_USEC, ret_token);
}

int sessions_begin(struct sessions *sessions, const char *token, uint64_t now_usec, char ret_value[static SESSIONS_SECRET_BYTES]) {
        struct secret *secret = find(sessions, false, token, now_usec);
        uid_t uid;

        if (!secret)
                return -EACCES;
        uid = secret->uid;
        forget(sessions, secret);
        return add(sessions, uid, true, now_usec + SESSIONS_USEC, ret_value);
}

int sessions_find(struct sessions *sessions, const char *value, uint64_t now_usec, uid_t *ret_uid, uint64_t *ret_end_usec) {
        const struct secret *secret = find(sessions, true, value, now_usec);

        if (!secret)
                return -EACCES;
        *ret_uid = secret->uid;
        *ret_end_usec = secret->end_usec;
        return 0;
}
