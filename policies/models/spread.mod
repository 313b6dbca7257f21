# spread: keeps the fullest node as empty as it can: for jobs that fight over memory bandwidth. Otherwise as fewest-nodes.mod,
# which says what the names mean.
set NODES;
set JOBS;
param groups{JOBS};
set GROUPS{j in JOBS} := 0..groups[j] - 1;
param cores{NODES};
param ranks{j in JOBS, GROUPS[j]};
param at{j in JOBS, GROUPS[j]};
param pinned{j in JOBS, GROUPS[j]};
param move_cost{j in JOBS, GROUPS[j]};
param running{JOBS};
param priority{JOBS};
param limit{JOBS, NODES}, default 1e6;

var place{j in JOBS, GROUPS[j], NODES}, binary;
var serve{JOBS}, binary;
var fullest, >= 0;                       # ranks for each core, where they are most

minimize cost:
    1000 * fullest
  + sum{j in JOBS, g in GROUPS[j], n in NODES: at[j,g] >= 0 and at[j,g] <> n} move_cost[j,g] * place[j,g,n]
  - sum{j in JOBS} 1e4 * (priority[j] + 1) * serve[j];

all_or_nothing{j in JOBS, g in GROUPS[j]}: sum{n in NODES} place[j,g,n] = serve[j];
goes_on{j in JOBS: running[j] = 1}: serve[j] = 1;
stays{j in JOBS, g in GROUPS[j]: pinned[j,g] = 1}: place[j,g,at[j,g]] = 1;
fits{n in NODES}: sum{j in JOBS, g in GROUPS[j]} ranks[j,g] * place[j,g,n] <= cores[n];
allowed{j in JOBS, n in NODES}: sum{g in GROUPS[j]} ranks[j,g] * place[j,g,n] <= limit[j,n];
full{n in NODES: cores[n] > 0}: sum{j in JOBS, g in GROUPS[j]} ranks[j,g] * place[j,g,n] <= cores[n] * fullest;

end;
