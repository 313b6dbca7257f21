/* The readings of the sensors from recorded trees of /sys and /proc, through rm-plugin-host. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "common/util.h"
#include "daemon/node/child_run.h"
#include "daemon/sensor/answer.h"

#define TIMEOUT_USEC 60000000

struct fixture {
        struct event_base *base;
        char dir[64], *program;
        const char *user;
        uint64_t timeout_usec;
        int code;
        char text[RM_ERROR_TEXT_BYTES];
        struct answer answer;
};

static int set_up(void **state) {
        struct fixture *f = xcalloc(1, sizeof(*f));

        f->base = event_base_new();
        (void) strcpy(f->dir, "/tmp/rmd-sensors-XXXXXX");
        assert_non_null(mkdtemp(f->dir));
        assert_int_equal(chmod(f->dir, 0755), 0); /* nobody is to get there */
        f->program = xasprintf("%s/program", f->dir);
        f->timeout_usec = TIMEOUT_USEC;
        f->user = "root"; /* so that it can read the sources, wherever they are */
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        answer_finish(&f->answer);
        (void) unlink(f->program);
        assert_int_equal(rmdir(f->dir), 0);
        event_base_free(f->base);
        free(f->program);
        free(f);
        return 0;
}

static void on_done(void *context, const struct child_end *end) {
        struct fixture *f = context;
        struct rm_error err = { 0 };

        f->code = child_end_error(end, "host", f->timeout_usec, &err);
        if (f->code == 0)
                f->code = answer_parse(end->output, end->output_bytes, &f->answer, &err);
        (void) snprintf(f->text, sizeof(f->text), "%s", err.text);
}

/* `tree`: below tests/data/sensors; NULL: the real one. */
static void ask(struct fixture *f, const char *plugin, const char *tree, const char *args) {
        cleanup_free char *root = tree ? xasprintf("%s/sensors/%s", getenv("TEST_DATA_DIR"), tree) : xstrdup("");
        char *const argv[] = { (char *) "host",
                               (char *) "--kind",
                               (char *) "sensor",
                               (char *) "--plugin",
                               (char *) plugin,
                               (char *) "--dir",
                               getenv("TEST_SENSOR_DIR"),
                               (char *) "--root",
                               root,
                               (char *) "--args",
                               (char *) args,
                               (char *) "--user",
                               (char *) f->user,
                               NULL };
        const struct child_run_spec spec = { .program = getenv("TEST_SENSOR_HOST"),
                                             .argv = argv,
                                             .timeout_usec = f->timeout_usec,
                                             .output_most_bytes = ANSWER_MOST_BYTES,
                                             .done = on_done,
                                             .context = f };
        struct child_run *run;

        answer_finish(&f->answer);
        f->code = 1;
        assert_int_equal(child_run_start(f->base, &spec, &run), 0);
        (void) event_base_dispatch(f->base);
        assert_true(f->code <= 0);
}

static void fails(struct fixture *f, const char *plugin, const char *tree, const char *args, const char *why) {
        ask(f, plugin, tree, args);
        if (f->code == 0 || !strstr(f->text, why))
                fail_msg("'%s' does not tell '%s'", f->text, why);
}

static const struct answer_reading *reported(const struct fixture *f, const char *name) {
        if (f->code < 0)
                fail_msg("%s", f->text);
        for (size_t i = 0; i < f->answer.n_readings; i++)
                if (strcmp(f->answer.readings[i].name, name) == 0)
                        return &f->answer.readings[i];
        fail_msg("no reading '%s'", name);
        return NULL;
}

static void is(const struct fixture *f, const char *name, double value, double low, double high) {
        const struct answer_reading *r = reported(f, name);

        if (r->value != value || (isnan(low) ? !isnan(r->low) : r->low != low) || (isnan(high) ? !isnan(r->high) : r->high != high))
                fail_msg("%s: %g, thresholds %g and %g", name, r->value, r->low, r->high);
}

