"""The integers of handles: those of predefined ones, and those that a rank gives to its own."""

from __future__ import annotations

from typing import Any

from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot

_MASK = 0xFFFFFFFF


class Table:
    """The integers of the handles of one family.

    Those of the predefined handles are the same for all ranks; any other handle gets its integer
    from the calling rank, as in a separate process.
    """

    __slots__ = ("null", "first", "given", "_numbers", "_impls")

    def __init__(self, kind: int, null: int) -> None:
        self.null = null
        self.first = 0x80000000 | kind << 26
        self.given = False  # whether a rank has given out a number
        self._numbers: dict[int, int] = {id(None): null}
        self._impls: dict[int, object] = {null: None}

    def define(self, impl: object, number: int) -> None:
        """Give a predefined object its number; a second name keeps the first number."""
        number &= _MASK
        self._impls.setdefault(number, impl)
        self._numbers.setdefault(id(impl), number)

    def number(self, impl: object) -> int:
        """The integer of `impl`, which stays alive until the rank forgets the integer."""
        found = self._numbers.get(id(impl))
        if found is None:
            own = self._own()
            self.given = True
            found = own.numbers.get(id(impl))
            if found is None:
                found = own.numbers[id(impl)] = self.first + own.given
                own.impls[found] = impl
                own.given += 1
        return found

    def find(self, number: int) -> Any:
        """The object with this number; KeyError if there is none."""
        if number in self._impls:
            return self._impls[number]
        return self._own().impls[number]

    def forget(self, impl: object) -> None:
        """Remove an object and its number."""
        if not self.given:
            return
        own = NUMBERS.of(current()).get(self.first)
        if own is not None:
            number = own.numbers.pop(id(impl), None)
            if number is not None:
                del own.impls[number]

    def _own(self) -> OwnNumbers:
        tables = NUMBERS.of(current())
        own = tables.get(self.first)
        if own is None:
            own = tables[self.first] = OwnNumbers()
        return own


class OwnNumbers:
    """The integers that a rank has given to handles of one family."""

    __slots__ = ("given", "numbers", "impls")

    def __init__(self) -> None:
        self.given = 0
        self.numbers: dict[int, int] = {}
        self.impls: dict[int, object] = {}


NUMBERS: StateSlot[Rank, dict[int, OwnNumbers]] = StateSlot(Rank, dict)  # by the first of a family
