"""How often random orders show the errors of `rare`.

    python -m tests.explore.chances [NAME...] [--executions N] [--seed K]

In each execution every option is equally likely at every step, as with `--schedule random`;
standard sends are buffered. For each program the table has the number of executions that failed,
the largest chance of a failure that fits with it (in 95 of 100 cases), and the share of seeds whose
1,000 random orders then miss the error.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Collection, Sequence

from pysmpi.explore.events import Decision
from pysmpi.explore.executor import Executor
from pysmpi.explore.exploration import FixedSends
from pysmpi.explore.observer import KnownStates, Observer
from pysmpi.explore.strategies.random import RandomWalk
from pysmpi.isolation.loading.loader import ScriptProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options
from tests.explore.test_rare import PROGRAMS, RANKS

SEEDS = 1_000  # random orders of a seed


class Walk(Observer):
    """An execution in a random order; its seed is in the place of the processes `delayed`."""

    def __init__(self, seed: int) -> None:
        super().__init__(("walk",), searching=True, delayed=(seed,))

    def beginning(self) -> Observer:
        """The beginning of all executions."""
        walk = Walk(0)
        walk.prefix = None
        return walk

    def continue_with(
        self,
        prefix: Sequence[str],
        sleep: Sequence[Decision],
        delayed: Collection[int],
        memory: KnownStates,
    ) -> None:
        """Go on in a random order."""
        (seed,) = delayed
        strategy = RandomWalk(seed)
        strategy.begin(0, 1)
        self.prefix = ()
        self.strategy = FixedSends(strategy, wait=False)  # type: ignore[assignment]


def failures(name: str, executions: int, seed: int) -> int:
    """The number of random executions of a program that fail."""
    options = Options(nprocs=RANKS[name], compute="none")
    program = str(PROGRAMS / f"{name}.py")

    def work(executor: Executor) -> int:
        failed = 0
        for number in range(executions):
            executor.submit(Walk(seed + number), None)
            failed += executor.next()[1].failed
        return failed

    executor = Executor(lambda: Job(ScriptProgram(program, []), options))
    return executor.serve(work)


def largest(failed: int, executions: int) -> float:
    """The chance with which so few failures, or fewer, occur in 5 of 100 cases."""
    low, high = 0.0, 1.0
    for _ in range(60):
        chance = (low + high) / 2
        term = math.exp(executions * math.log1p(-chance))
        total = term
        for i in range(failed):
            term *= (executions - i) / (i + 1) * chance / (1 - chance)
            total += term
        low, high = (chance, high) if total > 0.05 else (low, chance)
    return high


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs (all)")
    parser.add_argument("--executions", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| program | executions | failed | chance at most | seeds that miss it |")
    print("| --- | --- | --- | --- | --- |")
    for name in options.names or RANKS:
        failed = failures(name, options.executions, options.seed)
        chance = largest(failed, options.executions)
        missed = (1 - chance) ** SEEDS
        print(f"| {name} | {options.executions:,} | {failed} | {chance:.1e} | {missed:.1%} |")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
