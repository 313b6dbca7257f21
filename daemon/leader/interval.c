#include "daemon/leader/interval.h"

#include <math.h>

/* A first guess, for the first checkpoint of a job: the next one goes by what that has cost. */
#define COST_GUESS_USEC 500000.0
#define FORESEEN_MOST 0.95

uint64_t interval_best(const struct interval_facts *facts) {
        double cost = facts->cost_usec > 0 ? (double) facts->cost_usec : COST_GUESS_USEC;
        double foreseen = facts->foreseen < 0 ? 0 : facts->foreseen > FORESEEN_MOST ? FORESEEN_MOST : facts->foreseen;
        double failures = (double) facts->mtbf_usec / (facts->nodes > 0 ? facts->nodes : 1) / (1 - foreseen);
        double ratio = cost / (2 * failures), best;

        /* Daly's series holds below that; beyond it nothing is gained by saving more often than the job can fail. */
        if (cost >= 2 * failures)
                best = failures;
        else
                best = sqrt(2 * cost * failures) * (1 + sqrt(ratio) / 3 + ratio / 9) - cost;
        if (best < (double) INTERVAL_LEAST_USEC)
                return INTERVAL_LEAST_USEC;
        return best > (double) INTERVAL_MOST_USEC ? INTERVAL_MOST_USEC : (uint64_t) best;
}

uint64_t interval_mtbf(uint64_t prior_usec, uint64_t node_usec, uint64_t losses) {
        uint64_t mtbf = prior_usec / (losses + 1) + node_usec / (losses + 1);

        return mtbf > 0 ? mtbf : 1;
}
