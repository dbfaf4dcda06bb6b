"""Barriers, and their specification: no process leaves before all have entered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence

from pysmpi.errors import UsageError
from pysmpi.memory.primitives.operations import (
    Program,
    Variable,
    fetch_and_add,
    load,
    mark,
    start,
    store,
)
from pysmpi.memory.primitives.programs.benchmarks import Step

Barrier = Callable[[int, dict[str, int]], Step]


def specification(processes: int) -> dict[Hashable, dict[str, Hashable]]:
    """The allowed marks of barriers of `processes` processes, as a labelled transition system.

    A state has the number of marks of each process, minus those that all have passed.
    """
    first = (0,) * processes
    result: dict[Hashable, dict[str, Hashable]] = {}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        if state in result:
            continue
        leaving: dict[str, Hashable] = {}
        for process, passed in enumerate(state):
            may_leave = min(state) >= passed
            if passed % 2 == 1 and not may_leave:
                continue
            new = [*state]
            new[process] += 1
            whole = min(new) // 2 * 2
            after = tuple(count - whole for count in new)
            leaving[f"{process} {'leaves' if passed % 2 else 'comes'}"] = after
            queue.append(after)
        result[state] = leaving
    return result


def repeated(
    name: str,
    description: str,
    processes: int,
    variables: Sequence[Variable],
    private: Callable[[], dict[str, int]],
    barrier: Barrier,
) -> Program:
    """Processes that call only `barrier(me, mine)`, repeatedly."""
    if processes < 2:
        raise UsageError(f"program {name}: expected at least 2 processes, got {processes}")

    def process(me: int) -> Step:
        mine = private()
        while True:
            yield start()
            yield mark(f"{me} comes")
            yield from barrier(me, mine)
            yield mark(f"{me} leaves")

    def made(me: int) -> Callable[[], Step]:
        return lambda: process(me)

    return Program(
        name,
        variables,
        [made(me) for me in range(processes)],
        unit="barrier",
        specification=specification(processes),
        description=description,
    )


def central(processes: int = 2) -> Program:
    """A counter; the last process resets it and then turns the flag that the others poll."""
    counter = Variable("count", 0, "counter", 0)
    flag = Variable("flag", 0, "flag", 0)

    def barrier(me: int, mine: dict[str, int]) -> Step:
        mine["sense"] = 1 - mine["sense"]
        if (yield fetch_and_add(counter, 1)) == processes - 1:
            yield store(counter, 0)
            yield store(flag, mine["sense"])
        else:
            while (yield load(flag)) != mine["sense"]:
                pass

    return repeated(
        "barrier-central", "barrier with a shared counter and a flag that changes sides",
        processes, [counter, flag], lambda: {"sense": 0}, barrier,
    )  # fmt: skip


def dissemination(processes: int = 2) -> Program:
    """In round r each process signals the process 2^r further, and waits for the one 2^r before.

    Two sets of flags alternate, and their meaning changes at every second use, so that no flag must
    be reset (Mellor-Crummey and Scott, Algorithms for scalable synchronization, 1991).
    """
    rounds = max(1, (processes - 1).bit_length())
    flags = [
        [
            [Variable(f"flag[{i}][{parity}][{r}]", 0, "flag", i) for r in range(rounds)]
            for parity in (0, 1)
        ]
        for i in range(processes)
    ]

    def barrier(me: int, mine: dict[str, int]) -> Step:
        parity, sense = mine["parity"], mine["sense"]
        for r in range(rounds):
            yield store(flags[(me + (1 << r)) % processes][parity][r], sense)
            while (yield load(flags[me][parity][r])) != sense:
                pass
        if parity == 1:
            mine["sense"] = 1 - sense
        mine["parity"] = 1 - parity

    return repeated(
        "barrier-dissemination", "barrier in rounds, by flags with one writer and one reader",
        processes, [flag for one in flags for two in one for flag in two],
        lambda: {"parity": 0, "sense": 1}, barrier,
    )  # fmt: skip
