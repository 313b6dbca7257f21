/* Programs that change their memory in every way, for ever. */
#ifndef RM_TESTS_UNIT_PAGES_PROGRAMS_H
#define RM_TESTS_UNIT_PAGES_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AREA_PAGES = 1024, PROGRAMS = 13 };

/* Each for child_begin(). */
extern void (*const programs[PROGRAMS])(int link);

/* Called in a child: anonymous memory. */
char *map_area(size_t pages);
/* Called by programs at each step: after every so many they sleep for a moment. Those who copy come
 * first to what the program has changed then, and both need less of a processor. */
void share_processor(uint32_t step, uint32_t every);

/* A program for child_begin(): room for a huge page, half of it holes. Then it writes where that is
 * into the link: a char *. */
enum { HOLES_BYTES = 2 << 20 };
void have_holes(int link);
/* Has the kernel make one page of all that, the holes becoming zeros, as khugepaged does it at
 * any time, also to one that stands still. Could it? */
bool fill_holes(int pidfd, char *area);

#endif
