/* Utilisation over time as an SVG picture: what is usable in grey, what works in colour, a panel
 * for each policy. */
#ifndef RM_SIM_PLOT_H
#define RM_SIM_PLOT_H

#include <stdint.h>
#include <stdio.h>

#include "launcher/sim/world.h"

struct plot;

struct plot *plot_create(void);
void plot_destroy(struct plot *plot); /* NULL ok */
/* A panel; what it needs of the world is copied. */
void plot_add(struct plot *plot, const char *policy, const struct world *world);
void plot_write(const struct plot *plot, FILE *out);

#endif