/* A chip that sleeps, thresholds that were never set and a broken wire are passed over. */
static void test_hwmon(void **state) {
        struct fixture *f = *state;

        ask(f, "hwmon", "server", "");
        is(f, "coretemp0 temp1 Package id 0", 61, 80, 90);
        is(f, "coretemp0 temp2 Core 0", 58, 80, 90);
        is(f, "coretemp1 temp1 Package id 1", 63.5, 80, 90);
        is(f, "nct67792 temp1", 35, NAN, NAN);
        assert_int_equal(f->answer.n_readings, 4);
        assert_string_equal(f->answer.readings[0].unit, "C");
        assert_int_equal(f->answer.readings[0].at_low, RM_SENSOR_WARN);
        assert_int_equal(f->answer.readings[0].at_high, RM_SENSOR_CRITICAL);
        ask(f, "hwmon", "server", "k10temp nct6779");
        assert_int_equal(f->answer.n_readings, 1);
        ask(f, "hwmon", "failing", "");
        is(f, "k10temp0 temp1 Tctl", 96.25, 70, 95);
        fails(f, "hwmon", "virtual", "", "no temperatures in /sys/class/hwmon");
        fails(f, "hwmon", "no-such-tree", "", "no temperatures in /sys/class/hwmon");
        fails(f, "hwmon", "server", "none-such", "no temperatures");
}

static void test_edac(void **state) {
        struct fixture *f = *state;

        ask(f, "edac", "server", "");
        is(f, "mc0 corrected", 12, 10, 1000);
        is(f, "mc1 corrected", 0, 10, 1000);
        is(f, "mc0 uncorrected", 0, NAN, 1);
        assert_true(reported(f, "mc0 corrected")->counter && !reported(f, "mc0 corrected")->fixed);
        assert_true(reported(f, "mc0 uncorrected")->fixed && !reported(f, "mc0 uncorrected")->counter);
        ask(f, "edac", "failing", "");
        is(f, "mc0 uncorrected", 1, NAN, 1);
        assert_int_equal(reported(f, "mc0 uncorrected")->at_high, RM_SENSOR_CRITICAL);
        fails(f, "edac", "virtual", "", "no memory controller");
}

static void test_psi(void **state) {
        struct fixture *f = *state;

        ask(f, "psi", "server", "");
        is(f, "memory", 12.34, 20, NAN);
        assert_int_equal(f->answer.n_readings, 1);
        ask(f, "psi", "server", " io\tcpu ");
        is(f, "io", 2, NAN, NAN);
        is(f, "cpu", 87.81, NAN, NAN);
        fails(f, "psi", "server", "memory network", "psi_args names memory, io or cpu, not network");
        fails(f, "psi", "failing", "", "not as expected: /proc/pressure/memory");
        fails(f, "psi", "virtual", "", "this kernel does not tell it: /proc/pressure/memory");
}

static void test_disk(void **state) {
        struct fixture *f = *state;
        cleanup_free char *args = xasprintf("/ %s", f->dir);

        ask(f, "disk", NULL, args);
        assert_in_range((unsigned) reported(f, "/")->value, 0, 100);
        (void) reported(f, f->dir);
        assert_int_equal(f->answer.n_readings, 2);
        fails(f, "disk", NULL, "/none-such", "/none-such: No such file");
        fails(f, "disk", NULL, "tmp", "tmp: Invalid argument");
}

/* ---- the administrator's program ---- */

static void write_program(const struct fixture *f, const char *body) {
        cleanup_free char *text = xasprintf("#!/bin/sh\n%s\n", body);

        assert_int_equal(write_file_atomic(f->program, text, strlen(text), 0755, false), 0);
}

static void says(struct fixture *f, const char *body, enum rm_sensor_status status, const char *text) {
        cleanup_free char *args = xasprintf("%s  -w 5 now", f->program);

        write_program(f, body);
        ask(f, "program", NULL, args);
        if (f->code < 0)
                fail_msg("%s", f->text);
        assert_true(f->answer.evaluates);
        assert_int_equal(f->answer.status, status);
        assert_string_equal(f->answer.text, text);
}

static void test_program(void **state) {
        struct fixture *f = *state;

        says(f, "echo \"$# $1 $2 $3\"; echo second line", RM_SENSOR_OK, "3 -w 5 now");
        says(f, "echo 'FAN WARNING: 300 rpm | fan=300;500;200'; exit 1", RM_SENSOR_WARN, "FAN WARNING: 300 rpm");
        says(f, "echo not this >&2; printf 'no \\033[31m newline'; exit 2", RM_SENSOR_CRITICAL, "no \\x1b[31m newline");
        says(f, "sleep 60 & exit 0", RM_SENSOR_OK, ""); /* which has the output open */
}

