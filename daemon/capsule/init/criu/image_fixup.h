/* Corrects what CRIU dumps in a way that it cannot restore, or may not. Pure but for
 * image_fixup(). */
#ifndef RM_DAEMON_CAPSULE_INIT_CRIU_IMAGE_FIXUP_H
#define RM_DAEMON_CAPSULE_INIT_CRIU_IMAGE_FIXUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct image_identity_scope;
struct rm_error;

/* A periodic timerfd that has expired and was not read yet is dumped with 0 left, and 0 disarms it
 * for ever: leave it a nanosecond instead. One at a point in time is dumped with the time that is
 * left as well; CRIU adds the whole seconds of the clock to that, so it would go off up to a second
 * early, and once more if it had already. Of clocks that nobody sets, and that stand still in the
 * freeze, the time that is left is what counts. In a file of images of open files, in place.
 * Returns how many; what is no such file is left alone. */
unsigned image_fixup_timerfds(uint8_t *image, size_t size_bytes);

/* CRIU refuses files whose size or mode is another than when they were dumped, as of a log to which
 * others write meanwhile: the sizes and modes go, but those of the `n_kept` files of these names.
 * As above. */
unsigned image_fixup_sizes(uint8_t *image, size_t size_bytes, const char *const *kept, size_t n_kept);

/* Looks at, and does not correct, the paths that Unix sockets are bound to, and that they still
 * have, which CRIU makes anew; the image stays as it is. As above. */
typedef void (*image_fixup_socket_fn)(void *arg, const char *path);
unsigned image_fixup_sockets(uint8_t *image, size_t size_bytes, image_fixup_socket_fn fn, void *arg);

/* Can this system call be begun again when it was interrupted, as far as its arguments tell? Its
 * time limit then counts anew. */
bool image_fixup_can_restart(long number);

/* The freezer interrupts every system call. The kernel goes on with them by itself, but a few it
 * cannot without what CRIU does not save, or does not even where nothing was moved; a thread in one
 * of these would find it interrupted although there was no signal. In the image of a thread, in
 * place: the call is made again, unless a signal waits that shall interrupt it. `again` is the
 * call's number if the thread was in restart_syscall(), which does not tell; -1: not known. Returns
 * whether it was such a call; what is no such file is left alone. */
bool image_fixup_call(uint8_t *image, size_t size_bytes, long again);

/* The number for `again`, of a thread as the capsule counts; -1: not known. */
typedef long (*image_fixup_again_fn)(void *arg, pid_t tid);

/* Does all of the above in the images of this directory before they are restored. Sizes of programs
 * and libraries stay unless `all_sizes`: a node may have others. The images are also checked and
 * changed as image_identity.h says. 0, -EPERM or -EBADMSG of that, or another error; then nothing
 * of this directory may be restored. */
int image_fixup(int images_fd, bool all_sizes, const struct image_identity_scope *scope, image_fixup_again_fn again, void *arg,
                struct rm_error *error);

#endif
