#include "policies/distrib/margin.h"

static int64_t least_of(int64_t a, int64_t b) {
        return a < b ? a : b;
}

static void read_cells(struct margins *m) {
        size_t all = margins_at(m, m->jobs, 0, 0);

        for (size_t i = 0; i < all; i++)
                m->node_cost[i] = m->job_cost[i] = MARGIN_NEVER;
        for (uint32_t j = 0; j < m->jobs; j++) {
                m->job_zero[j] = 0;
                for (uint32_t s = 0; s < m->nodes; s++) {
                        const struct dual_cell *cell = &m->dual->cells[(size_t) j * m->nodes + s];
                        const struct dual_value *values = m->dual->values + cell->first;
                        int64_t zero = cell->n > 0 && values[0].units == 0 ? values[0].job_cost : 0;

                        m->job_zero[j] += zero;
                        for (uint32_t k = 0; k < cell->n; k++) {
                                m->node_cost[margins_at(m, j, s, values[k].units)] = values[k].node_cost;
                                m->job_cost[margins_at(m, j, s, values[k].units)] = values[k].job_cost - zero;
                        }
                }
        }
}

/* One chain: link i is the cell i of a job, or of a node. */
struct line {
        bool of_node;
        uint32_t index, links, total;
        const int64_t *cost, *extra; /* extra: added to each, or NULL */
        int64_t price;               /* of a unit that is left; MARGIN_NEVER: none may be */
};

static size_t link_at(const struct margins *m, const struct line *line, uint32_t i) {
        return line->of_node ? margins_at(m, i, line->index, 0) : margins_at(m, line->index, i, 0);
}

static int64_t link_cost(const struct line *line, size_t i) {
        int64_t extra = line->extra ? line->extra[i] : 0;

        return line->cost[i] >= MARGIN_NEVER || extra >= MARGIN_NEVER ? MARGIN_NEVER : line->cost[i] + extra;
}

/* to[x + v] = the least of from[x] + cost[v]; or the other way round. */
static void pass(const struct margins *m, const struct line *line, uint32_t i, const int64_t *from, int64_t *to, bool forward) {
        size_t link = link_at(m, line, i);

        for (uint32_t x = 0; x <= line->total; x++)
                to[x] = MARGIN_NEVER;
        for (uint32_t v = 0; v <= line->total; v++) {
                int64_t cost = link_cost(line, link + v);

                for (uint32_t x = 0; cost < MARGIN_NEVER && x + v <= line->total; x++)
                        if (forward)
                                to[x + v] = least_of(to[x + v], from[x] + cost);
                        else
                                to[x] = least_of(to[x], from[x + v] + cost);
        }
}

/* Into ret_margin, for each cell and units: the least with it, above the least of all, which is returned. */
static int64_t chain_of(struct margins *m, const struct line *line, int64_t *ret_margin) {
        size_t width = m->stride;
        int64_t least;

        for (uint32_t x = 0; x <= line->total; x++) {
                m->forward[x] = x == 0 ? 0 : MARGIN_NEVER;
                m->backward[line->links * width + x] = x == line->total             ? 0
                                                       : line->price < MARGIN_NEVER ? line->price * (line->total - x)
                                                                                    : MARGIN_NEVER;
        }
        for (uint32_t i = 0; i < line->links; i++)
                pass(m, line, i, m->forward + i * width, m->forward + (i + 1) * width, true);
        for (uint32_t i = line->links; i-- > 0;)
                pass(m, line, i, m->backward + (i + 1) * width, m->backward + i * width, false);
        least = m->backward[0];
        for (uint32_t i = 0; i < line->links; i++)
                for (uint32_t v = 0; v < m->stride; v++) {
                        size_t link = link_at(m, line, i) + v;
                        int64_t cost = link_cost(line, link), best = MARGIN_NEVER;

                        for (uint32_t x = 0; cost < MARGIN_NEVER && x + v <= line->total; x++)
                                best = least_of(best, m->forward[i * width + x] + m->backward[(i + 1) * width + x + v] + cost);
                        ret_margin[link] = best < MARGIN_NEVER ? best - least : MARGIN_NEVER;
                }
        return least;
}

static struct line job_line(const struct margins *m, uint32_t j) {
        return (struct line) {
                .index = j, .links = m->nodes, .total = m->problem->jobs[j].units, .cost = m->job_cost, .price = MARGIN_NEVER
        };
}

static struct line node_line(const struct margins *m, uint32_t s) {
        return (struct line) { .of_node = true,
                               .index = s,
                               .links = m->jobs,
                               .total = m->problem->nodes[s].capacity,
                               .cost = m->node_cost,
                               .price = m->dual->node_price[s] };
}

/* False: there is no plan. */
static bool find_margins(struct margins *m) {
        int64_t sum = 0;

        for (uint32_t j = 0; j < m->jobs; j++) {
                struct line line = job_line(m, j);

                m->job_least[j] = chain_of(m, &line, m->job_margin) + m->job_zero[j];
                sum += m->job_least[j];
        }
        for (uint32_t s = 0; s < m->nodes; s++) {
                struct line line = node_line(m, s);

                m->node_least[s] = chain_of(m, &line, m->node_margin);
                sum += m->node_least[s];
        }
        m->gap = m->dual->target - m->dual->base - sum;
        return sum < MARGIN_NEVER / 2 && m->gap >= 0;
}

/* What a plan with the value costs at least is known for one chain and the chains across: the value is dropped when that is too
 * much. */
