"""Checkpoints with a log of messages: what was sent since the latest checkpoint can be sent again.

Rank 0 logs. Rank 1 computes: it tells the logger of each step and waits until it is noted. Rank 2
measures, and sends what it measures without waiting; its notes belong to the checkpoint interval in
which it has measured. The computing rank ends an interval after some steps; the logger then drops
the notes of the interval before the last one, and tells both ranks.

The error: the number of an interval in a note has one bit, as only two intervals are kept. A note
that is late by two intervals is taken for one of the present interval. With the argument `right` it
has all bits, and a late note is dropped.
"""

from __future__ import annotations

import sys

from mpi4py import MPI

LOGGER, COMPUTER, SENSOR = 0, 1, 2
STEP, CUT, NOTE, END = 1, 2, 3, 4
STEPS = 8  # of an interval
INTERVALS = 4


class Log:
    """The notes of two intervals."""

    def __init__(self, right: bool) -> None:
        self.right = right
        self.interval = 0
        self.notes: dict[int, list[tuple[int, int]]] = {0: []}
        self.dropped = 0

    def key(self, interval: int) -> int:
        return interval if self.right else interval % 2

    def cut(self) -> None:
        """A checkpoint: the interval before the last one is not needed any more."""
        self.interval += 1
        for key in list(self.notes):
            if key not in (self.key(self.interval), self.key(self.interval - 1)):
                self.dropped += len(self.notes.pop(key))
        self.dropped += len(self.notes.get(self.key(self.interval), []))
        self.notes[self.key(self.interval)] = []

    def note(self, key: int, true_interval: int, value: int) -> None:
        if key not in self.notes:
            self.dropped += 1
            return
        if key == self.key(self.interval) and true_interval != self.interval:
            raise ValueError(f"a note of interval {true_interval} in interval {self.interval}")
        self.notes[key].append((true_interval, value))

    def replay(self) -> int:
        """The number of notes that a restart would send again."""
        return sum(map(len, self.notes.values()))


class Logger:
    """Takes notes as they come."""

    def __init__(self, comm: MPI.Comm, right: bool) -> None:
        self.comm = comm
        self.log = Log(right)
        self.cuts: list[MPI.Request] = []

    def run(self) -> int:
        status = MPI.Status()
        open_ranks, steps, notes = 2, 0, 0
        while open_ranks:
            body = self.comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            if status.tag == STEP:
                steps += 1
                self.comm.send(self.log.interval, dest=COMPUTER, tag=STEP)
            elif status.tag == CUT:
                self.log.cut()
                self.cuts.append(self.comm.isend(self.log.interval, dest=SENSOR, tag=CUT))
            elif status.tag == NOTE:
                notes += 1
                self.log.note(self.log.key(body[0]), *body)
            else:
                open_ranks -= 1
        MPI.Request.waitall(self.cuts)
        assert self.log.replay() + self.log.dropped == notes
        return steps


def compute(comm: MPI.Comm) -> int:
    """All steps, in intervals."""
    done = 0
    for interval in range(INTERVALS):
        for _ in range(STEPS):
            comm.send(None, dest=LOGGER, tag=STEP)
            assert comm.recv(source=LOGGER, tag=STEP) == interval
            done += 1
        comm.send(None, dest=LOGGER, tag=CUT)
    comm.send(None, dest=LOGGER, tag=END)
    return done


def measure(comm: MPI.Comm) -> None:
    """One note at the beginning of each interval."""
    notes = [comm.isend((0, 100), dest=LOGGER, tag=NOTE)]
    for _ in range(INTERVALS):
        interval = comm.recv(source=LOGGER, tag=CUT)
        if interval < INTERVALS:
            notes.append(comm.isend((interval, 100 + interval), dest=LOGGER, tag=NOTE))
    MPI.Request.waitall(notes)
    comm.send(None, dest=LOGGER, tag=END)


def main() -> None:
    comm = MPI.COMM_WORLD
    if comm.size <= SENSOR:
        return
    steps = 0
    if comm.rank == LOGGER:
        steps = Logger(comm, "right" in sys.argv[1:]).run()
    elif comm.rank == COMPUTER:
        steps = -compute(comm)
    elif comm.rank == SENSOR:
        measure(comm)
    assert comm.allreduce(steps) == 0


main()
