"""The part of a sweep that Dask's workers execute: a case goes to the server of the thread."""

from __future__ import annotations

from typing import Any

from pysmpi.cluster.workers import ServerEnded, ask


def run_remotely(request: dict[str, Any]) -> dict[str, Any]:
    """Run a case in the server of this thread; return its row."""
    try:
        row: dict[str, Any] = ask("pysmpi.sweeps.server", request)
    except ServerEnded as error:
        return {"exit_status": 70, "error": f"the process of the case ended: {error}"}
    return row
