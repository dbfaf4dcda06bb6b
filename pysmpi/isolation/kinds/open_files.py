"""The number of open descriptors of a rank, as `psutil.Process().num_fds()` gives it.

From its first use on, a descriptor that appears while a rank runs belongs to this rank. Those that
were open before count for all ranks, except for one that closes them; those that the exchange of
state opens belong to no rank.
"""

from __future__ import annotations

from collections import Counter

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.kinds.descriptors import OWN
from pysmpi.isolation.state import ProcessState
from pysmpi.own_process.descriptors import open_descriptors

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
