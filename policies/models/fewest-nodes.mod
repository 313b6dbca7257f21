# fewest-nodes: puts every job on as few nodes as it can, the least penalised ones first, moves groups only when that pays,
# and serves as many jobs as fit: what `distrib` does, but for the order in which jobs wait.
# A policy for rmd in GNU MathProg; its name is that of this file. See docs/policy-guide.md for all sets and parameters.

# What the snapshot says. Nodes, jobs and groups are numbered from 0.
set NODES;
set JOBS;
param groups{JOBS};                      # how many groups a job has
set GROUPS{j in JOBS} := 0..groups[j] - 1;
param cores{NODES};                      # that may be used
param penalty{NODES};                    # the price of a rank there
param ranks{j in JOBS, GROUPS[j]};       # of a group; it is never split
param at{j in JOBS, GROUPS[j]};          # the node a group runs on, -1: none
param pinned{j in JOBS, GROUPS[j]};      # 1: it must stay there
param move_cost{j in JOBS, GROUPS[j]};
param running{JOBS};                     # 1: it must be placed
param priority{JOBS};
param limit{JOBS, NODES}, default 1e6;   # ranks a job may have on a node
param distribution_weight;               # the price of each node that a job uses

# What is answered: place. The other variables are the model's own.
var place{j in JOBS, GROUPS[j], NODES}, binary;
var serve{JOBS}, binary;
var use{JOBS, NODES}, binary;

minimize cost:
    sum{j in JOBS, n in NODES} priority[j] * distribution_weight * use[j,n]
  + sum{j in JOBS, g in GROUPS[j], n in NODES} priority[j] * penalty[n] * ranks[j,g] * place[j,g,n]
  + sum{j in JOBS, g in GROUPS[j], n in NODES: at[j,g] >= 0 and at[j,g] <> n} move_cost[j,g] * place[j,g,n]
  - sum{j in JOBS} 1e4 * (priority[j] + 1) * serve[j];

all_or_nothing{j in JOBS, g in GROUPS[j]}: sum{n in NODES} place[j,g,n] = serve[j];
goes_on{j in JOBS: running[j] = 1}: serve[j] = 1;
stays{j in JOBS, g in GROUPS[j]: pinned[j,g] = 1}: place[j,g,at[j,g]] = 1;
fits{n in NODES}: sum{j in JOBS, g in GROUPS[j]} ranks[j,g] * place[j,g,n] <= cores[n];
allowed{j in JOBS, n in NODES}: sum{g in GROUPS[j]} ranks[j,g] * place[j,g,n] <= limit[j,n];
used{j in JOBS, g in GROUPS[j], n in NODES}: place[j,g,n] <= use[j,n];

end;