static void test_program_that_fails(void **state) {
        struct fixture *f = *state;

        write_program(f, "echo no controller; exit 3");
        fails(f, "program", NULL, f->program, "/program: exit status 3: no controller");
        write_program(f, "kill -KILL $$");
        fails(f, "program", NULL, f->program, "/program: killed by signal 9");
        write_program(f, "exec cat /dev/zero");
        fails(f, "program", NULL, f->program, "killed: it wrote more than 64 KiB");
        assert_int_equal(chmod(f->program, 0777), 0);
        fails(f, "program", NULL, f->program, "not a file of root's that nobody else can write");
        assert_int_equal(unlink(f->program), 0);
        fails(f, "program", NULL, f->program, "No such file");
        fails(f, "program", NULL, "program", "[sensors] program_args 'program' is not an absolute path");
        fails(f, "program", NULL, "", "names no program");
}

static void test_program_is_nobodys(void **state) {
        struct fixture *f = *state;

        if (geteuid() != 0)
                skip();
        f->user = "nobody";
        if (access("/etc/shadow", R_OK) == 0)
                says(f, "cat /etc/shadow >/dev/null 2>&1 && exit 1; id -u; exit 0", RM_SENSOR_OK, "65534");
        f->user = "none-such-user";
        fails(f, "program", NULL, f->program, "no user 'none-such-user'");
}

/* ---- disks ---- */

/* A smartctl that has these disks in this state. */
static char *fake_smartctl(const struct fixture *f, const char *disks) {
        cleanup_free char *body = xasprintf("cd %s/sensors/smart\n"
                                            "case \"$*\" in\n"
                                            "'--json --scan') cat scan.json ;;\n"
                                            "'--json --health --attributes /dev/sda') cat %s-sda.json; exit 24 ;;\n"
                                            "'--json --health --attributes /dev/sdb') cat %s-sdb.json; exit 4 ;;\n"
                                            "'--json --health --attributes /dev/nvme0'*) cat %s-nvme0.json ;;\n"
                                            "'--json --health --attributes /dev/bus/0 --device=megaraid,3') cat %s-bus.json ;;\n"
                                            "*) echo \"what is $*?\" ;;\n"
                                            "esac",
                                            getenv("TEST_DATA_DIR"), disks, disks, disks, disks);

        write_program(f, body);
        return xasprintf("program=%s", f->program);
}

static void test_smart_healthy(void **state) {
        struct fixture *f = *state;
        cleanup_free char *args = fake_smartctl(f, "healthy");

        ask(f, "smart", NULL, args);
        is(f, "sda says that it fails", 0, NAN, 1);
        is(f, "sda temperature", 34, 70, NAN);
        is(f, "sda reallocated", 3, 50, 1000); /* and not what the vendor has in the upper bytes */
        is(f, "sda pending", 0, 1, 100);
        is(f, "nvme0 says that it fails", 0, NAN, 1);
        is(f, "nvme0 temperature", 38, 70, NAN);
        is(f, "nvme0 worn", 2, 95, NAN);
        is(f, "nvme0 spare used", 0, NAN, 91);
        is(f, "nvme0 media errors", 0, 1, 100);
        is(f, "bus/0 megaraid,3 temperature", 29, 70, NAN);
        is(f, "bus/0 megaraid,3 grown defects", 2, 50, 1000);
        assert_int_equal(f->answer.n_readings, 12); /* sdb is passed over */
        assert_true(reported(f, "nvme0 media errors")->counter);
        assert_false(reported(f, "sda reallocated")->counter);
        /* smart_low and smart_high are for temperatures. */
        for (size_t i = 0; i < f->answer.n_readings; i++)
                assert_int_equal(f->answer.readings[i].fixed, strstr(f->answer.readings[i].name, "temperature") == NULL);
}

