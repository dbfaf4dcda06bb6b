"""The communication of a run as a graph: how many messages and bytes each rank sends to each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pysmpi.trace.events import EventRows, MessageRows, RankPlace, TracedCall, TracedRoute

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray

    from pysmpi.trace.model import Recording


class Communication:
    """The sums over the messages of a run; a format that a run or a replay can write to.

    `messages[a, b]` is the number of messages from rank a to rank b, `nbytes[a, b]` their bytes.
    They include the messages of collective and one-sided calls.
    """

    def __init__(self, ranks: int = 0) -> None:
        self.places: list[RankPlace] = []
        self.messages: NDArray[np.float64] = np.zeros((ranks, ranks))
        self.nbytes: NDArray[np.float64] = np.zeros((ranks, ranks))

    @classmethod
    def of(cls, recording: Recording) -> Communication:
        """The communication of a recording."""
        found = cls()
        found.begin(recording.places)
        for rows in recording.message_rows:
            found.add_messages(rows)
        return found

    def begin(self, places: Sequence[RankPlace]) -> None:
        """Ranks were started."""
        self.places += places
        missing = len(self.places) - len(self.messages)
        if missing > 0:
            self.messages = np.pad(self.messages, (0, missing))
            self.nbytes = np.pad(self.nbytes, (0, missing))

    def add_messages(self, rows: MessageRows) -> None:
        """Messages have left."""
        ends = np.asarray(rows.source, dtype=np.intp), np.asarray(rows.destination, dtype=np.intp)
        np.add.at(self.messages, ends, 1.0)
        np.add.at(self.nbytes, ends, np.asarray(rows.nbytes, dtype=np.float64))

    def add_events(self, rows: EventRows) -> None:
        """Events are no part of it."""

    def add_route(self, route: TracedRoute) -> None:
        """Routes are no part of it."""

    def call(self, call: TracedCall) -> None:
        """Calls are no part of it."""

    def end(self, ends: Sequence[float]) -> None:
        """The run is over."""

    def close(self) -> None:
        """There is no file."""

    def graph(self) -> nx.DiGraph:
        """A networkx graph: ranks with `host` and `core`, edges with `messages` and `bytes`."""
        import networkx

        graph = networkx.DiGraph()
        for place in self.places:
            graph.add_node(place.rank, host=place.host, core=place.core)
        for one, other in np.argwhere(self.messages > 0.0).tolist():
            graph.add_edge(
                one,
                other,
                messages=int(self.messages[one, other]),
                bytes=int(self.nbytes[one, other]),
            )
        return graph


def communication_graph(recording: Recording) -> nx.DiGraph:
    """The communication of a recorded run as a networkx graph.

    A vertex is a rank with its `host` and `core`; an edge from a rank to another has the number of
    `messages` and their `bytes`, those of collective and one-sided calls included.
    """
    return Communication.of(recording).graph()
