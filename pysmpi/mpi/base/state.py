"""What chapters keep for each rank, communicator, world or universe.

A chapter declares its state once, at module level, and asks for it with its static type:

    NAMES: StateSlot[Rank, dict[Type, str]] = StateSlot(Rank, dict)
    ...
    NAMES.of(rank)[record] = "row"

So what lies below need not know the chapters above it. The state of an owner is made at the first
use: what a program does not use costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Generic, TypeVar


class Owner:
    """Something of which chapters keep state. Only `StateSlot` looks into `state`."""

    __slots__ = ("state",)

    state: list[Any]  # by the index of the slot; None where there is nothing yet


O = TypeVar("O", bound=Owner)  # noqa: E741
T = TypeVar("T")

_DECLARED: Counter[type[Owner]] = Counter()
_KEPT: dict[type[Owner], set[int]] = {}


class StateSlot(Generic[O, T]):
    """The state of one kind that every owner of one class has.

    `make` gives the state of an owner that has none yet; without it somebody has to `put` it.
    What is `kept` stays when the owner forgets its state at its end.
    """

    __slots__ = ("_index", "_make")

    def __init__(
        self, owner: type[O], make: Callable[[], T] | None = None, *, kept: bool = False
    ) -> None:
        self._index = _DECLARED[owner]
        self._make = make
        _DECLARED[owner] += 1
        if kept:
            _KEPT.setdefault(owner, set()).add(self._index)

    def of(self, owner: O) -> T:
        """The state of an owner, made if there is none; LookupError if nothing makes it."""
        try:
            found: T | None = owner.state[self._index]
        except IndexError:
            found = None
        if found is None:
            if self._make is None:
                raise LookupError("nobody has given the owner this state")
            found = self._make()
            self.put(owner, found)
        return found

    def peek(self, owner: O) -> T | None:
        """The state of an owner, or None if there is none."""
        state = owner.state
        return state[self._index] if self._index < len(state) else None

    def put(self, owner: O, value: T) -> None:
        """Make `value` the state of an owner."""
        state = owner.state
        missing = self._index + 1 - len(state)
        if missing > 0:
            state += [None] * missing
        state[self._index] = value

    def clear(self, owner: O) -> None:
        """Let an owner have no state again."""
        if self._index < len(owner.state):
            owner.state[self._index] = None


def forget(owner: O, kind: type[O]) -> None:
    """Let go of the state of an owner, but for what is kept."""
    kept = _KEPT.get(kind, ())
    state = owner.state
    owner.state = [state[i] if i in kept else None for i in range(max(kept, default=-1) + 1)
                   if i < len(state)]  # fmt: skip
