/*
 * The state of disks as they report it (SMART), by smartctl of smartmontools, which needs root's
 * rights. `args`, parted by blanks:
 *
 *      program=PATH    smartctl (default /usr/sbin/smartctl)
 *      DEVICE[=TYPE]   a disk, below /dev, and how smartctl is to reach it (its option --device);
 *                      none: those that smartctl finds
 *
 * A disk that smartctl finds and that tells nothing is passed over, since those of virtual machines
 * do not; one that is named must tell something.
 */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../owned.h"
#include "../run.h"
#include "descriptor.h"
#include "smart_report.h"

#define PROGRAM "/usr/sbin/smartctl"
#define PROGRAM_WORD "program="
#define DEVICES "/dev/"

enum {
        OUTPUT_MOST_BYTES = 1024 * 1024, /* a report has some tens of KiB */
        DISKS_MOST = 64,
        NAME_BYTES = 256,
};

struct smart {
        const struct rm_plugin_host *host;
        const struct rm_sensor_request *request;
        const char *program;
        unsigned n_disks;
        int reported; /* readings */
};

struct run {
        char *argv[8];
        char *text;
        size_t used;
        bool too_much;
};

/* ---- smartctl ---- */

static int fail(const struct smart *smart, int code, const char *what, const char *why) {
        return host_fail(smart->host, code, "%.200s: %.280s", what, why);
}

static void exec_smartctl(void *context) {
        const struct run *run = context;

        (void) execv(run->argv[0], run->argv);
}

static bool take_output(void *context, const char *text, size_t n_bytes) {
        struct run *run = context;
        char *longer = run->used + n_bytes <= OUTPUT_MOST_BYTES ? realloc(run->text, run->used + n_bytes) : NULL;

        if (!longer) {
                run->too_much = true;
                return false;
        }
        run->text = longer;
        memcpy(run->text + run->used, text, n_bytes);
        run->used += n_bytes;
        return true;
}

/* The exit status of smartctl has a bit for each fault of the disk; its output says the same.
 * `about` names the question in errors. */
static int ask_smartctl(const struct smart *smart, struct run *run, const char *about, json_t **ret_root) {
        static const struct run_ops ops = { .exec = exec_smartctl, .take = take_output };
        json_error_t error;
        int status = -1, r = run_program(&ops, run, &status);

        if (r < 0)
                return fail(smart, r, smart->program, "no process can be started");
        if (run->too_much)
                return fail(smart, -EFBIG, about, "killed: smartctl wrote more than 1 MiB");
        if (WIFSIGNALED(status))
                return fail(smart, -EIO, about, "smartctl was killed by a signal");
        *ret_root = json_loadb(run->text ? run->text : "", run->used, JSON_REJECT_DUPLICATES, &error);
        if (json_is_object(*ret_root))
                return 0;
        json_decref(*ret_root);
        *ret_root = NULL;
        return fail(smart, -EBADMSG, about, "what smartctl wrote is no report in JSON");
}

/* ---- one disk ---- */

/* "sda", or, where several disks are behind one device and the type has a number for that, "sda
 * megaraid,3". */
static void name_disk(const char *device, const char *type, char *ret_name) {
        bool numbered = type && strchr(type, ',');

        (void) snprintf(ret_name, NAME_BYTES, "%.200s%s%.40s", device + strlen(DEVICES), numbered ? " " : "", numbered ? type : "");
}

static int report_disk(struct smart *smart, const char *device, const char *type, bool named) {
        char option[NAME_BYTES], name[NAME_BYTES];
        struct run run = { .argv = { (char *) smart->program, (char *) "--json", (char *) "--health", (char *) "--attributes",
                                     (char *) device } };
        json_t *root = NULL;
        int r;

        if (strncmp(device, DEVICES, strlen(DEVICES)) != 0)
                return fail(smart, -EINVAL, device, "not a device below " DEVICES);
        if (++smart->n_disks > DISKS_MOST)
                return fail(smart, -E2BIG, device, "there are more than 64 disks: name those that count in smart_args");
        name_disk(device, type, name);
        if (type) {
                (void) snprintf(option, sizeof(option), "--device=%.200s", type);
                run.argv[5] = option;
        }
        r = ask_smartctl(smart, &run, device, &root);
        if (r == 0)
                r = smart_report(smart->request, name, root);
        if (r == 0 && named)
                r = fail(smart, -ENODATA, device, smart_report_error(root) ? smart_report_error(root) : "it tells nothing");
        else if (r > 0)
                smart->reported += r;
        json_decref(root);
        free(run.text);
        return r < 0 ? r : 0;
}

/* ---- all of them ---- */

/* smartctl takes every disk for one of SCSI at first. When it is told so, it does not look what is
 * behind that. */
static const char *type_found(const json_t *device) {
        const char *type = json_string_value(json_object_get(device, "type"));

        return type && strcmp(type, "scsi") != 0 ? type : NULL;
}

static int report_found(struct smart *smart) {
        struct run run = { .argv = { (char *) smart->program, (char *) "--json", (char *) "--scan" } };
        json_t *root = NULL, *device;
        int r = ask_smartctl(smart, &run, "smartctl --scan", &root);
        const json_t *devices = r == 0 ? json_object_get(root, "devices") : NULL;
        size_t i;

        json_array_foreach(devices, i, device) {
                const char *name = json_string_value(json_object_get(device, "name"));

                if (name && r == 0)
                        r = report_disk(smart, name, type_found(device), false);
        }
        if (r == 0 && smart->reported == 0)
                r = fail(smart, -ENODEV, smart->program,
                         "finds no disk that tells anything of itself (does it run as root? see smart_user)");
        json_decref(root);
        free(run.text);
        return r;
}

static int report_named(struct smart *smart, char *words) {
        char *saved = NULL;
        int r = 0;

        for (char *word = strtok_r(words, " \t", &saved); word && r == 0; word = strtok_r(NULL, " \t", &saved)) {
                char *type = strchr(word, '=');

                if (strncmp(word, PROGRAM_WORD, strlen(PROGRAM_WORD)) == 0)
                        continue;
                if (type)
                        *type++ = '\0';
                r = report_disk(smart, word, type, true);
        }
        return r;
}

/* Returns the path behind "program=" in `words`, a copy; NULL: no memory. */
static char *find_program(const char *words) {
        const char *at = words;

        while (*at) {
                size_t n;

                at += strspn(at, " \t");
                n = strcspn(at, " \t");
                if (strncmp(at, PROGRAM_WORD, strlen(PROGRAM_WORD)) == 0)
                        return strndup(at + strlen(PROGRAM_WORD), n - strlen(PROGRAM_WORD));
                at += n;
        }
        return strdup(PROGRAM);
}

static int smart_read(void *self, const struct rm_sensor_request *request) {
        char *words = strdup(request->args), *program = find_program(request->args);
        struct smart smart = { .host = self, .request = request, .program = program };
        int r = words && program ? owned_check(smart.host, "[sensors] smart_args", program) : -ENOMEM;

        if (r == 0)
                r = report_named(&smart, words);
        if (r == 0 && smart.n_disks == 0)
                r = report_found(&smart);
        free(words);
        free(program);
        return r;
}

SENSOR_PLUGIN("smart", "what disks tell of themselves", smart_read);
