"""The extra time of code after the simulator has run, which a process of its own does not have.

Between two blocks of a rank, the simulator and other ranks run in the same process. They replace
instructions in the first-level cache, and what the processor has learnt about branches. The block
after them takes longer, until all code that it uses has run once. A rank of a real MPI library
waits in a short loop, so its caches stay warm.

This module measures the effect on this computer: a sequence of different operations takes H when it
runs again and again, and H + E after the compiler of Python has run. A block that takes T contains

    most (1 - exp(-share T / most)),  share = E / (H + E),  most = CODE E

so short blocks contain a share, and long ones, which repeat their code, a constant. After a call of
less than 10 us it is less in proportion. CODE was fitted to blocks of 13 programs under a real MPI
library and in the simulator. Fits to random halves of them left 8 to 13 % (root mean square) in the
compute of the other half, which was 19 to 32 % off before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median
from time import perf_counter_ns

from pysmpi.python.records import record

GROUPS, TURNS = 3, 9
CODE = 1.75
MOST_SHARE = 0.6  # more comes from a disturbed measurement
_TEXT = "\n".join(
    f"def f{i}(x, y={i}):\n    return [z + {i} for z in x if z > y]" for i in range(4)
)


@record(frozen=True)
class Coldness:
    """The share of a short block, and the most of a long one (ns), that are due to cold caches."""

    share: float
    most: float


class _Box:
    def __init__(self, items: list[int]) -> None:
        self.items = items
        self.seen: dict[str, int] = {}

    def note(self, key: str, value: int) -> int:
        self.seen[key] = value
        return len(self.seen)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def total(self) -> int:
        return sum(self.items)


def _text() -> object:
    return ",".join(f"{one:.3f}" for one in (0.5, 1.5, 2.25)).split(",")


def _numbers() -> object:
    return math.hypot(3.0, 4.0) + math.fsum((0.1, 0.2)) + float("1.5e3") + round(2.675, 2)


def _order() -> object:
    return sorted([3, 1, 2, 9, 4], key=lambda one: -one), max((2, 7, 5)), list(reversed((1, 2)))


def _tables() -> object:
    table = dict(zip("abcdef", range(6)))
    table.update(g=7)
    table.pop("a")
    return sorted(table.items())


def _sets() -> object:
    return {1, 2, 3} & {2, 3, 4}, frozenset("abc") | {"d"}


def _large_integers() -> object:
    return pow(3, 200, 1_000_003), (1 << 90) // 7, (12345678901234567890).to_bytes(9, "big")


def _objects() -> object:
    box = _Box([1, 2, 3])
    box.note("x", 1)
    box.note("y", 2)
    return len(box) + box.total


def _errors() -> object:
    try:
        return int("no")
    except ValueError as error:
        return str(error)


def _memory() -> object:
    memory = bytearray(b"abcdefgh" * 4)
    return bytes(memoryview(memory)[2:6]), memory.find(b"gh"), memory.replace(b"a", b"z")


def _words() -> object:
    words = "{} {:5d} {!r} {:x}".format("a", 42, 1.5, 255)
    return words, "Text Of Words".title().center(20).strip().lower()


def _generators() -> object:
    def squares(count: int) -> Iterator[int]:
        for one in range(count):
            yield one * one

    return list(squares(5)), tuple(map(abs, (-1, 2))), any(one > 3 for one in squares(4))


_OPERATIONS = (
    _text, _numbers, _order, _tables, _sets, _large_integers, _objects, _errors, _memory, _words,
    _generators,
)  # fmt: skip
_measured: Coldness | None = None


def measured_coldness() -> Coldness:
    """The coldness of this computer, measured once in a process."""
    global _measured
    if _measured is None:
        _measured = measure()
    return _measured


def measure() -> Coldness:
    """Measure the sequence of operations cold and then warm, in groups of turns.

    The median of a group counts, and the group with the least: other work of the computer only
    makes code colder.
    """
    return min((_group() for _ in range(GROUPS)), key=lambda one: one.most)


def _group() -> Coldness:
    pairs = [_cold_and_warm() for _ in range(TURNS)]
    extra = max(median(cold - warm for cold, warm in pairs), 0)
    warm = median(warm for _, warm in pairs)
    return Coldness(min(extra / (warm + extra), MOST_SHARE), CODE * extra)


def _cold_and_warm() -> tuple[int, int]:
    """The time (ns) of the sequence after other code, and after itself."""
    compile(_TEXT, "text", "exec")
    cold = _sequence()
    _sequence()
    return cold, _sequence()


def _sequence() -> int:
    """The time (ns) of all operations, each once."""
    begin = perf_counter_ns()
    for operation in _OPERATIONS:
        operation()
    return perf_counter_ns() - begin
