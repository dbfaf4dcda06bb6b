"""The part of a sweep that Dask's workers execute: a case goes to the server of the thread."""

from __future__ import annotations

from typing import Any

from pysmpi.cluster.workers import ServerEnded, ask

SERVER = "pysmpi.sweeps.server"

Row = dict[str, Any]


def run_remotely(request: dict[str, Any]) -> Row:
    """Run a case in the server of this thread; return its row."""
    try:
        row: Row = ask(SERVER, request)
    except ServerEnded as error:
        return lost_row(error)
    return row


def lost_row(error: ServerEnded) -> Row:
    """The row of a case whose server has ended."""
    return {"exit_status": 70, "error": f"the process of the case ended: {error}"}
