"""The part of a sweep that Dask's workers execute: a case goes to the server of the thread."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from multiprocessing import Pipe
from typing import Any

from pysmpi.version import HOME, __version__

_own = threading.local()
_servers: set[Server] = set()


class Server:
    """A process that runs the cases of one thread."""

    def __init__(self) -> None:
        self.connection, other = Pipe()
        place = os.path.dirname(HOME)
        path = os.environ.get("PYTHONPATH")
        environment = {**os.environ, "PYTHONPATH": f"{place}{os.pathsep}{path}" if path else place}
        with other:
            # Interrupts from the terminal are for the sweep alone, which ends its servers.
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pysmpi.sweeps.server", str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=environment,
            )
        _servers.add(self)

    def close(self) -> None:
        """End the process; it ends the case that it runs."""
        _servers.discard(self)
        self.connection.close()
        self.process.wait()


def run_remotely(request: dict[str, Any]) -> dict[str, Any]:
    """Run a case in the server of this thread; return its row."""
    server: Server | None = getattr(_own, "server", None)
    if server is None:
        server = _own.server = Server()
    try:
        server.connection.send(request)
        row: dict[str, Any] = server.connection.recv()
    except (EOFError, OSError):
        _own.server = None
        with contextlib.suppress(OSError):
            server.close()
        status = server.process.returncode
        return {"exit_status": 70, "error": f"the process of the case ended: status {status}"}
    return row


def end_servers() -> None:
    """End the servers of all threads of this process."""
    for server in list(_servers):
        server.process.terminate()
        server.close()


def version() -> str:
    """The version of pysmpi on this worker."""
    return __version__
