#include "daemon/pages/vmflags.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLAGS "VmFlags:"

enum {
        FILE_MAX_BYTES = 256 << 20, /* smaps of the 65530 mappings that a process may have by default takes 50 MB */
        FILE_FIRST_BYTES = 256 << 10,
        ACCESS_CHARS = 4, /* "rw-p" */
        NAME_MAX_BYTES = 64,
};

struct line {
        const char *text;
        size_t size;
};

struct mapping {
        uint64_t start;
        uint64_t end;
        bool of_file; /* it has a device or an inode */
        bool is_private;
        struct line name; /* "" for most that are anonymous */
};

int vmflags_read_file(int fd, char **ret, size_t *ret_size_bytes) {
        size_t capacity = FILE_FIRST_BYTES, size = 0;
        char *data = malloc(capacity), *larger;
        ssize_t n = 1;

        while (data && n != 0) {
                n = read(fd, data + size, capacity - size - 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 || capacity > FILE_MAX_BYTES)
                        break;
                size += (size_t) n;
                if (size + 1 < capacity)
                        continue;
                larger = realloc(data, capacity *= 2);
                if (!larger)
                        free(data);
                data = larger;
        }
        if (!data)
                return -ENOMEM;
        if (n != 0) {
                int r = n < 0 ? -errno : -EFBIG;

                free(data);
                return r;
        }
        data[size] = '\0';
        *ret = data;
        if (ret_size_bytes)
                *ret_size_bytes = size;
        return 0;
}

/* ---- lines ---- */

static bool next_line(const char **rest, struct line *ret) {
        const char *end = strchrnul(*rest, '\n');

        if (end == *rest && *end == '\0')
                return false;
        *ret = (struct line) { .text = *rest, .size = (size_t) (end - *rest) };
        *rest = *end ? end + 1 : end;
        return true;
}

static bool is_flags(const struct line *line) {
        return strncmp(line->text, FLAGS, strlen(FLAGS)) == 0;
}

/* A line of maps begins with an address. The other lines of smaps begin with capitals, and the
 * kernel writes a newline in the name of a file as "\012". */
static bool is_mapping(const struct line *line) {
        return line->size > 0 && strchr("0123456789abcdef", line->text[0]);
}

