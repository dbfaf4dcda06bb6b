"""Processes of a worker: each thread of the worker has one, which answers requests.

A process of one thread can fork, so that one piece of work can neither change another nor end the
worker.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing import Pipe
from typing import Any

from pysmpi.installed import environment
from pysmpi.version import __version__

_own = threading.local()
_servers: set[Server] = set()


class ServerEnded(Exception):
    """The process ended before it answered."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class Server:
    """A process that runs a module, whose argument is the number of a connection."""

    def __init__(self, module: str, variables: Mapping[str, str]) -> None:
        self.connection, other = Pipe()
        with other:
            # Interrupts from the terminal are for the client alone, which ends its servers.
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**environment(), **variables},
            )
        _servers.add(self)

    def close(self) -> None:
        """End the process and its current work."""
        _servers.discard(self)
        self.connection.close()
        self.process.wait()


def ask(module: str, request: object, variables: Mapping[str, str] | None = None) -> Any:
    """The answer of this thread's server of a module; ServerEnded if it has none.

    The server begins at the first request, with these environment variables.
    """
    servers: dict[Any, Server] = _own.__dict__
    key = f"{module} {variables}"
    server = servers.get(key)
    if server is None:
        server = servers[key] = Server(module, variables or {})
    try:
        server.connection.send(request)
        return server.connection.recv()
    except (EOFError, OSError):
        del servers[key]
        with contextlib.suppress(OSError):
            server.close()
        raise ServerEnded(server.process.returncode) from None


def end_servers() -> None:
    """End the servers of all threads of this process."""
    for server in list(_servers):
        server.process.terminate()
        server.close()


def version() -> str:
    """The version of pysmpi on this worker."""
    return __version__
