/* How large a request may be, by its first bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/client/request_head.h"
#include "proto/local.pb-c.h"

static struct request_head read_packed(Rm__LocalRequest *request, size_t head_bytes) {
        size_t bytes = rm__local_request__get_packed_size(request);
        cleanup_free uint8_t *packed = xcalloc(1, bytes);

        (void) rm__local_request__pack(request, packed);
        return request_head_read(packed, bytes < head_bytes ? bytes : head_bytes);
}

static void test_what_encoders_write(void **state) {
        static const uint32_t ids[] = { 0, 1, 127, 128, UINT32_MAX };
        Rm__SubmitJob submit = RM__SUBMIT_JOB__INIT;
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__GetStatus get = RM__GET_STATUS__INIT;
        Rm__JobInput input = RM__JOB_INPUT__INIT;

        spec.cwd = (char *) "/a/long/directory";
        submit.spec = &spec;
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;
                struct request_head head;

                request.id = ids[i];
                request.body_case = RM__LOCAL_REQUEST__BODY_SUBMIT_JOB;
                request.submit_job = &submit;
                head = read_packed(&request, 16);
                assert_int_equal(head.id, ids[i]);
                assert_int_equal(head.body, RM__LOCAL_REQUEST__BODY_SUBMIT_JOB);
                assert_true(request_head_max_bytes(&head, true) > 1U << 20);
                assert_true(request_head_max_bytes(&head, false) < 1U << 13);
                request.body_case = RM__LOCAL_REQUEST__BODY_JOB_INPUT;
                request.job_input = &input;
                head = read_packed(&request, 16);
                assert_true(request_head_max_bytes(&head, true) > 1U << 20);
                request.body_case = RM__LOCAL_REQUEST__BODY_GET_STATUS;
                request.get_status = &get;
                head = read_packed(&request, 16);
                assert_int_equal(head.body, RM__LOCAL_REQUEST__BODY_GET_STATUS);
                assert_int_equal(request_head_max_bytes(&head, true), 1U << 16);
        }
}

static void test_anything_else_is_small(void **state) {
        static const struct {
                const char *bytes;
                size_t n;
        } cases[] = {
                { "", 0 },
                { "\x08", 1 },
                { "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x5a", 12 }, /* a number of ten bytes */
                { "\x08\x01\x58\x5a", 4 },                                 /* field 11, but a number */
                { "\x08\x01\xda\x80\x80\x80\x80\x00", 8 },                  /* field 11 in more bytes than needed: not whole */
                { "\xff\xff\xff\xff\xff\xff", 6 },
                { "\x12\x5a", 2 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct request_head head = request_head_read((const uint8_t *) cases[i].bytes, cases[i].n);

                assert_int_equal(request_head_max_bytes(&head, true), 1U << 16);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_encoders_write),
                cmocka_unit_test(test_anything_else_is_small),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
