"""Processes of a worker: each thread of the worker has one, which answers requests.

A process of one thread can fork, so that one piece of work can neither change another nor end the
worker.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from pysmpi.own_process.descendants import end_with_parent
from pysmpi.python.installed import environment
from pysmpi.version import __version__

_own = threading.local()


class ServerEnded(Exception):
    """The process ended before it answered."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class Server:
    """A process that runs a module; see `begin_serving`."""

    def __init__(
        self, module: str, variables: Mapping[str, str], ends_with_this: bool = False
    ) -> None:
        """Start it. With `ends_with_this` it is killed when the calling process ends.

        Only in a main thread.
        """
        self.connection, other = Pipe()
        parent = os.getpid() if ends_with_this else 0
        with other:
            # Interrupts from the terminal are for the client alone, which ends its servers.
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, str(other.fileno()), str(parent)],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**environment(), **variables},
            )

    def close(self) -> None:
        """End the process and its current work."""
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


def begin_serving() -> Connection:
    """The connection of a server, from its arguments: a descriptor, and its parent or 0."""
    descriptor, parent = map(int, sys.argv[1:])
    if parent:
        end_with_parent(parent)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    return Connection(descriptor)


def version() -> str:
    """The version of pysmpi on this worker."""
    return __version__
