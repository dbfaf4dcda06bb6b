"""OTF2 archives, for Vampir, Scalasca and other tools: needs otf2 (`pysmpi[otf2]`).

An archive `run.otf2` has definitions in `run.def` and events in the folder `run`. A host is a node
of the system tree, a rank a process of it, a thread a location. Each call is a region that is
entered and left; point-to-point messages are events of their sender, when they are posted, and of
their receiver, when they have arrived; blocking collective calls have their operation and
communicator.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from pysmpi.errors import UsageError
from pysmpi.python.extras import lacking
from pysmpi.trace.events import (
    COLLECTIVE,
    RankPlace,
    TracedCall,
    TracedCommunicator,
    TracedMessage,
)
from pysmpi.trace.formats import trace_format

TICKS: Final = 10**12  # a second
_SUFFIXES: Final = frozenset((".evt", ".def", ".snap", ".marker"))
_NO_ROOT: Final = 0xFFFFFFFF
_FIRST, _LAST = -1, 1 << 62

_Event = tuple[float, int, Callable[[Any], None]]


@trace_format("otf2", "an OTF2 archive, for Vampir and Scalasca", several=True)
class ArchiveFormat:
    """Collects one timeline and writes it when it is complete."""

    def __init__(self, path: str, compressed: bool = False) -> None:
        try:
            import otf2
        except ImportError:
            raise lacking("otf2", "otf2") from None
        self.otf2 = otf2
        self.anchor = Path(path)
        self.places: list[RankPlace] = []
        self.communicators: dict[int, TracedCommunicator] = {}
        self.calls: list[TracedCall] = []
        self.messages: list[TracedMessage] = []
        self.complete = False
        folder = self.anchor.with_suffix("")
        if folder.exists() and not (
            folder.is_dir() and all(one.suffix in _SUFFIXES for one in folder.iterdir())
        ):
            raise UsageError(
                f"--trace {path}: the events of the archive belong into {folder}, which holds "
                "other files; expected another name"
            )

    def begin(self, places: Sequence[RankPlace]) -> None:
        """Ranks were started."""
        self.places += places

    def communicator(self, communicator: TracedCommunicator) -> None:
        """A communication context; the first of a communicator describes it."""
        self.communicators.setdefault(communicator.communicator, communicator)

    def call(self, call: TracedCall) -> None:
        """A region."""
        # Only the collective operation of its work is needed.
        call.operations = [one for one in call.operations if one[0] == COLLECTIVE]
        self.calls.append(call)

    def transfer(self, transfer: TracedMessage) -> None:
        """The messages of collective calls belong to the calls."""
        if not transfer.collective and transfer.receive:
            self.messages.append(transfer)

    def end(self, ends: Sequence[float]) -> None:
        """Write everything."""
        self._remove()
        import _otf2  # type: ignore[import-untyped]

        archive = None
        try:
            with self.otf2.writer.open(
                str(self.anchor.parent), archive_name=self.anchor.stem, timer_resolution=TICKS
            ) as archive:
                _Archive(self, archive).write(ends)
        except _otf2.ErrorCodes.Error:
            if archive is not None:
                archive.close = lambda: None  # its finalizer would fail again
            # The library has no error of its own for a full disk.
            raise OSError(
                errno.EIO, "the library OTF2 could not write all files; is the disk full?"
            ) from None
        self.complete = True

    def close(self) -> None:
        """Remove an archive that is not complete."""
        if not self.complete:
            self._remove()

    def _remove(self) -> None:
        self.anchor.unlink(missing_ok=True)
        self.anchor.with_suffix(".def").unlink(missing_ok=True)
        folder = self.anchor.with_suffix("")
        if folder.is_dir():
            for one in folder.iterdir():
                one.unlink()
            os.rmdir(folder)


class _Archive:
    """The definitions and events of one archive."""

    def __init__(self, timeline: ArchiveFormat, archive: Any) -> None:
        self.timeline = timeline
        self.archive = archive
        self.otf2 = timeline.otf2
        self.definitions = archive.definitions
        self.locations: dict[tuple[int, int], Any] = {}
        self.groups: list[Any] = []
        self.regions: dict[tuple[str, str], Any] = {}
        self.comms: dict[int, Any] = {}
        self.events: dict[tuple[int, int], list[_Event]] = {}

    def write(self, ends: Sequence[float]) -> None:
        """Write the archive."""
        self._define_places()
        self._define_communicators()
        paradigm = self.otf2.Paradigm.USER
        program = self.definitions.region("program", paradigm=paradigm)
        for rank, end in enumerate(ends):
            last = _ticks(end)
            self._add(rank, 0, 0.0, _FIRST, lambda to: to.enter(0, program))
            self._add(rank, 0, end, _LAST, lambda to, last=last: to.leave(last, program))
        for number, call in enumerate(self.timeline.calls):
            self._call(number, call)
        for message in self.timeline.messages:
            self._message(message)
        for key, events in self.events.items():
            events.sort(key=lambda event: event[:2])
            writer = self.archive.event_writer_from_location(self._location(*key))
            for _, _, put in events:
                put(writer)

    def _add(self, rank: int, thread: int, date: float, order: int, put: Any) -> None:
        self.events.setdefault((rank, thread), []).append((date, order, put))

    def _define_places(self) -> None:
        root = self.definitions.system_tree_node("machine", class_name="machine")
        hosts: dict[str, Any] = {}
        for place in self.timeline.places:
            host = hosts.get(place.host)
            if host is None:
                host = hosts[place.host] = self.definitions.system_tree_node(
                    place.host, class_name="node", parent=root
                )
            group = self.definitions.location_group(f"rank {place.rank}", system_tree_parent=host)
            self.groups.append(group)
            self.locations[place.rank, 0] = self.definitions.location("main thread", group=group)

    def _location(self, rank: int, thread: int) -> object:
        found = self.locations.get((rank, thread))
        if found is None:
            found = self.locations[rank, thread] = self.definitions.location(
                f"thread {thread}", group=self.groups[rank]
            )
        return found

    def _define_communicators(self) -> None:
        otf2 = self.otf2
        ranks = range(len(self.timeline.places))
        mpi = otf2.Paradigm.MPI
        self.definitions.group(
            "ranks", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=mpi,
            members=[self.locations[rank, 0] for rank in ranks],
        )  # fmt: skip
        for number, one in self.timeline.communicators.items():
            group = self.definitions.group(
                one.name, group_type=otf2.GroupType.COMM_GROUP, paradigm=mpi,
                members=list(one.members),
            )  # fmt: skip
            self.comms[number] = self.definitions.comm(one.name, group=group)

    def _region(self, call: TracedCall) -> object:
        key = call.name, call.site
        found = self.regions.get(key)
        if found is None:
            file, _, line = call.site.rpartition(":")
            number = int(line) if line.isdigit() else 0
            found = self.regions[key] = self.definitions.region(
                call.name, paradigm=self.otf2.Paradigm.MPI, source_file=file or None,
                begin_line_number=number, end_line_number=number,
            )  # fmt: skip
        return found

    def _call(self, number: int, call: TracedCall) -> None:
        region = self._region(call)
        rank, thread = call.rank, call.thread
        start, end = _ticks(call.start), _ticks(call.end)
        self._add(rank, thread, call.start, 4 * number, lambda to: to.enter(start, region))
        for one in call.operations:
            _, _, context, _, background, arguments = one
            operation = getattr(self.otf2.CollectiveOp, arguments["op"].upper(), None)
            comm = self.comms.get(call.communicator)
            if background or operation is None or comm is None or thread:
                continue
            root = arguments.get("root", 0)
            if arguments["op"] not in ("bcast", "gather", "gatherv", "reduce", "scatter",
                                       "scatterv"):  # fmt: skip
                root = _NO_ROOT
            self._add(rank, thread, call.start, 4 * number + 1,
                      lambda to: to.mpi_collective_begin(start))  # fmt: skip
            self._add(
                rank, thread, call.end, 4 * number + 2,
                lambda to, operation=operation, comm=comm, root=root: to.mpi_collective_end(
                    end, operation, comm, root, call.sent, call.received
                ),
            )  # fmt: skip
            break  # a call for objects has several operations
        self._add(rank, thread, call.end, 4 * number + 3, lambda to: to.leave(end, region))

    def _message(self, message: TracedMessage) -> None:
        found = self.timeline.communicators.get(message.communicator)
        comm = self.comms.get(message.communicator)
        if found is None or comm is None:
            return
        if message.source not in found.members or message.destination not in found.members:
            return  # an intercommunicator: its messages have no communicator of both ends
        source = found.members.index(message.source)
        destination = found.members.index(message.destination)
        tag = message.tag & 0xFFFFFFFF
        arrived = max(message.end, message.ready)
        posted, done = _ticks(message.posted), _ticks(arrived)
        self._add(
            message.source, 0, message.posted, _LAST - 1,
            lambda to: to.mpi_send(posted, destination, comm, tag, message.nbytes),
        )  # fmt: skip
        self._add(
            message.destination, 0, arrived, _FIRST + 1 if arrived == 0.0 else _FIRST,
            lambda to: to.mpi_recv(done, source, comm, tag, message.nbytes),
        )  # fmt: skip


def _ticks(seconds: float) -> int:
    return round(seconds * TICKS)
