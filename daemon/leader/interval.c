#include "daemon/leader/interval.h"

#include <math.h>

/* A first guess, for the first checkpoint of a job: the next one goes by what that has cost. */
#define COST_GUESS_USEC 500000.0
#define FORESEEN_MOST 0.95
/* A thousand years: far from what a uint64_t holds. */
#define MTBF_MOST_USEC (UINT64_C(1000) * 365 * 24 * 3600 * 1000000)
#define NEWTON_STEPS 8 /* to 1e-6 and better for any cost */

/* The period x that loses least, in units of the time between failures, as is the cost c: of (x -
 * c) / (e^x - 1), the work that an attempt at a period keeps, the largest is where x - 1 + e^-x =
 * c. Newton's method, from the right of the root of a convex function: it converges without
 * overshooting. */
static double period_best(double cost) {
        double x = cost + sqrt(2 * cost);

        for (int i = 0; i < NEWTON_STEPS; i++)
                x -= (x - 1 + exp(-x) - cost) / (1 - exp(-x));
        return x;
}

uint64_t interval_best(const struct interval_facts *facts) {
        double cost = facts->cost_usec > 0 ? (double) facts->cost_usec : COST_GUESS_USEC;
        double foreseen = facts->foreseen < 0 ? 0 : facts->foreseen > FORESEEN_MOST ? FORESEEN_MOST : facts->foreseen;
        double failures = (double) facts->mtbf_usec / (facts->nodes > 0 ? facts->nodes : 1) / (1 - foreseen);
        double best = period_best(cost / failures) * failures;

        if (best < (double) INTERVAL_LEAST_USEC)
                return INTERVAL_LEAST_USEC;
        return best > (double) INTERVAL_MOST_USEC ? INTERVAL_MOST_USEC : (uint64_t) best;
}

/* No more than that: how likely so many losses are, if `expected` are to be expected (Chernoff's
 * bound for a Poisson distribution). */
static double likelihood(double losses, double expected) {
        return losses > expected ? exp(losses - expected - losses * log(losses / expected)) : 1;
}

uint64_t interval_mtbf(uint64_t prior_usec, uint64_t node_usec, uint64_t losses) {
        double prior = (double) prior_usec, up = (double) (node_usec > 0 ? node_usec : 1), seen = (double) losses;
        double weight = prior > 0 ? likelihood(seen, up / prior) : losses == 0;
        double mtbf = (weight * prior + up) / (weight + seen);

        return mtbf < 1 ? 1 : mtbf < (double) MTBF_MOST_USEC ? (uint64_t) mtbf : MTBF_MOST_USEC;
}
