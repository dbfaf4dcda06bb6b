"""Probes: tests for a message that leave it in its queue (MPI 4.1, section 3.8)."""

from __future__ import annotations

from typing import Any

from pysmpi.kernel.matching import hopeless
from pysmpi.kernel.requests import Receive
from pysmpi.mpi.base.constants import ANY_TAG, PROC_NULL
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.point_to_point.envelopes import interrupted, new_receive
from pysmpi.mpi.point_to_point.operations import describe
from pysmpi.mpi.point_to_point.polling import look


def wait_for_message(
    comm: object, rank: Rank, source: int, tag: int, status: Status | None
) -> Receive | None:
    """Wait for a message and describe it in `status`.

    Returns the probe, which refers to the message, or None if the source is PROC_NULL.
    """
    probe = _new_probe(comm, rank, source, tag, status)
    if probe is not None:
        process = rank.process
        process.finish_compute()
        rank.engine.post_probe(probe)
        process.wait([probe])
        describe(probe, status, False)
        if probe.message is None:
            interrupted(comm, probe)
    return probe


def look_for_message(
    comm: object, rank: Rank, source: int, tag: int, status: Status | None
) -> Receive | None:
    """Describe a message that has arrived in `status`.

    Returns the probe, whose `message` is None if there is no message, or None if the source is
    PROC_NULL.
    """
    probe = _new_probe(comm, rank, source, tag, status)
    if probe is not None:
        probe.message = look(rank, probe)
        if probe.message is not None:
            rank.polls = 0
            describe(probe, status, False)
        elif hopeless(probe):
            interrupted(comm, probe)
    return probe


def _new_probe(
    comm: Any, rank: Rank, source: int, tag: int, status: Status | None
) -> Receive | None:
    probe = new_receive(comm, comm._communicator(), rank.process, None, source, tag)
    if probe is None and status is not None:
        status._fill(PROC_NULL, ANY_TAG, 0)
    return probe
