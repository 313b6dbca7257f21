/* A browser runs the script of the page, and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/web/page.h"

/* The hashes are as "printf 'alert(1)' | openssl dgst -sha256 -binary | base64" prints them. */
#define SCRIPT "bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI="
#define EMPTY "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

static void test_policy(void **state) {
        cleanup_free char *both = page_policy("<p><style></style><script>alert(1)</script><script>2</script>");
        cleanup_free char *none = page_policy("<script>alert(1)");

        assert_non_null(strstr(both, "default-src 'none'; script-src 'sha256-" SCRIPT "'; style-src 'sha256-" EMPTY
                                     "'; connect-src 'self'"));
        assert_non_null(strstr(both, "frame-ancestors 'none'"));
        assert_null(strstr(both, "unsafe"));
        assert_null(strstr(none, SCRIPT));
}

static void test_file(void **state) {
        char path[] = "/tmp/test-page-XXXXXX";
        int fd = mkstemp(path);
        cleanup_free char *large = xcalloc(1, 200001);
        struct page page = { 0 };
        struct rm_error err = { 0 };

        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, "<script>1</script>", 18), 0);
        assert_int_equal(page_load(path, &page, &err), 0);
        assert_string_equal(page.text, "<script>1</script>");
        page_finish(&page);
        page = (struct page) { 0 };
        memset(large, 'x', 200000);
        assert_int_equal(write_all(fd, large, 200000), 0);
        assert_true(page_load(path, &page, &err) < 0);
        (void) close(fd);
        (void) unlink(path);
        assert_true(page_load(path, &page, &err) < 0);
        assert_null(page.text);
        page_finish(&page);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_policy), cmocka_unit_test(test_file) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
