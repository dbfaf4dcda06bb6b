"""Schedules of GOAL in the binary form, which `txt2bin` of LogGOPSim writes and LogGOPSim reads.

All numbers are little-endian. The file begins with a number that marks it, the number of ranks, the
most processors and network cards of a rank, and two offsets for each rank: the begin and the end of
its part. They count from the end of the mark. A part has the numbers of its operations and of those
that require nothing, the latter operations, a record for each operation, and the operations that
others release.
"""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from pysmpi.errors import UsageError
from pysmpi.kernel.matching import ANY
from pysmpi.replay.goal_schedule import CALC, RECV, SEND, GoalSchedule

T = TypeVar("T", bound=np.generic)

_MARK: Final = (4223).to_bytes(8, "little")
_NUMBER: Final = np.dtype("<u4")
_OFFSET: Final = np.dtype("<u8")
_RECORD: Final = np.dtype(
    [
        ("missing", "<u4"), ("kind", "u1"), ("peer", "<u4"), ("amount", "<u8"), ("tag", "<u4"),
        ("cpu", "u1"), ("nic", "u1"), ("ends", "<u4"), ("first_end", "<u4"), ("starts", "<u4"),
        ("first_start", "<u4"),
    ]
)  # fmt: skip
_KINDS: Final = {1: SEND, 2: RECV, 3: CALC}
_ANY: Final = 0xFFFFFFFF  # a source or a tag


def is_binary_goal(path: str) -> bool:
    """Whether a file begins with the mark of the binary form."""
    try:
        with open(path, "rb") as stream:
            return stream.read(len(_MARK)) == _MARK
    except OSError:
        return False  # the reader of the text says why


def read_binary_goal(path: str) -> list[GoalSchedule]:
    """The schedules of all ranks. Raises UsageError for a file that is cut off or damaged."""
    return _File(path).schedules()


class _File:
    def __init__(self, path: str) -> None:
        self.path = path
        self.data = np.fromfile(path, np.uint8)[len(_MARK) :]

    def wrong(self, problem: str) -> UsageError:
        return UsageError(f"{self.path}: a binary schedule of GOAL, but {problem}")

    def take(self, offset: int, kind: np.dtype[T], count: int) -> NDArray[T]:
        """Some values from an offset on."""
        end = offset + count * kind.itemsize
        if end > len(self.data):
            raise self.wrong(
                f"it ends after {len(self.data) + len(_MARK)} bytes: expected at least "
                f"{end + len(_MARK)}"
            )
        return self.data[offset:end].view(kind)

    def schedules(self) -> list[GoalSchedule]:
        (ranks,) = self.take(0, _NUMBER, 1).tolist()
        if not ranks:
            raise self.wrong("it has no rank")
        table = _NUMBER.itemsize + 2  # after the numbers of processors and network cards
        offsets = self.take(table, _OFFSET, 2 * ranks).tolist()
        return [self.schedule(rank, offsets[2 * rank], ranks) for rank in range(ranks)]

    def schedule(self, rank: int, offset: int, ranks: int) -> GoalSchedule:
        count, roots = self.take(offset, _NUMBER, 2).tolist()
        offset += (2 + roots) * _NUMBER.itemsize
        records = self.take(offset, _RECORD, count)
        edges = int(records["ends"].sum(dtype=np.uint64) + records["starts"].sum(dtype=np.uint64))
        released = self.take(offset + count * _RECORD.itemsize, _NUMBER, edges)
        self.check(rank, ranks, records, released)
        schedule = GoalSchedule()
        schedule.unit = "operation"
        schedule.kinds = [_KINDS[kind] for kind in records["kind"].tolist()]
        schedule.amounts = records["amount"].tolist()
        schedule.peers = [ANY if peer == _ANY else peer for peer in records["peer"].tolist()]
        schedule.tags = [ANY if tag == _ANY else tag for tag in records["tag"].tolist()]
        schedule.cpus = records["cpu"].tolist()
        schedule.missing = records["missing"].tolist()
        schedule.lines = list(range(1, count + 1))
        for name, first, after in (
            ("ends", "first_end", schedule.after_end),
            ("starts", "first_start", schedule.after_start),
        ):
            for number in np.flatnonzero(records[name]).tolist():
                begin = int(records[first][number])
                after[number] = released[begin : begin + int(records[name][number])].tolist()
        return schedule

    def check(
        self, rank: int, ranks: int, records: NDArray[np.void], released: NDArray[np.uint32]
    ) -> None:
        """Raise UsageError for the first operation that cannot be."""
        count = len(records)
        kinds, peers = records["kind"], records["peer"]
        calc, send = kinds == 3, kinds == 1
        known_peer = calc | (peers < ranks) | (~send & (peers == _ANY))
        released_by = [
            records[first].astype(np.uint64) + records[name]
            for name, first in (("ends", "first_end"), ("starts", "first_start"))
        ]
        problems = {
            "is neither a send, a receive nor a calc": (kinds < 1) | (kinds > 3),
            f"has a peer that is no rank from 0 to {ranks - 1}": ~known_peer,
            "sends with any tag": send & (records["tag"] == _ANY),
            "releases operations that the file does not have": (
                ((records["ends"] > 0) & (released_by[0] > len(released)))
                | ((records["starts"] > 0) & (released_by[1] > len(released)))
            ),
        }
        for problem, rows in problems.items():
            for row in np.flatnonzero(rows).tolist():
                raise self.wrong(f"operation {row + 1} of rank {rank} {problem}")
        if len(released) and int(released.max()) >= count:
            raise self.wrong(f"rank {rank} releases an operation beyond its {count}")
        times = np.bincount(released, minlength=count)
        for row in np.flatnonzero(times != records["missing"]).tolist():
            raise self.wrong(
                f"operation {row + 1} of rank {rank} requires {records['missing'][row]} others, "
                f"and {times[row]} release it"
            )
