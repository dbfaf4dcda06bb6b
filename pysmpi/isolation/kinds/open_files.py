"""The number of open descriptors of a rank, as `psutil.Process().num_fds()` gives it.

From its first use on, a descriptor that appears while a rank runs belongs to this rank. Those that
were open before count for all ranks, except for one that closes them; those that the exchange of
state opens belong to no rank.
"""

from __future__ import annotations

from collections import Counter

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds.descriptors import OWN
from pysmpi.own_process.descriptors import open_descriptors

_NOBODY = object()


class OpenFiles:
    """The states that opened the descriptors.

    It looks for changes whenever another state is shown: before its facets are exchanged, and after
    that.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
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

    def _begin(self) -> None:
        facets = self.exchange.facets
        others = dict(facets)
        facets.clear()
        facets["open files, before"] = _Look(self, by_last=True)
        facets.update(others)
        facets["open files, after"] = _Look(self, by_last=False)

    def count(self) -> int:
        """The number for the state that is shown."""
        if self._known is None:
            self._begin()
        shown = self.exchange.shown
        self.look(shown)
        own = sum(owner is shown for owner in self._owners.values())
        # One more: that of the directory, which a process counts while it looks.
        return self._first - self._closed[shown] + own + 1


class _Look:
    """One of the two looks, in the place of a facet."""

    def __init__(self, files: OpenFiles, by_last: bool) -> None:
        self._files = files
        self._by_last = by_last

    def show(self, last: object, state: object) -> None:
        """Another state follows: new descriptors belong to the last one, or to none."""
        self._files.look(last if self._by_last else _NOBODY)
