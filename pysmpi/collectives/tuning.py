"""Trials of algorithms: the fastest one on a machine, for an operation, ranks and a size.

A trial runs the schedules of all ranks on a separate engine, over a new copy of the network with
the same placement. There is no other traffic, and all ranks enter at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pysmpi.collectives import registry
from pysmpi.collectives.building import build, named_schedules
from pysmpi.collectives.call import OPERATIONS, REDUCING, Call
from pysmpi.collectives.selection import Selection, resolve
from pysmpi.kernel.core import Core
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.plan import Transport
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context
from pysmpi.kernel.schedule import Schedule

INFINITY = float("inf")
NOMINAL = 4096  # bytes of a block if no rank knows the blocks of all

# Each rank knows only its own counts, so they must not determine the choice.
PRIVATE_COUNTS = frozenset({"gatherv", "scatterv", "alltoallv", "alltoallw"})
TUNED = tuple(op for op in OPERATIONS if not op.startswith("neighbor"))


def candidates(call: Call) -> list[str]:
    """The possible algorithms of a call, except those that depend on the arrival of ranks."""
    algorithms = registry.algorithms_of(call.op)
    return [
        name
        for name, found in sorted(algorithms.items())
        if found.live is None
        and registry.fitting(call.op, name, call.size) == name
        and (call.commutative or call.op not in REDUCING or found.ordered)
    ]


def calls_of_all(call: Call) -> list[Call]:
    """The calls of all ranks, from the call of one of them."""
    calls = []
    for rank in range(call.size):
        one = call._replace(rank=rank)
        if call.op in PRIVATE_COUNTS:
            counts = (NOMINAL,) * call.size
            one = one._replace(
                count=NOMINAL, type_size=1,
                recv_counts=counts if call.op != "scatterv" else None,
                send_counts=counts if call.op != "gatherv" else None,
            )  # fmt: skip
        elif call.op == "allgatherv" and call.recv_counts is not None:
            one = one._replace(count=call.recv_counts[rank])
        calls.append(one)
    return calls


def schedules_of(call: Call, name: str | None, named: bool = False) -> list[Schedule]:
    """The schedules of all ranks, once the node-level communicators exist.

    `named`: whether they keep the places of the bytes of their steps.
    """
    calls = [
        one._replace(ready=build(Schedule(), one, name), parts=()) for one in calls_of_all(call)
    ]
    if named:
        return named_schedules(calls, name)
    schedules = []
    for one in calls:
        schedule = Schedule()
        build(schedule, one, name)
        schedules.append(schedule)
    return schedules


def sets_up(call: Call, name: str) -> bool:
    """Whether an algorithm needs node-level communicators, which cost messages the first time."""
    return bool(build(Schedule(), call._replace(ready=frozenset(), selection=None), name))


class Tuner:
    """Tries algorithms on one machine and remembers which was the fastest.

    `network` makes a fresh transport between the `slots` places of ranks.
    """

    def __init__(
        self,
        network: Callable[[], Transport],
        slots: int,
        equip: Callable[[Engine], object] | None = None,
    ) -> None:
        self.network = network
        self.equip = equip  # gives an engine the costs of the machine's cores
        self.slots = slots
        self.trials = 0
        self._winners: dict[object, str] = {}

    def choose(self, call: Call) -> str:
        """The fastest algorithm for a call; the answer is the same for all its ranks."""
        key: tuple[object, ...] = (
            call.op, call.size, call.root, call.commutative, call.slots, call.nodes
        )  # fmt: skip
        if call.op not in PRIVATE_COUNTS:
            counts = None if call.op == "allgatherv" else call.count
            if call.op == "reduce_scatter":
                counts = None
            key = (*key, counts, call.type_size, call.recv_counts)
        winner = self._winners.get(key)
        if winner is None:
            winner = self._winners[key] = self.rank(call)[0][0]
        return winner

    def rank(self, call: Call, everything: bool = False) -> list[tuple[str, float]]:
        """The candidates with their seconds, fastest first.

        Unless `everything` is set, a trial ends when it cannot win any more (infinity).
        """
        results = []
        limit = INFINITY
        for name in candidates(call):
            seconds = self.seconds(call, name, INFINITY if everything else limit)
            limit = min(limit, seconds)
            results.append((name, seconds))
        return sorted(
            results, key=lambda result: (float(f"{result[1]:.9g}"), sets_up(call, result[0]))
        )

    def seconds(self, call: Call, name: str | None, limit: float = INFINITY) -> float:
        """The time of a call with an algorithm or selector, from entry to the last exit.

        Node-level communicators exist already. Infinity for more than `limit` seconds.
        """
        self.trials += 1
        inner = call.selection.inner() if call.selection is not None else None
        schedules = schedules_of(call._replace(selection=inner), name)
        return self._run(schedules, call.slots, limit)

    def _run(
        self, schedules: Sequence[Schedule], slots: Sequence[int] | None, limit: float
    ) -> float:
        engine = Engine(self.network(), self.slots)
        if self.equip is not None:
            self.equip(engine)
        context = Context(0, [])
        left = len(schedules)
        end = INFINITY

        def finish() -> None:
            nonlocal left, end
            left -= 1
            if left == 0:
                end = engine.now
                engine.stop()

        for rank, schedule in enumerate(schedules):
            slot = rank % self.slots if slots is None else slots[rank]
            process = Process(engine, rank, slot, Core(1e9))
            process.resume = finish
            context.members.append(process)
            process.prepare(schedule, context, rank, 0)
            process.launch()
        if limit < INFINITY:
            clock = Process(engine, len(schedules), 0, Core(1e9))
            clock.resume = engine.stop
            patience = Schedule()
            patience.sleep(limit * (1 + 1e-9))
            clock.prepare(patience, context, 0, 0)
            clock.launch()
        engine.run()
        return end


def tune(
    tuner: Tuner, call: Call, libraries: Sequence[str]
) -> tuple[str, float, dict[str, tuple[str, float]]]:
    """(winner, its seconds, the choice of each library with its seconds)."""
    winner, seconds = tuner.rank(call)[0]
    theirs = {}
    known: dict[str, float] = {winner: seconds}
    for library in libraries:
        selection = Selection(library)
        name = resolve(call._replace(selection=selection), library)
        if name not in known:
            known[name] = tuner.seconds(call._replace(selection=selection), name)
        theirs[library] = (name, known[name])
        if known[name] <= seconds * (1 + 1e-9):
            # Of equally fast algorithms, one that a library chooses.
            winner = name
    return winner, seconds, theirs


def selection_file(title: str, ranks: int, winners: Mapping[str, Sequence[tuple[int, str]]]) -> str:
    """The text of a selection file: (size, algorithm) of each operation for a number of ranks.

    An entry is used up to the geometric mean of its size and the next one. Other numbers of ranks
    use Open MPI 5's choice.
    """
    lines = [f"# Fastest in simulation: {title}."]
    for op, found in winners.items():
        entries = []
        for i, (size, name) in enumerate(found):
            following = found[i + 1] if i + 1 < len(found) else None
            if following is None:
                entries.append(f"else:{name}")
            elif following[1] != name:
                middle = round((max(size, 1) * following[0]) ** 0.5)
                entries.append(f"<={middle}:{name}")
        lines += [op, f"    P == {ranks}  {' '.join(entries)}", "    else  ompi5"]
    return "\n".join(lines) + "\n"
