"""Replay of recordings of pysmpi: the kernel executes the operations of threads.

docs/reference/recording.md describes the records. A recording holds the kernel operations of each
call, so that a replay on the machine of the recording takes the same time. On another machine,
compute takes as many flops, collective calls use the algorithms that are selected there, and other
time passes unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pysmpi.kernel.process import Process
from pysmpi.replay.recorded_common import RecordedCommon
from pysmpi.replay.recorded_player import RecordedPlayer
from pysmpi.replay.recorded_trace import RecordedTrace

if TYPE_CHECKING:
    from pysmpi.collectives.selection import Selection


class RecordedInstance(RecordedCommon):
    """One replayed recording with its players."""

    def __init__(self, trace: RecordedTrace, begin: float, selection: Selection) -> None:
        super().__init__(trace, selection)
        self.name = trace.name
        self.begin = begin
        self.size = trace.nprocs
        self.players: list[RecordedPlayer] = []
        trace.on_thread = self._start_thread

    def cast(self, processes: Sequence[Process], hosts: Sequence[int]) -> None:
        """Make the players of the ranks' main threads; `hosts` numbers the host of each rank."""
        self.processes = list(processes)
        self.hosts = hosts
        for rank, process in enumerate(processes):
            self.players.append(RecordedPlayer(self, rank, 0, process))
        for player in list(self.players):
            player.start(self.begin)

    def _start_thread(self, rank: int, thread: int) -> None:
        main = self.processes[rank]
        process = Process(main.engine, main.pid, main.slot, main.core)
        main.core.residents += 1
        player = RecordedPlayer(self, rank, thread, process)
        self.players.append(player)
        engine = main.engine
        player.start(self.begin, engine.now - self.begin)
