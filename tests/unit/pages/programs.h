/* Programs that change their memory in every way, for ever. */
#ifndef RM_TESTS_UNIT_PAGES_PROGRAMS_H
#define RM_TESTS_UNIT_PAGES_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>

enum { AREA_PAGES = 1024, PROGRAMS = 13 };

/* Each for child_begin(). */
extern void (*const programs[PROGRAMS])(int link);

/* Called in a child: anonymous memory. */
char *map_area(size_t pages);

/* A program for child_begin(): room for a huge page, half of it holes. Then it writes where that is
 * into the link: a char *. */
enum { HOLES_BYTES = 2 << 20 };
void have_holes(int link);
/* Has the kernel make one page of all that, the holes becoming zeros, as khugepaged does it at
 * any time, also to one that stands still. Could it? */
bool fill_holes(int pidfd, char *area);

#endif