static void drop_from(struct margins *m, const struct line *line, int64_t least, int64_t own_least) {
        for (uint32_t i = 0; i < line->links; i++)
                for (uint32_t v = 0; v < m->stride; v++) {
                        size_t link = link_at(m, line, i) + v;

                        if (m->joint[link] >= MARGIN_NEVER || m->joint[link] + least - own_least > m->gap)
                                m->node_cost[link] = m->job_cost[link] = MARGIN_NEVER;
                }
}

static void drop_values(struct margins *m) {
        for (uint32_t j = 0; j < m->jobs; j++) {
                struct line line = job_line(m, j);

                line.extra = m->node_margin;
                drop_from(m, &line, chain_of(m, &line, m->joint) + m->job_zero[j], m->job_least[j]);
        }
        for (uint32_t s = 0; s < m->nodes; s++) {
                struct line line = node_line(m, s);

                line.extra = m->job_margin;
                drop_from(m, &line, chain_of(m, &line, m->joint), m->node_least[s]);
        }
}

/* What the node costs above its least at least when so many groups of the job end there: jobs that are on it as well are on no
 * node of the branch. */
static void find_endings(struct margins *m) {
        for (uint32_t s = 0; s < m->nodes; s++) {
                struct line line = node_line(m, s);
                int64_t least;

                for (uint32_t j = 0; j < m->jobs; j++)
                        for (uint32_t v = 0; v < m->stride; v++)
                                m->joint[margins_at(m, j, s, v)] = v > 0 ? m->job_margin[margins_at(m, j, s, v)] : 0;
                line.extra = m->joint;
                least = chain_of(m, &line, m->ending) - m->node_least[s];
                for (uint32_t j = 0; j < m->jobs; j++)
                        for (uint32_t v = 0; v < m->stride; v++) {
                                size_t i = margins_at(m, j, s, v);

                                if (m->ending[i] < MARGIN_NEVER)
                                        m->ending[i] += least - m->joint[i];
                        }
        }
}

/* More groups of the job, on one node more, or on several. */
static void find_completions(struct margins *m) {
        int64_t *one = m->forward, *more = m->backward;

        for (uint32_t j = 0; j < m->jobs; j++) {
                int64_t *complete = m->complete + (size_t) j * m->stride;

                for (uint32_t x = 0; x < m->stride; x++)
                        complete[x] = one[x] = more[x] = MARGIN_NEVER;
                for (uint32_t s = 0; s < m->nodes; s++)
                        for (uint32_t x = m->stride; x-- > 1;) {
                                const int64_t *cost = m->job_cost + margins_at(m, j, s, 0),
                                              *margin = m->node_margin + margins_at(m, j, s, 0);

                                for (uint32_t v = 1; v < x; v++)
                                        if (cost[v] < MARGIN_NEVER && margin[v] < MARGIN_NEVER)
                                                more[x] =
                                                        least_of(more[x], least_of(one[x - v], more[x - v]) + cost[v] + margin[v]);
                                if (cost[x] < MARGIN_NEVER && margin[x] < MARGIN_NEVER) {
                                        one[x] = least_of(one[x], cost[x] + margin[x]);
                                        complete[x] = least_of(complete[x], cost[x] + m->ending[margins_at(m, j, s, x)]);
                                }
                        }
                for (uint32_t x = 1; x < m->stride; x++)
                        complete[x] = least_of(complete[x], more[x]);
        }
}

bool margins_read(struct margins *m, const struct dual *dual) {
        m->dual = dual;
        read_cells(m);
        if (!find_margins(m))
                return false;
        drop_values(m);
        if (!find_margins(m))
                return false;
        find_endings(m);
        find_completions(m);
        return true;
}

bool margins_init(struct margins *m, const struct problem *problem) {
        struct arena *arena = &m->arena;
        size_t cells, most;

        *m = (struct margins) { .problem = problem, .jobs = problem->n_jobs, .nodes = problem->n_nodes, .stride = 1 };
        for (uint32_t j = 0; j < m->jobs; j++)
                m->stride = problem->jobs[j].units + 1 > m->stride ? problem->jobs[j].units + 1 : m->stride;
        for (uint32_t s = 0; s < m->nodes; s++)
                m->stride = problem->nodes[s].capacity + 1 > m->stride ? problem->nodes[s].capacity + 1 : m->stride;
        cells = margins_at(m, m->jobs, 0, 0);
        most = m->jobs > m->nodes ? m->jobs : m->nodes;
        m->node_cost = arena_alloc(arena, cells, sizeof(int64_t));
        m->job_cost = arena_alloc(arena, cells, sizeof(int64_t));
        m->node_margin = arena_alloc(arena, cells, sizeof(int64_t));
        m->job_margin = arena_alloc(arena, cells, sizeof(int64_t));
        m->joint = arena_alloc(arena, cells, sizeof(int64_t));
        m->ending = arena_alloc(arena, cells, sizeof(int64_t));
        m->complete = arena_alloc(arena, (size_t) m->jobs * m->stride, sizeof(int64_t));
        m->node_least = arena_alloc(arena, m->nodes, sizeof(int64_t));
        m->job_least = arena_alloc(arena, m->jobs, sizeof(int64_t));
        m->job_zero = arena_alloc(arena, m->jobs, sizeof(int64_t));
        m->forward = arena_alloc(arena, (most + 1) * m->stride, sizeof(int64_t));
        m->backward = arena_alloc(arena, (most + 1) * m->stride, sizeof(int64_t));
        return !arena->failed;
}

void margins_finish(struct margins *m) {
        arena_finish(&m->arena);
}
