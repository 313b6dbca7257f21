#include "launcher/client/attachment_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

/* A signal that is to end the job and that is not confirmed becomes a cancel, which the log can
 * take for a job that is frozen; then we go. */
#define CANCEL_USEC (10U * 1000000U)
#define LEAVE_USEC (20U * 1000000U)

static void put_control(struct attachment *a, struct control *control) {
        Rm__SignalJob signal_job = RM__SIGNAL_JOB__INIT;
        Rm__CancelJob cancel_job = RM__CANCEL_JOB__INIT;

        if (control->cancel) {
                cancel_job.job = a->config.job;
                cancel_job.signal = (uint32_t) control->signo;
                control->id = attachment_put(a, &cancel_job.base);
        } else {
                signal_job.job = a->config.job;
                signal_job.signal = (uint32_t) control->signo;
                control->id = attachment_put(a, &signal_job.base);
        }
        control->at_usec = ATTACHMENT_NEVER_USEC;
}

static void drop_control(struct attachment *a, size_t i) {
        memmove(&a->controls[i], &a->controls[i + 1], (a->n_controls - i - 1) * sizeof(a->controls[0]));
        a->n_controls--;
}

void controls_put(struct attachment *a, uint64_t now) {
        for (size_t i = a->n_controls; a->connected && i-- > 0;)
                if (now >= a->controls[i].at_usec && a->controls[i].undone)
                        drop_control(a, i);
        for (size_t i = 0; a->connected && i < a->n_controls; i++)
                if (now >= a->controls[i].at_usec)
                        put_control(a, &a->controls[i]);
}

/* The signal is on its way, or has arrived. */
static bool is_sent(const struct attachment *a, const struct control *control) {
        return a->connected && control->at_usec == ATTACHMENT_NEVER_USEC;
}

/* SIGCONT discards a stop that has not arrived, and a stop discards SIGCONT, as in the kernel. */
static void undo_opposite(struct attachment *a, int signo) {
        int opposite = signo == SIGCONT ? SIGTSTP : signo == SIGTSTP ? SIGCONT : 0;

        for (size_t i = a->n_controls; opposite && i-- > 0;)
                if (a->controls[i].signo == opposite && is_sent(a, &a->controls[i]))
                        a->controls[i].undone = true;
                else if (a->controls[i].signo == opposite)
                        drop_control(a, i);
}

/* A signal that waits is the same one if it comes again. */
static bool waits_already(const struct attachment *a, bool cancel, bool interrupt, int signo) {
        for (size_t i = 0; i < a->n_controls; i++) {
                const struct control *c = &a->controls[i];

                if (c->cancel == cancel && c->interrupt == interrupt && c->signo == signo && !is_sent(a, c))
                        return true;
        }
        return false;
}

void controls_add(struct attachment *a, bool cancel, bool interrupt, int signo) {
        struct control *control;

        undo_opposite(a, signo);
        if (a->n_controls == CONTROLS_MAX || waits_already(a, cancel, interrupt, signo))
                return;
        control = &a->controls[a->n_controls++];
        *control = (struct control) { .at_usec = ATTACHMENT_NEVER_USEC, .cancel = cancel, .interrupt = interrupt, .signo = signo };
        if (a->connected)
                put_control(a, control);
}

static size_t find(const struct attachment *a, uint32_t id) {
        size_t i = 0;

        while (i < a->n_controls && a->controls[i].id != id)
                i++;
        return i;
}

bool controls_refused(struct attachment *a, uint32_t id, const Rm__Error *error, uint64_t now) {
        size_t i = find(a, id);

        if (i == a->n_controls)
                return false;
        if (error->code == EPERM || error->code == EACCES || error->code == EINVAL || error->code == ESRCH) {
                if (error->code != ESRCH)
                        attachment_say(a, "%s", error->text);
                drop_control(a, i);
        } else if (a->controls[i].undone) {
                drop_control(a, i);
        } else {
                /* The job is moving, or no leader can be reached: a request for its end is the last
                 * that is given up. */
                a->controls[i].at_usec = now + ATTACHMENT_RETRY_USEC;
        }
        return true;
}

void controls_confirmed(struct attachment *a, uint32_t id) {
        size_t i = find(a, id);

        if (i < a->n_controls)
                drop_control(a, i);
}

static void interrupt(struct attachment *a, int signo, uint64_t now) {
        if (a->interrupts++ == 0)
                a->interrupt_usec = now;
        a->cancel_signo = signo;
        if (a->interrupts == 1) {
                controls_add(a, !attachment_runs(a), true, signo);
                if (!a->connected)
                        attachment_say(a, "no connection to rmd: job %" PRIu64 " gets the signal when it is back", a->config.job);
                return;
        }
        if (!a->connected || a->interrupts > 2) {
                attachment_leave(a, 128 + signo);
                return;
        }
        attachment_say(a, "killing job %" PRIu64 " (again to detach from it)", a->config.job);
        controls_add(a, true, true, SIGKILL);
}

/* The index of the interrupt that is not confirmed, or n_controls. */
static size_t unconfirmed_interrupt(const struct attachment *a) {
        size_t i = 0;

        while (i < a->n_controls && !a->controls[i].interrupt)
                i++;
        return i;
}

bool controls_insisting(const struct attachment *a) {
        return unconfirmed_interrupt(a) < a->n_controls;
}

void controls_insist(struct attachment *a, uint64_t now) {
        struct control *control = &a->controls[unconfirmed_interrupt(a)];

        if (control == &a->controls[a->n_controls] || now < a->interrupt_usec + CANCEL_USEC)
                return;
        if (now >= a->interrupt_usec + LEAVE_USEC) {
                attachment_say(a, "job %" PRIu64 " did not get the signal within %u s: neither its node nor a leader answers",
                               a->config.job, LEAVE_USEC / 1000000U);
                attachment_leave(a, 128 + a->cancel_signo);
        } else if (!control->cancel) {
                control->cancel = true;
                if (a->connected)
                        put_control(a, control);
        }
}

uint64_t controls_due_usec(const struct attachment *a) {
        size_t i = unconfirmed_interrupt(a);
        uint64_t due = i == a->n_controls      ? ATTACHMENT_NEVER_USEC
                       : a->controls[i].cancel ? a->interrupt_usec + LEAVE_USEC
                                               : a->interrupt_usec + CANCEL_USEC;

        for (i = 0; a->connected && i < a->n_controls; i++)
                if (a->controls[i].at_usec < due)
                        due = a->controls[i].at_usec;
        return due;
}

bool attachment_stop_waits(const struct attachment *a) {
        for (size_t i = 0; i < a->n_controls; i++)
                if (a->connected && !a->done && a->controls[i].signo == SIGTSTP && !a->controls[i].undone)
                        return true;
        return false;
}

void attachment_signal(struct attachment *a, int signo, uint64_t now) {
        if (a->done)
                return;
        if (a->ending && (signo == SIGINT || signo == SIGTERM))
                attachment_end(a);
        else if (signo == SIGINT || signo == SIGTERM)
                interrupt(a, signo, now);
        else if (attachment_runs(a))
                controls_add(a, false, false, signo);
        else if (signo == SIGHUP || signo == SIGQUIT)
                controls_add(a, true, false, signo);
}
