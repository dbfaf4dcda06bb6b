"""Whose private modules `sys.modules` shows.

The interpreter knows one table of modules, and much reads it: the import statement, `pickle`,
`dataclasses`, programs themselves. Exchanging the private modules at every switch of ranks would
cost each of millions of switches; so the table is brought up to date only when somebody is about
to look: `show` is called by the import function and by the attribute `sys.modules`
(see `interpreter.py`).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pysmpi.mpi import rank as ranks

_MISSING = object()


class ModuleView:
    """The table of modules, showing the private ones of one rank at a time.

    `turn` counts how often it passed from one rank to another.
    """

    def __init__(self, table: dict[str, Any], outer: dict[str, ModuleType | None]) -> None:
        self.table = table
        self.outer = outer  # private modules of whoever called the run
        self.shared: set[str] = set(table) - set(outer)
        self.shown: Any = ranks.outside
        self.private = outer  # those of the rank that is shown
        self.turn = 0
        self.seeds: dict[str, Any] = {}  # entries that every rank has to begin with
        self._others = len(self.shared)  # entries of the table that are not private

    def current(self) -> dict[str, Any]:
        """The table, as the rank that is running should see it."""
        rank = ranks.current()
        if rank is not self.shown:
            self.show(rank)
        return self.table

    def show(self, rank: Any) -> None:
        """Put the private modules of `rank` in the place of those that are shown."""
        table = self.table
        self.collect()
        surroundings = rank.program
        incoming = self.outer if surroundings is None else surroundings.modules
        if not incoming:
            incoming.update(self.seeds)
        for name in self.private:
            if name not in incoming:
                del table[name]
        table.update(incoming)
        self._others = len(table) - len(incoming)
        self.private = incoming
        self.shown = rank
        self.turn += 1

    def collect(self) -> None:
        """Note what happened to the private modules since they were shown."""
        table = self.table
        private = self.private
        for name in list(private):
            module = table.get(name, _MISSING)
            if module is _MISSING:
                del private[name]
            else:
                private[name] = module
        if len(table) != self._others + len(private):
            self._sort_out_strangers()

    def _sort_out_strangers(self) -> None:
        """Decide about entries that came into the table without an import.

        Those of a shared package belong to it (`six.moves`); others the program made, such as
        `sys.modules["cupy"] = None`.
        """
        shared = self.shared
        for name in self.table.keys() - shared - self.private.keys():
            value = self.table[name]
            if isinstance(value, ModuleType) and name.partition(".")[0] in shared:
                shared.add(name)
            else:
                self.private[name] = value

    def close(self) -> None:
        """Show the modules of the caller of the run again."""
        self.show(ranks.outside)

    def take(self, name: str) -> None:
        """Make a shared module private to the rank that is shown."""
        self.collect()
        self.shared.discard(name)
        self.private[name] = self.table[name]
        self._others = len(self.table) - len(self.private)