static bool same(const struct line *a, const struct line *b) {
        return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

static bool name_is(const struct line *name, const char *text) {
        return name->size == strlen(text) && memcmp(name->text, text, name->size) == 0;
}

/* "start-end rw-p offset major:minor inode   name" */
static int parse_mapping(const struct line *line, struct mapping *ret) {
        const char *end = line->text + line->size;
        uint64_t major, minor, inode;
        char *at;

        ret->start = strtoull(line->text, &at, 16);
        if (*at != '-')
                return -EBADMSG;
        ret->end = strtoull(at + 1, &at, 16);
        if (*at != ' ' || end - at < ACCESS_CHARS + 2 || at[ACCESS_CHARS + 1] != ' ')
                return -EBADMSG;
        ret->is_private = at[ACCESS_CHARS] == 'p';
        (void) strtoull(at + ACCESS_CHARS + 2, &at, 16);
        major = *at == ' ' ? strtoull(at, &at, 16) : 0;
        if (*at != ':')
                return -EBADMSG;
        minor = strtoull(at + 1, &at, 16);
        if (*at != ' ')
                return -EBADMSG;
        inode = strtoull(at, &at, 10);
        if (at > end || ret->start >= ret->end || (at < end && *at != ' '))
                return -EBADMSG;
        ret->of_file = major != 0 || minor != 0 || inode != 0;
        at += strspn(at, " ");
        ret->name = (struct line) { .text = at, .size = at < end ? (size_t) (end - at) : 0 };
        return 0;
}

/* "VmFlags: rd wr mr mw me ac " */
static bool has_flag(const struct line *flags, const char *flag) {
        const char *end = flags->text + flags->size;

        for (const char *at = flags->text + strlen(FLAGS); at + 2 < end; at += 3)
                if (at[0] == ' ' && at[1] == flag[0] && at[2] == flag[1])
                        return true;
        return false;
}

static bool has_one_of(const struct line *flags, const char *const *requested) {
        while (*requested && !has_flag(flags, *requested))
                requested++;
        return *requested != NULL;
}

size_t vmflags_reduce(char *smaps) {
        const char *rest = smaps;
        struct line line;
        size_t size = 0;

        while (next_line(&rest, &line)) {
                /* A line without its end would grow by that. */
                if (line.text[line.size] == '\0' || (!is_mapping(&line) && !is_flags(&line)))
                        continue;
                memmove(smaps + size, line.text, line.size + 1);
                size += line.size + 1;
        }
        smaps[size] = '\0';
        return size;
}

/* ---- what is restored lazily ---- */

/* CRIU (4.2) marks a page in its image as lazy, and passes over it in a lazy restore, when it takes
 * the mapping for private and anonymous, not locked, and not of huge pages; what it takes for lazy
 * and we do not costs time only, as the store has all private anonymous memory. The other way round
 * contents would be lost. So this names what may be: other names in brackets are the kernel's, and
 * for these CRIU has rules of its own. */
static bool is_lazy(const struct mapping *mapping, const struct line *flags) {
        /* Locked; of huge pages; droppable, not restored at all; of devices, not dumped at all. */
        static const char *const never[] = { "lo", "ht", "dp", "io", "pf", NULL };
        const struct line *name = &mapping->name;

        return mapping->is_private && !mapping->of_file &&
               (name->size == 0 || name_is(name, "[heap]") || name_is(name, "[stack]") ||
                strncmp(name->text, "[anon:", strlen("[anon:")) == 0) &&
               !has_one_of(flags, never);
}

struct ranges {
        struct vmflags_range *items;
        size_t n;
        size_t capacity;
};

static int add_range(struct ranges *ranges, const struct mapping *mapping) {
        struct vmflags_range *last = ranges->n > 0 ? &ranges->items[ranges->n - 1] : NULL;

        if (last && last->end > mapping->start)
                return -EBADMSG;
        if (last && last->end == mapping->start) {
                last->end = mapping->end;
                return 0;
        }
        if (ranges->n == ranges->capacity) {
                size_t capacity = ranges->capacity * 2 + 64;
                struct vmflags_range *items = realloc(ranges->items, capacity * sizeof(*items));

                if (!items)
                        return -ENOMEM;
                ranges->items = items;
                ranges->capacity = capacity;
        }
        ranges->items[ranges->n++] = (struct vmflags_range) { .start = mapping->start, .end = mapping->end };
        return 0;
}

/* A mapping and its flags. 0; 1: there are no more; or -EBADMSG. */
static int next_mapping(const char **rest, struct line *ret_line, struct mapping *ret, struct line *ret_flags) {
        if (!next_line(rest, ret_line))
                return 1;
        return is_mapping(ret_line) && next_line(rest, ret_flags) && is_flags(ret_flags) ? parse_mapping(ret_line, ret) : -EBADMSG;
}

/* CRIU marks a shadow stack as lazy, and a lazy restore leaves it empty. And a child that is forked
 * while memory is missing gets what its parent had there, also where it must get zeros; droppable
 * memory is so too (getrandom(3) has its state there), but is not lazy. */
static bool never_lazy(const struct line *flags, bool lazy) {
        return has_flag(flags, "ss") || (lazy && has_flag(flags, "wf"));
}

int vmflags_lazy(const char *reduced, struct vmflags_range **ret, size_t *ret_n) {
        struct ranges ranges = { 0 };
        struct line line, flags;
        struct mapping mapping;
        int r;

        while ((r = next_mapping(&reduced, &line, &mapping, &flags)) == 0) {
                bool lazy = is_lazy(&mapping, &flags);

                if (never_lazy(&flags, lazy))
                        r = -EOPNOTSUPP;
                else if (lazy)
                        r = add_range(&ranges, &mapping);
                if (r < 0)
                        break;
        }
        if (r < 0) {
                free(ranges.items);
                return r;
        }
        *ret = ranges.items;
        *ret_n = ranges.n;
        return 0;
}

/* ---- kept flags ---- */

/* Memory that was unmapped and mapped again at the same place, of the same size, reads the same in
 * maps, and would get the flags of the memory before. No contents are lost by that, unless it was
 * droppable: CRIU leaves out the contents of such memory. */
static bool may_be_trusted(const struct line *flags) {
        return !has_flag(flags, "dp");
}

/* Whether the mapping of a line of today is among what was kept, at `kept` or behind it. */
static bool find_flags(const char **kept, const struct line *today, uint64_t start, struct line *ret_flags) {
        struct line line;
        struct mapping mapping;

        while (next_mapping(kept, &line, &mapping, ret_flags) == 0) {
                if (mapping.start < start)
                        continue;
                return same(&line, today);
        }
        return false;
}

/* There is room: each mapping of today was found among what was kept, one behind the other. */
static size_t append(char *text, size_t size, const struct line *line) {
        memcpy(text + size, line->text, line->size);
        text[size + line->size] = '\n';
        return size + line->size + 1;
}

int vmflags_join(const char *kept, const char *maps, uint64_t locked_bytes, char **ret) {
        char *text = malloc(strlen(kept) + 2);
        struct line line, flags;
        struct mapping mapping;
        uint64_t locked = 0;
        size_t size = 0;
        int r = 0;

        if (!text)
                return -ENOMEM;
        while (next_line(&maps, &line)) {
                if (!is_mapping(&line) || parse_mapping(&line, &mapping) < 0 || !find_flags(&kept, &line, mapping.start, &flags) ||
                    !may_be_trusted(&flags)) {
                        r = -ESTALE;
                        break;
                }
                if (has_flag(&flags, "lo"))
                        locked += mapping.end - mapping.start;
                size = append(text, size, &line);
                size = append(text, size, &flags);
        }
        text[size] = '\0';
        /* mlock(2) of a whole mapping, which maps does not show. */
        if (r == 0 && (size == 0 || locked != locked_bytes))
                r = -ESTALE;
        if (r < 0) {
                free(text);
                return r;
        }
        *ret = text;
        return 0;
}

static int write_kept(int dir_fd, const char *name, const char *data, size_t size_bytes) {
        int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        int r = fd >= 0 && fchmod(fd, 0644) == 0 ? 0 : -errno;

        while (r == 0 && size_bytes > 0) {
                ssize_t n = write(fd, data, size_bytes);

                if (n < 0 && errno != EINTR)
                        r = -errno;
                if (n > 0) {
                        data += n;
                        size_bytes -= (size_t) n;
                }
        }
        if (fd >= 0)
                (void) close(fd);
        return r;
}

static int read_reduced(int proc_fd, char **ret, size_t *ret_size) {
        int fd = openat(proc_fd, "smaps", O_RDONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : vmflags_read_file(fd, ret, NULL);

        if (fd >= 0)
                (void) close(fd);
        if (r < 0)
                return r == -ENOENT ? -ESRCH : r;
        *ret_size = vmflags_reduce(*ret);
        return 0;
}

int vmflags_save(int proc_fd, int dir_fd, const char *name) {
        struct vmflags_range *ranges = NULL;
        char temporary[NAME_MAX_BYTES], *data = NULL;
        size_t size, n;
        int r;

        if (snprintf(temporary, sizeof(temporary), ".%s", name) >= (int) sizeof(temporary))
                return -ENAMETOOLONG;
        r = read_reduced(proc_fd, &data, &size);
        if (r < 0)
                return r;
        if (size == 0)
                r = -ESRCH;
        if (r == 0)
                r = vmflags_lazy(data, &ranges, &n);
        if (r == 0)
                r = write_kept(dir_fd, temporary, data, size);
        if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
                r = -errno;
        if (r < 0)
                (void) unlinkat(dir_fd, temporary, 0);
        free(ranges);
        free(data);
        return r;
}
