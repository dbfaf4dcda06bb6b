"""The order of tasks and futures of `asyncio`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


class OrderedSet(set[object]):
    """A set that iterates in the order of insertion."""

    def __init__(self, things: Iterable[object] = ()) -> None:
        super().__init__()
        self._order: dict[object, None] = {}
        for thing in things:
            self.add(thing)

    def add(self, thing: object) -> None:
        super().add(thing)
        self._order[thing] = None

    def pop(self) -> object:
        for thing in self:
            self.remove(thing)
            return thing
        raise KeyError("pop from an empty set")

    def __iter__(self) -> Iterator[object]:
        return iter([thing for thing in self._order if thing in self])


@when_loaded("asyncio.tasks")
def order_tasks(run: PatchedRun, module: ModuleType) -> None:
    """Let `as_completed` begin its tasks, and `wait` return them, in the order of its argument.

    The sets that they use have the order of addresses, which changes between runs.
    """
    run.patches.set(module, "set", OrderedSet)
