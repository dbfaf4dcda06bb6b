"""The process of a rank in psutil, and the number of its open descriptors (`num_fds`).

From its first use on, a descriptor that appears while a rank runs belongs to this rank. Those that
were open before count for all ranks, except for one that closes them; those that the exchange of
state opens belong to no rank.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.kinds.descriptors import OWN
from pysmpi.isolation.kinds.rank_environment import FIRST_PID, here
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.isolation.simulator import process
from pysmpi.isolation.state import ProcessState
from pysmpi.own_process.descriptors import open_descriptors
from pysmpi.patching.lookalike import like

_NOBODY = object()


class OpenFiles(ProcessState):
    """The states that opened the descriptors.

    It looks for changes at each switch: when the values of the last rank are recorded, and after
    those of the next one are installed.
    """

    name = "open files"
    polled = after_others = True

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._owners: dict[int, object] = {}
        self._known: set[int] | None = None
        self._first = 0  # the number of those that were open before
        self._closed: Counter[object] = Counter()  # of these, how many each state has closed

    def look(self, state: object) -> None:
        """Note the open descriptors; new ones belong to a state."""
        now = set(open_descriptors() or ()) - OWN
        if self._known is None:
            self._known, self._first = now, len(now)
        known = self._known
        for fd in known - now:
            if self._owners.pop(fd, None) is None:
                self._closed[state] += 1
        for fd in now - known:
            self._owners[fd] = state
        self._known = now

    def initial(self, state: State) -> State:
        """A value for each state, so that `install` is called at each switch."""
        return state

    def differs(self) -> bool:
        return True

    def record(self, state: State) -> None:
        """The state ends to be shown: new descriptors are its own."""
        self.look(state)

    def install(self, value: object) -> None:
        """Other states have been installed: the descriptors that they opened are nobody's."""
        self.look(_NOBODY)

    def count(self) -> int:
        """The number for the state that is shown."""
        if self._known is None:
            self.follow()
        shown = self.exchange.shown
        self.look(shown)
        own = sum(owner is shown for owner in self._owners.values())
        # One more: that of the directory, which a process counts while it looks.
        return self._first - self._closed[shown] + own + 1


@when_loaded("psutil")
def patch_process(run: PatchedRun, module: Any) -> None:
    """Let `psutil` find a rank under its process number: the process is the simulator."""
    kind = module.Process
    real = kind._init

    def _init(self: Any, pid: int | None, _ignore_nsp: bool = False) -> None:
        rank_environment = here()
        mine = None if rank_environment is None else FIRST_PID + rank_environment.number
        if mine is None or pid not in (None, mine):
            real(self, pid, _ignore_nsp)
            return
        real(self, process(), _ignore_nsp)
        self._pid = mine
        self._hash = None

    run.patches.set(kind, "_init", like(real, _init))
    if not (hasattr(kind, "num_fds") and sys.platform.startswith("linux")):
        return
    real_count, files = kind.num_fds, OpenFiles(run.exchange)

    def num_fds(self: Any) -> int:
        rank_environment = here()
        if rank_environment is None or self._pid != FIRST_PID + rank_environment.number:
            return int(real_count(self))
        return files.count()

    run.patches.set(kind, "num_fds", like(real_count, num_fds))
