#include "launcher/rmctl/kernel_faults.h"

#include <stddef.h>
#include <stdio.h>

struct version {
        unsigned major, minor, patch;
};

/* A version that cannot be read is before all others. */
static struct version version_of(const char *release) {
        struct version v = { 0 };

        (void) sscanf(release, "%u.%u.%u", &v.major, &v.minor, &v.patch); /* NOLINT(cert-err34-c): small numbers */
        return v;
}

static bool is_before(struct version a, unsigned major, unsigned minor, unsigned patch) {
        if (a.major != major)
                return a.major < major;
        return a.minor != minor ? a.minor < minor : a.patch < patch;
}

/* PAGEMAP_SCAN came with 6.7. Of versions after 6.18 nothing is known. */
static bool scans_harm_huge_pages(struct version v) {
        if (is_before(v, 6, 7, 0))
                return false;
        return is_before(v, 6, 18, 42) && !(v.major == 6 && v.minor == 12 && v.patch >= 101);
}

static bool scans_lose_bits(struct version v) {
        return !is_before(v, 6, 7, 0) && is_before(v, 6, 8, 10);
}

const struct kernel_fault *kernel_fault_of(const char *release, bool tracking, bool huge_pages) {
        static const struct kernel_fault lost_bits = {
                "CVE-2024-36943",
                "may lose the mark of a page that is written while its memory is tracked",
                "a group may have old contents in such a page after a live move",
                "6.8.10 and 6.9",
        };
        static const struct kernel_fault of_huge_pages = {
                "CVE-2026-72174, CVE-2026-72175",
                "may stop for ever, or lose what is written, when huge pages (hugetlb) are looked at with PAGEMAP_SCAN",
                "a move of a group that uses huge pages may hang, or the group may have old contents there",
                "6.12.101 and 6.18.42",
        };
        struct version v = version_of(release);

        if (tracking && scans_lose_bits(v))
                return &lost_bits;
        return huge_pages && scans_harm_huge_pages(v) ? &of_huge_pages : NULL;
}