static void test_smart_failing(void **state) {
        struct fixture *f = *state;
        cleanup_free char *args = fake_smartctl(f, "failing");
        cleanup_free char *named = xasprintf("/dev/nvme0 %s\t/dev/bus/0=megaraid,3", args);

        ask(f, "smart", NULL, args);
        is(f, "sda says that it fails", 1, NAN, 1);
        assert_int_equal(reported(f, "sda says that it fails")->at_high, RM_SENSOR_CRITICAL);
        is(f, "sda reallocated", 1734, 50, 1000);
        assert_int_equal(reported(f, "sda reallocated")->at_low, RM_SENSOR_WARN);
        assert_int_equal(reported(f, "sda reallocated")->at_high, RM_SENSOR_FAILING);
        is(f, "sda pending", 12, 1, 100);
        ask(f, "smart", NULL, named);
        is(f, "nvme0 temperature", 77, 75, 80);
        is(f, "nvme0 worn", 104, 95, NAN);
        is(f, "nvme0 spare used", 93, NAN, 91);
        assert_int_equal(reported(f, "nvme0 spare used")->at_high, RM_SENSOR_FAILING);
        is(f, "nvme0 media errors", 31, 1, 100);
        is(f, "bus/0 megaraid,3 grown defects", 60, 50, 1000);
        assert_int_equal(f->answer.n_readings, 8);
}

static void test_smart_that_fails(void **state) {
        struct fixture *f = *state;
        cleanup_free char *args = fake_smartctl(f, "healthy");
        cleanup_free char *none = xasprintf("%s /dev/sdb", args), *strange = xasprintf("%s /dev/sdz", args);
        cleanup_free char *option = xasprintf("%s --set", args), *file = xasprintf("%s /etc/passwd", args);

        fails(f, "smart", NULL, none, "/dev/sdb: SMART support is: Unavailable");
        fails(f, "smart", NULL, strange, "/dev/sdz: what smartctl wrote is no report in JSON");
        fails(f, "smart", NULL, option, "--set: not a device below /dev/");
        fails(f, "smart", NULL, file, "/etc/passwd: not a device below /dev/");
        write_program(f, "echo '{ \"devices\": [ { \"name\": \"/dev/sda\" } ]'");
        fails(f, "smart", NULL, args, "smartctl --scan: what smartctl wrote is no report in JSON");
        write_program(f, "echo '{ \"devices\": [] }'");
        fails(f, "smart", NULL, args, "finds no disk that tells anything of itself");
        write_program(f, "echo '{ \"devices\": [ { \"name\": \"--set=smart,off\" } ] }'");
        fails(f, "smart", NULL, args, "not a device below /dev/");
        write_program(f, "exit 0");
        fails(f, "smart", NULL, args, "is no report in JSON");
        write_program(f, "exec cat /dev/zero");
        fails(f, "smart", NULL, args, "killed: smartctl wrote more than 1 MiB");
        write_program(f, "kill -KILL $$");
        fails(f, "smart", NULL, args, "smartctl was killed by a signal");
        assert_int_equal(chmod(f->program, 0777), 0);
        fails(f, "smart", NULL, args, "not a file of root's that nobody else can write");
        assert_int_equal(unlink(f->program), 0);
        fails(f, "smart", NULL, args, "/program: No such file");
        fails(f, "smart", NULL, "program=smartctl", "[sensors] smart_args 'smartctl' is not an absolute path");
}

static void test_smart_that_hangs(void **state) {
        struct fixture *f = *state;
        cleanup_free char *args = xasprintf("program=%s", f->program);

        write_program(f, "exec sleep 600");
        f->timeout_usec = 500000;
        fails(f, "smart", NULL, args, "killed after 0.5 s");
}

static void test_no_sensor(void **state) {
        struct fixture *f = *state;

        fails(f, "none-such", NULL, "", "none-such.so: No such file");
        fails(f, "../program", NULL, "", "no name of a plugin");
        assert_int_equal(setenv("TEST_SENSOR_DIR", getenv("TEST_PLUGIN_DIR"), 1), 0);
        fails(f, "log", NULL, "", "is not a sensor"); /* a fence */
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(test_hwmon),
                T(test_edac),
                T(test_psi),
                T(test_disk),
                T(test_program),
                T(test_program_that_fails),
                T(test_program_is_nobodys),
                T(test_smart_healthy),
                T(test_smart_failing),
                T(test_smart_that_fails),
                T(test_smart_that_hangs),
                T(test_no_sensor),
        };

        return cmocka_run_group_tests_name("sensor-plugins", tests, NULL, NULL);
}
