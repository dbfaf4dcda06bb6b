"""Replay of time-independent traces: the kernel executes the actions of ranks, without programs.

A time-independent trace contains the computation (flop) and the messages (bytes) of each rank, but
no times. `sources` finds the lines of each rank, `actions` reads a line, `player` turns the lines
of a rank into schedules, and `replay` runs the players of all ranks on a machine.
"""

from __future__ import annotations

from pysmpi.replay.replay import Replay, ReplayResult

__all__ = ["Replay", "ReplayResult"]
