#include "launcher/sim/plot.h"

#include <string.h>

#include "common/util.h"

enum {
        COLUMNS = 960, /* points in time */
        PANEL_HEIGHT = 160,
        PANEL_STEP = 220, /* with title and axis */
        LEFT = 70,
        TOP = 40,
};

struct panel {
        char policy[64];
        struct sim_sample *samples;
        size_t n_samples;
};

struct plot {
        struct panel *panels;
        size_t n_panels;
        int64_t begin_usec, end_usec;
        uint64_t most; /* usable cores */
};

struct plot *plot_create(void) {
        struct plot *plot = xcalloc(1, sizeof(*plot));

        plot->begin_usec = INT64_MAX;
        return plot;
}

void plot_destroy(struct plot *plot) {
        if (!plot)
                return;
        for (size_t i = 0; i < plot->n_panels; i++)
                free(plot->panels[i].samples);
        free(plot->panels);
        free(plot);
}

void plot_add(struct plot *plot, const char *policy, const struct world *world) {
        struct panel *panel;

        plot->panels = xrealloc(plot->panels, sizeof(*plot->panels) * (plot->n_panels + 1));
        panel = &plot->panels[plot->n_panels++];
        *panel = (struct panel) { .n_samples = world->n_samples };
        (void) snprintf(panel->policy, sizeof(panel->policy), "%s", policy);
        panel->samples = xcalloc(world->n_samples, sizeof(*panel->samples));
        memcpy(panel->samples, world->samples, sizeof(*panel->samples) * world->n_samples);
        for (size_t i = 0; i < world->n_samples; i++)
                plot->most = world->samples[i].usable > plot->most ? world->samples[i].usable : plot->most;
        plot->begin_usec = world->samples[0].time_usec < plot->begin_usec ? world->samples[0].time_usec : plot->begin_usec;
        plot->end_usec = world->samples[world->n_samples - 1].time_usec > plot->end_usec
                                 ? world->samples[world->n_samples - 1].time_usec
                                 : plot->end_usec;
}

static double usable_of(const struct sim_sample *sample) {
        return (double) sample->usable;
}

static double working_of(const struct sim_sample *sample) {
        return sample->working;
}

/* Means over equal parts of the time, as the corners of an area. */
static void write_area(const struct plot *plot, const struct panel *panel, double (*value)(const struct sim_sample *), int bottom,
                       const char *colour, FILE *out) {
        double step = (double) (plot->end_usec - plot->begin_usec) / COLUMNS, most = plot->most > 0 ? (double) plot->most : 1;
        size_t at = 0;

        (void) fprintf(out, "<path fill=\"%s\" d=\"M%d %d", colour, LEFT, bottom);
        for (int column = 0; column < COLUMNS && step > 0; column++) {
                double from = (double) plot->begin_usec + step * column, to = from + step, sum = 0;

                for (size_t i = at; i < panel->n_samples && (double) panel->samples[i].time_usec < to; i++) {
                        double begin = (double) panel->samples[i].time_usec;
                        double end = i + 1 < panel->n_samples ? (double) panel->samples[i + 1].time_usec : to;

                        begin = begin > from ? begin : from;
                        end = end < to ? end : to;
                        sum += end > begin ? value(&panel->samples[i]) * (end - begin) : 0;
                        at = i;
                }
                (void) fprintf(out, "L%d %.1f", LEFT + column, bottom - sum / step / most * PANEL_HEIGHT);
        }
        (void) fprintf(out, "L%d %dZ\"/>\n", LEFT + COLUMNS, bottom);
}

static void write_axes(const struct plot *plot, const struct panel *panel, int bottom, FILE *out) {
        double hours = (double) (plot->end_usec - plot->begin_usec) / 3600e6;

        (void) fprintf(out, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n", LEFT, bottom - PANEL_HEIGHT - 8,
                       panel->policy);
        (void) fprintf(out, "<path stroke=\"#333\" fill=\"none\" d=\"M%d %dV%dH%d\"/>\n", LEFT, bottom - PANEL_HEIGHT, bottom,
                       LEFT + COLUMNS);
        (void) fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%llu</text>\n", LEFT - 6, bottom - PANEL_HEIGHT + 6,
                       (unsigned long long) plot->most);
        (void) fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n", LEFT - 6, bottom);
        for (int i = 0; i <= 4; i++)
                (void) fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%.1f h</text>\n", LEFT + COLUMNS * i / 4,
                               bottom + 18, hours * i / 4);
}

void plot_write(const struct plot *plot, FILE *out) {
        int height = TOP + PANEL_STEP * (int) plot->n_panels;

        (void) fprintf(out,
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
                       "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
                       "<text x=\"%d\" y=\"20\">cores over time: usable (grey), at work (blue)</text>\n",
                       LEFT + COLUMNS + 40, height, LEFT);
        for (size_t i = 0; i < plot->n_panels; i++) {
                int bottom = TOP + PANEL_STEP * (int) i + PANEL_HEIGHT + 20;

                write_area(plot, &plot->panels[i], usable_of, bottom, "#d8d8d8", out);
                write_area(plot, &plot->panels[i], working_of, bottom, "#3b74b4", out);
                write_axes(plot, &plot->panels[i], bottom, out);
        }
        (void) fputs("</svg>\n", out);
}
