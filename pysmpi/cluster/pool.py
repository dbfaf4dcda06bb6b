"""Processes of this computer that answer requests, for work without a scheduler of Dask.

No port is opened: requests and answers go through pipes.
"""

from __future__ import annotations

from collections import deque
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any

from pysmpi.cluster.workers import Server, ServerEnded
from pysmpi.own_process import interruption

_SLICE = 0.1  # (s) of a wait, after which it is checked whether a signal has arrived


class ServerPool:
    """At most `count` servers of a module (see `Server`); a context manager that ends them."""

    def __init__(self, module: str, count: int) -> None:
        self.module = module
        self.count = count
        self._idle: list[Server] = []
        self._busy: dict[Any, tuple[Server, object]] = {}  # by connection
        self._waiting: deque[tuple[object, object]] = deque()

    def submit(self, tag: object, request: object) -> None:
        """Have a request answered."""
        self._waiting.append((tag, request))

    def next(self) -> tuple[Any, Any]:
        """Wait for an answer; return the tag of its request, and the answer or a `ServerEnded`.

        KeyboardInterrupt if a signal has arrived.
        """
        while True:
            while self._waiting and len(self._busy) < self.count:
                self._send(*self._waiting.popleft())
            interruption.check()
            for connection in wait(list(self._busy), _SLICE):
                server, tag = self._busy.pop(connection)
                try:
                    answer = server.connection.recv()
                except (EOFError, OSError):
                    server.close()
                    return tag, ServerEnded(server.process.returncode)
                self._idle.append(server)
                return tag, answer

    def _send(self, tag: object, request: object) -> None:
        server = self._idle.pop() if self._idle else Server(self.module, {}, ends_with_this=True)
        self._busy[server.connection] = server, tag
        try:
            server.connection.send(request)
        except OSError:
            pass  # it has ended: so says its connection

    def __enter__(self) -> ServerPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        servers = [*self._idle, *(server for server, _ in self._busy.values())]
        for server in servers:
            server.process.terminate()
        for server in servers:
            server.close()
