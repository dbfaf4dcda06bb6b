"""State of chapters for each rank, communicator, world or universe.

A chapter declares its state once, at module level, and accesses it with its static type:

    NAMES: StateSlot[Rank, dict[Type, str]] = StateSlot(Rank, dict)
    ...
    NAMES.of(rank)[record] = "row"

Lower layers therefore do not depend on the chapters above them. The state of an owner is made at
the first use: unused state costs nothing.

This module is compiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar

from pysmpi.mpi.base.owners import Owner

O = TypeVar("O", bound=Owner)  # noqa: E741
T = TypeVar("T")

_DECLARED: Counter[type[Owner]] = Counter()
_KEPT: dict[type[Owner], set[int]] = {}


class StateSlot(Generic[O, T]):
    """One kind of state for every owner of a class.

    `make` makes the state of an owner that has none yet; without it the state must be `put`. State
    that is `kept` remains when the owner forgets its state at its end.
    """

    __slots__ = ("_common", "_index", "_make")

    def __init__(
        self, owner: type[O], make: Callable[[], T] | None = None, *, kept: bool = False
    ) -> None:
        self._index = _DECLARED[owner]
        self._make = make
        self._common: tuple[object, ...] = ()  # the state of owners that have no other
        _DECLARED[owner] += 1
        if kept:
            _KEPT.setdefault(owner, set()).add(self._index)

    def of(self, owner: O) -> T:
        """The state of an owner, made if necessary; LookupError if there is no `make`."""
        state = owner.state
        index = self._index
        result: T | None = state[index] if index < len(state) else None
        if result is None:
            if self._make is None:
                raise LookupError("the owner has no such state")
            result = self._make()
            self.put(owner, result)
        return result

    def peek(self, owner: O) -> T | None:
        """The state of an owner, or None if there is none."""
        state = owner.state
        return state[self._index] if self._index < len(state) else None

    def put(self, owner: O, value: T) -> None:
        """Make `value` the state of an owner."""
        state = owner.state
        missing = self._index + 1 - len(state)
        if missing > 0 or state.__class__ is tuple:
            # A new list: one that grows has room for more.
            state = owner.state = [*state, *[None] * missing]
        state[self._index] = value

    def put_common(self, owner: O, value: T) -> None:
        """Make `value`, which other owners have too, the state of an owner.

        It takes no memory as long as the owner has no other state.
        """
        index = self._index
        common = self._common
        if owner.state.__class__ is list or len(owner.state) not in (0, index + 1):
            self.put(owner, value)
        elif len(common) > 0 and common[index] is value:
            owner.state = common
        else:
            self._common = owner.state = (*[None] * index, value)

    def clear(self, owner: O) -> None:
        """Let an owner have no state again."""
        state = owner.state
        if self._index < len(state):
            if state.__class__ is tuple:
                state = owner.state = list(state)
            state[self._index] = None


def forget(owner: O, kind: type[O]) -> None:
    """Release the state of an owner, except kept state."""
    kept = _KEPT.get(kind, ())
    state = owner.state
    if state.__class__ is tuple and len(state) - 1 in kept:
        return
    owner.state = [state[i] if i in kept else None for i in range(max(kept, default=-1) + 1)
                   if i < len(state)]  # fmt: skip
    # Here, not by the assignment: finalizers of the program may use the owner.
    if state.__class__ is list:
        state.clear()
