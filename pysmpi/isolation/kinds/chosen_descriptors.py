"""Descriptors above 2 whose numbers a rank has chosen: `os.dup2(f, 50)`, `fcntl(f, F_DUPFD, 50)`.

Each rank has its own file under such a number. From the first choice of a number on, it is compared
and exchanged at every switch of ranks, with two or three calls of the operating system. Numbers
that the operating system chooses are not separate: all ranks draw from one table.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.kinds.kept_files import Kept
from pysmpi.isolation.state import Parts
from pysmpi.own_process.descriptors import is_open

_close, _dup2 = os.close, os.dup2
Keep = Callable[[int, tuple[Kept | None, ...]], Kept | None]


class ChosenDescriptors(Parts):
    """The files under the numbers that ranks have chosen.

    `keep(fd, known)` makes a duplicate of a file, or finds it among known ones; `let_go(kept)`
    closes one.
    """

    name = "chosen descriptors"
    polled = True

    def __init__(self, exchange: Exchange, keep: Keep, let_go: Callable[[Kept], None]) -> None:
        super().__init__(exchange)
        self.keep, self.let_go = keep, let_go
        self.base: dict[int, Kept | None] = {}  # the common files; None for none
        self.actual: dict[int, Kept | None] = {}  # that are in place

    def choosing(self, number: int, choose: Callable[[], Any]) -> Any:
        """Call a function of the running rank that puts a file under a number."""
        if number not in self.base:
            self.base[number] = self.actual[number] = self.keep(number, ())
            self.follow()
        answer = choose()
        self._note(self.exchange.shown, number)
        return answer

    def chosen(self, number: int) -> None:
        """The running rank has got a number that was free."""
        if number not in self.base:
            self.base[number] = self.actual[number] = None
            self.follow()
        self._note(self.exchange.shown, number)

    def _note(self, state: State, number: int) -> None:
        """Record the file that a state has under a number now."""
        before = self.actual[number]
        now = self.keep(number, (before,)) if is_open(number) else None
        if now is before:
            return
        self.actual[number] = now
        if state is self.exchange.outside:
            self.base[number] = now
            return
        own = self.own()
        old = own.get(number)
        own[number] = now
        if old is not None:
            self.let_go(old)

    def differs(self) -> bool:
        return True

    def record(self, state: State) -> None:
        for number in self.base:
            self._note(state, number)

    def install(self, value: dict[int, Kept | None]) -> None:
        for number in self.base:
            wanted = value.get(number, self.base[number])
            if wanted is self.actual[number]:
                continue
            with contextlib.suppress(OSError):
                if wanted is None:
                    _close(number)
                else:
                    _dup2(wanted.number, number, wanted.inheritable)
            self.actual[number] = wanted

    def forget(self, state: State) -> None:
        """Close the files of a rank that has ended."""
        for kept in state.own[self.name].values():
            if kept is not None and kept not in self.base.values():
                self.let_go(kept)
