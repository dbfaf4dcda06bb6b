"""Branch and bound for a knapsack: each rank searches a part of the tree, the best is shared."""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
n = int(sys.argv[1]) if len(sys.argv) > 1 else 26
rng = np.random.default_rng(3)
weights, values = rng.integers(10, 60, n).astype(float), rng.integers(10, 90, n).astype(float)
order = np.argsort(-values / weights)
weights, values = weights[order], values[order]
room = 0.4 * weights.sum()
later = np.concatenate([np.cumsum(values[::-1])[::-1], np.zeros(1)])


def bound(item, weight, value):
    left = np.cumsum(weights[item:])
    fits = left <= room - weight
    whole = int(fits.sum())
    total = value + values[item : item + whole].sum()
    if item + whole < n:
        used = left[whole - 1] if whole else 0.0
        total += (room - weight - used) / weights[item + whole] * values[item + whole]
    return total


split = max(1, int(np.ceil(np.log2(comm.size))) + 2)
nodes = [
    (split, float(weights[:split] @ bits), float(values[:split] @ bits))
    for number in range(1 << split)
    if number % comm.size == comm.rank
    for bits in [np.array([number >> i & 1 for i in range(split)], float)]
]
nodes = [node for node in nodes if node[1] <= room]
best, expanded, rounds = 0.0, 0, 0
while comm.allreduce(len(nodes)) > 0 and rounds < 3000:
    rounds += 1
    for _ in range(min(40, len(nodes))):
        item, weight, value = nodes.pop()
        expanded += 1
        best = max(best, value)
        if item == n or bound(item, weight, value) <= best:
            continue
        nodes.append((item + 1, weight, value))
        if weight + weights[item] <= room:
            nodes.append((item + 1, weight + weights[item], value + values[item]))
    best = comm.allreduce(best, MPI.MAX)
if comm.rank == 0:
    print("rounds", rounds, "best", best)
