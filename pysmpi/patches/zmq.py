"""Sockets of ZeroMQ (`zmq`), which wait in C.

Blocking calls are replaced by calls without waiting, which are repeated whenever the socket's
descriptor signals an event. Messages within a process (`inproc:`) come from other threads of the
rank; others go through threads of the library, in real time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from weakref import WeakSet

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.waiting.outside.descriptors import changing
from pysmpi.waiting.outside.peers import PeerSide
from pysmpi.waiting.outside.reactor import READ, URGENT, WRITE, Reactor, reactor

_POLLIN, _POLLOUT = 1, 2  # zmq.POLLIN, zmq.POLLOUT
_ending: WeakSet[object] = WeakSet()  # contexts


def _side(sockets: Iterable[object]) -> PeerSide:
    """The holders of the other ends of sockets."""
    inside = all(
        not isinstance(one, int)
        and hasattr(one, "last_endpoint")
        and bytes(one.last_endpoint or b"").startswith(b"inproc:")
        for one in sockets
    )
    return PeerSide.INSIDE if inside else PeerSide.OUTSIDE


@when_loaded("zmq.sugar.socket")
def patch_sockets(run: PatchedRun, module: Any) -> None:
    """Let other ranks continue during waits for sockets of `zmq.sugar.socket`."""
    import zmq

    kind = module.Socket
    once = int(zmq.DONTWAIT)

    def patiently(self: Any, real: Callable[[int], Any], flags: int, option: str) -> object:
        """The result of `real(flags)`, once it need not wait."""
        found = reactor()
        if found is None or self.closed:
            return real(flags)
        changing(found)
        if flags & once:
            try:
                return real(flags)
            except zmq.Again:
                found.missed([self.FD], _side([self]))
                raise
            finally:
                found.changed()
        timeout = int(getattr(self, option))  # milliseconds, -1 for ever
        end = None if timeout < 0 else found.now() + timeout * 1e-3
        while True:
            if self.context in _ending:
                raise zmq.ContextTerminated()
            try:
                answer = real(flags | once)
            except zmq.Again:
                if end is not None and found.engine.now >= end:
                    raise
            else:
                found.changed()
                return answer
            left = None if end is None else end - found.engine.now
            ended = partial(_ending.__contains__, self.context)
            found.wait([(self.FD, READ)], left, ended, _side([self]))

    real_send, real_recv, real_into = kind.send, kind.recv, kind.recv_into

    def send(self: object, data: object, flags: int = 0, *args: object, **kwargs: object) -> Any:
        def call(flags: int) -> Any:
            return real_send(self, data, flags, *args, **kwargs)

        return patiently(self, call, int(flags), "SNDTIMEO")

    def recv(self: object, flags: int = 0, *args: object, **kwargs: object) -> Any:
        def call(flags: int) -> Any:
            return real_recv(self, flags, *args, **kwargs)

        return patiently(self, call, int(flags), "RCVTIMEO")

    def recv_into(self: object, buffer: object, /, *, nbytes: int = 0, flags: int = 0) -> object:
        def call(flags: int) -> Any:
            return real_into(self, buffer, nbytes=nbytes, flags=flags)

        return patiently(self, call, int(flags), "RCVTIMEO")

    methods: dict[str, Callable[..., object]] = {"send": send, "recv": recv, "recv_into": recv_into}
    for name, new in methods.items():
        run.patches.set(kind, name, like(getattr(kind, name), new))


def _watched(sockets: Iterable[tuple[Any, int]]) -> list[tuple[int, int]]:
    """The descriptors of the polled objects, and the awaited events."""
    fds = []
    for one, events in sockets:
        if hasattr(one, "last_endpoint"):
            fds.append((one.FD, READ))
        else:
            wanted = (READ if events & _POLLIN else 0) | (WRITE if events & _POLLOUT else 0)
            fds.append((one if isinstance(one, int) else one.fileno(), wanted or URGENT))
    return fds


def _poll(found: Reactor, real: Callable[..., Any], sockets: Any, timeout: int) -> Any:
    sockets = list(sockets)
    changing(found)
    answer = real(sockets, 0)
    if answer or not sockets:
        return answer
    side = _side(one for one, _ in sockets)
    if timeout == 0:
        found.missed([fd for fd, _ in _watched(sockets)], side)
        return answer
    end = None if timeout < 0 else found.now() + timeout * 1e-3
    while True:
        left = None if end is None else end - found.engine.now
        came = found.wait(_watched(sockets), left, side=side)
        answer = real(sockets, 0)
        if answer or not came:
            return answer


@when_loaded("zmq.sugar.poll")
def patch_poll(run: PatchedRun, module: Any) -> None:
    """Let other ranks continue while a rank polls sockets."""
    real = module.zmq_poll
    if hasattr(real, "__wrapped__"):
        return

    def zmq_poll(sockets: object, timeout: int = -1) -> object:
        found = reactor()
        if found is None:
            return real(sockets, timeout)
        return _poll(found, real, sockets, timeout)

    _replace(run.patches, "zmq_poll", real, like(real, zmq_poll))


def _replace(patches: Patches, name: str, real: object, new: object) -> None:
    """Replace a function in all modules of `zmq` that hold it."""
    for holder, module in list(sys.modules.items()):
        if (
            "zmq" in holder
            and holder.partition(".")[0] == "zmq"
            and getattr(module, name, None) is real
        ):
            patches.set(module, name, new)


@when_loaded("zmq.sugar.context")
def patch_contexts(run: PatchedRun, module: Any) -> None:
    """Let a context end (`zmq.sugar.context`) after other threads have closed its sockets."""
    kind = module.Context
    real = kind.term

    def term(self: Any) -> None:
        """Close or terminate the context."""
        found = reactor()
        if found is not None and not self.closed:

            def over() -> bool:
                return all(one.closed for one in list(self._sockets or ()))

            _ending.add(self)
            found.changed()
            while not over():
                found.wait((), None, over, PeerSide.INSIDE)
        real(self)

    run.patches.set(kind, "term", like(real, term))


@when_loaded("zmq.backend")
def patch_backend(run: PatchedRun, module: Any) -> None:
    """Let other ranks continue during waits in functions of `zmq.backend`."""
    patch_poll(run, module)
    real = module.proxy

    def proxy(frontend: Any, backend: Any, capture: Any = None) -> object:
        """Start a zeromq proxy (replacement for device)."""
        found = reactor()
        if found is None:
            return real(frontend, backend, capture)
        sockets = [(frontend, _POLLIN), (backend, _POLLIN)]
        while True:
            for one, _ in module.zmq_poll(sockets):
                parts = one.recv_multipart()
                if capture is not None:
                    capture.send_multipart(parts)
                (backend if one is frontend else frontend).send_multipart(parts)

    _replace(run.patches, "proxy", real, like(real, proxy))
