"""Schedules: the decisions of a run, as a short text that repeats it.

A text such as `o3,s1.4,12=2,40=1:9f3a` has, in this order and all optional:

- `o3`: the order of ranks that could continue at the same time;
- `s`: no standard send is buffered, or `s1.4`: these are not;
- `12=2`: step 12 takes option 2. All other steps take option 0;
- `:9f3a`: a checksum of the names of all options that were taken.

Choices count from 0; those with one option do not count. The schedule `default` has no deviation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable
from zlib import crc32

from pysmpi.errors import UsageError
from pysmpi.kernel.choices import ORDER, SEND, Alternative

DEFAULT = "default"
STEP = "step"
_FORM = "a schedule such as o3,s,12=2:9f3a, as a failing run prints it"


@dataclass(frozen=True)
class Decisions:
    """The deviations of a run from the default order."""

    order: int = 0
    sends: frozenset[int] | None = frozenset()  # that wait; None: all of them
    steps: dict[int, int] = field(default_factory=dict)
    checksum: str = ""

    def __str__(self) -> str:
        parts = [f"o{self.order}"] if self.order else []
        if self.sends is None:
            parts.append("s")
        elif self.sends:
            parts.append("s" + ".".join(map(str, sorted(self.sends))))
        parts += [f"{step}={option}" for step, option in sorted(self.steps.items())]
        return (",".join(parts) or DEFAULT) + (f":{self.checksum}" if self.checksum else "")

    @property
    def deviations(self) -> int:
        """The number of choices that deviate from the default."""
        return len(self.steps) + (self.order > 0) + (1 if self.sends is None else len(self.sends))

    @classmethod
    def parse(cls, text: str, where: str = "--replay-schedule") -> Decisions:
        """The schedule that a text describes; UsageError if it is none."""
        body, tilde, checksum = text.strip().partition(":")
        wrong = UsageError(f"{where}: expected {_FORM}, got {text!r}")
        if tilde and not re.fullmatch("[0-9a-f]{4}", checksum):
            raise wrong
        order, steps = 0, {}
        sends: frozenset[int] | None = frozenset()
        for part in [] if body == DEFAULT else body.split(","):
            if re.fullmatch(r"o[0-9]{1,18}", part):
                order = int(part[1:])
            elif part == "s":
                sends = None
            elif re.fullmatch(r"s[0-9]{1,18}(\.[0-9]{1,18})*", part):
                sends = frozenset(map(int, part[1:].split(".")))
            elif re.fullmatch(r"[0-9]{1,18}=[0-9]{1,18}", part):
                step, option = part.split("=")
                steps[int(step)] = int(option)
            else:
                raise wrong
        return cls(order, sends, steps, checksum)


@runtime_checkable
class ByRule(Protocol):
    """A strategy that decides the order of ranks and the sends that wait before it sees them.

    `rule` has both, as `Decisions` have them.
    """

    @property
    def rule(self) -> tuple[int, frozenset[int] | None]:
        """The order, and the sends."""
        ...


class Replayed:
    """The strategy that repeats a schedule.

    `impossible` is the first choice that did not have the option of the schedule: its number, the
    wanted option and the number of options.
    """

    def __init__(self, schedule: Decisions) -> None:
        self.schedule = schedule
        self.impossible: tuple[int, int, int] | None = None
        self._send = 0
        self._step = 0

    @property
    def rule(self) -> tuple[int, frozenset[int] | None]:
        """The order and the sends of the schedule."""
        return self.schedule.order, self.schedule.sends

    def begin(self, run: int, ranks: int) -> None:
        """Start with the first choice."""
        self._send = self._step = 0
        self.impossible = None

    def pick(self, kind: str, options: Sequence[Alternative]) -> int:
        """The option of the schedule."""
        if kind == ORDER:
            return self.schedule.order % len(options)
        if kind == SEND:
            number, self._send = self._send, self._send + 1
            return int(self.schedule.sends is None or number in self.schedule.sends)
        number, self._step = self._step, self._step + 1
        i = self.schedule.steps.get(number, 0)
        if i >= len(options):
            if self.impossible is None:
                self.impossible = number, i, len(options)
            return 0
        return i

    def end(self, pids: Sequence[int]) -> str:
        """Note nothing."""
        return ""


class ChoiceRecord:
    """Passes the choices of a run to a strategy, and records the decisions.

    `names` are the names of the options that were taken, `choices` the number of options and the
    taken one of every step with several options, `pids` the ranks of these. `differs(number, name,
    option)` is called for the first decision that is not the expected one.
    """

    def __init__(self, strategy: object) -> None:
        self.strategy = strategy
        self.expected: Sequence[str] = ()  # names of an earlier run of this schedule
        self.differs: Callable[[int, str, Alternative], object] | None = None
        self._pick = strategy.pick  # type: ignore[attr-defined]
        self.order = 0
        self.sends: list[int] = []
        self.choices: list[tuple[int, int]] = []
        self.names: list[str] = []
        self.pids: list[int] = []

    def pick(self, kind: str, options: Sequence[Alternative]) -> int:
        """Decide, and record it."""
        i: int = self._pick(kind, options) if len(options) > 1 else 0
        if kind == ORDER:
            self.order = i
        elif kind == SEND:
            self.sends.append(i)
        else:
            if len(options) > 1:
                self.choices.append((len(options), i))
                self.pids.append(options[i].pid)
            number = len(self.names)
            self.names.append(options[i].name)
            if number < len(self.expected) and self.expected[number] != options[i].name:
                wanted, self.expected = self.expected[number], ()
                if self.differs is not None:
                    self.differs(number, wanted, options[i])
        return i

    def schedule(self) -> Decisions:
        """The decisions, as a schedule that repeats them."""
        steps = {number: i for number, (_, i) in enumerate(self.choices) if i}
        waiting = frozenset(number for number, i in enumerate(self.sends) if i)
        everything = len(waiting) == len(self.sends) > 0
        return Decisions(self.order, None if everything else waiting, steps, self.checksum())

    def checksum(self) -> str:
        """Four digits that depend on the names of all options that were taken."""
        return checksum(self.names)


def checksum(names: Sequence[str]) -> str:
    """Four digits that depend on all names."""
    return f"{crc32(chr(10).join(names).encode()) & 0xFFFF:04x}"
