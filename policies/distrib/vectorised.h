/* For functions whose loops are made to be vectorised, and take nearly all the time: also made for
 * processors that have wider registers than all have, and chosen when loaded. */
#ifndef RM_POLICIES_DISTRIB_VECTORISED_H
#define RM_POLICIES_DISTRIB_VECTORISED_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define VECTORISED __attribute__((target_clones("avx2", "default")))
#else
#define VECTORISED
#endif

#endif
