"""A genetic algorithm whose individuals are evaluated by workers of `mpi4py.futures`."""

from __future__ import annotations

import random

from deap import algorithms, base, creator, tools
from mpi4py.futures import MPICommExecutor

creator.create("Fitness", base.Fitness, weights=(1.0,))
creator.create("Individual", list, fitness=creator.Fitness)


def ones(individual: list[int]) -> tuple[int]:
    return (sum(individual),)


def main() -> None:
    with MPICommExecutor(root=0) as executor:
        if executor is None:
            return
        random.seed(64)
        box = base.Toolbox()
        box.register("bit", random.randint, 0, 1)
        box.register("individual", tools.initRepeat, creator.Individual, box.bit, 40)
        box.register("population", tools.initRepeat, list, box.individual)
        box.register("evaluate", ones)
        box.register("mate", tools.cxTwoPoint)
        box.register("mutate", tools.mutFlipBit, indpb=0.05)
        box.register("select", tools.selTournament, tournsize=3)
        box.register("map", executor.map)
        population = box.population(n=60)
        best = tools.HallOfFame(1)
        population, log = algorithms.eaSimple(population, box, cxpb=0.5, mutpb=0.2, ngen=15,
                                              halloffame=best, verbose=False)  # fmt: skip
        print("generations", [record["nevals"] for record in log])
        print("best", sum(best[0]), best[0])


if __name__ == "__main__":
    main()
