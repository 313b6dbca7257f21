# The program that distrib solves, for jobs of single ranks that run nowhere yet: Reghenzani 2016, section 5.3.
#
# The thesis bounds pi by M * phi with M = 1e6. A solver that takes 1e-5 for a whole number then takes phi = pi / M for 0 and pays
# nothing for the nodes of a job. The least M that allows everything is what fits: min(n, c).
#
#     glpsol --model distrib.mod --data DATA

set JOBS;
set NODES;

param n{JOBS} integer >= 1;   # ranks
param p{JOBS} >= 0;           # priority
param c{NODES} integer >= 0;  # cores
param r{NODES} >= 0;          # penalty of a rank on this node
param K >= 0;                 # the price of a node, for each job on it

var pi{JOBS, NODES} integer >= 0;  # ranks of a job on a node
var phi{JOBS, NODES} binary;       # there are some

minimize cost: sum{a in JOBS, s in NODES} p[a] * (r[s] * pi[a, s] + K * phi[a, s]);

subject to placed{a in JOBS}: sum{s in NODES} pi[a, s] = n[a];
subject to capacity{s in NODES}: sum{a in JOBS} pi[a, s] <= c[s];
subject to used{a in JOBS, s in NODES}: pi[a, s] <= min(n[a], c[s]) * phi[a, s];

end;
