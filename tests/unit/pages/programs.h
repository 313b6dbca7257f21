/* Programs that change their memory in every way, for ever. */
#ifndef RM_TESTS_UNIT_PAGES_PROGRAMS_H
#define RM_TESTS_UNIT_PAGES_PROGRAMS_H

#include <stddef.h>

enum { AREA_PAGES = 1024, PROGRAMS = 13 };

/* Each for child_begin(). */
extern void (*const programs[PROGRAMS])(int link);

/* In a child: anonymous memory. */
char *map_area(size_t pages);

#endif
