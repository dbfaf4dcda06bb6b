"""Sockets of ranks: both ends of a connection may be in this one process.

A call that would block lets simulated time pass instead, in steps that grow, until it would not;
so the rank at the other end can do its part. Where nothing else happens in the simulation, real
time passes as well, for connections with processes outside.

Hosts of the simulated machine go by their names, and are all this computer.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.mpi import rank as ranks
from pysmpi.runtime.patches import Patches
from pysmpi.runtime.surroundings import here

_LOOPBACK = "127.0.0.1"
_FIRST_STEP, _LAST_STEP = 1e-7, 1e-3  # seconds of simulated time between two looks
_REAL_WAIT = 0.01  # seconds of real time
# Methods that wait for data, and which of their arguments are flags.
_RECEIVING = {
    "accept": 0,
    "recv": 1,
    "recv_into": 2,
    "recvfrom": 1,
    "recvfrom_into": 2,
    "recvmsg": 2,
}


def patch_socket(patches: Patches, module: ModuleType) -> None:
    """Give module `socket` the hosts of the simulation, and sockets that let others run."""
    _patch_names(patches, module)
    kind = module.socket
    for name, flags in _RECEIVING.items():
        if hasattr(kind, name):
            patches.set(kind, name, _patient(module, getattr(kind, name), flags))
    for name in ("bind", "connect", "connect_ex"):
        patches.set(kind, name, _translated(getattr(kind, name)))
    if hasattr(module, "MSG_DONTWAIT"):
        patches.set(kind, "sendall", _send_all(module, kind.sendall, kind.send))
        patches.set(kind, "send", _patient(module, kind.send, 1, writing=True))


def _patient(
    module: ModuleType, real: Callable[..., Any], flags: int, writing: bool = False
) -> Callable[..., Any]:
    """A method of a socket that waits in simulated time, unless argument `flags` forbids it."""
    impatient = getattr(module, "MSG_DONTWAIT", 0)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = args[flags] if len(args) > flags else kwargs.get("flags", 0)
        if here() is not None and not given & impatient:
            _wait(module, self, writing)
        return real(self, *args, **kwargs)

    return _like(real, method)


def _send_all(
    module: ModuleType, real: Callable[..., Any], send: Callable[..., Any]
) -> Callable[..., Any]:
    def sendall(self: Any, data: Any, flags: int = 0, /) -> None:
        if here() is None:
            real(self, data, flags)
            return
        with memoryview(data) as view, view.cast("B") as rest:
            begin = 0
            while begin < len(rest):
                _wait(module, self, True)
                try:
                    begin += send(self, rest[begin:], flags | module.MSG_DONTWAIT)
                except BlockingIOError:
                    if self.gettimeout() == 0.0:
                        raise

    return _like(real, sendall)


def _wait(module: ModuleType, sock: Any, writing: bool) -> None:
    """Let others run until a socket is ready; its own timeout counts in simulated time."""
    timeout = sock.gettimeout()
    if timeout == 0.0 or sock.fileno() < 0 or _is_ready(sock, writing, 0.0):
        return
    rank = ranks.current()
    waited, step = 0.0, _FIRST_STEP
    while not _is_ready(sock, writing, 0.0):
        if timeout is not None and waited >= timeout:
            raise module.timeout("timed out")
        engine = rank.engine
        if step == _LAST_STEP and engine.quiet_until(engine.now + step):
            _is_ready(sock, writing, _REAL_WAIT)
        rank.sleep(step)
        waited += step
        step = min(2 * step, _LAST_STEP)


def _is_ready(sock: Any, writing: bool, timeout: float) -> bool:
    watched = [sock]
    readable, writable, _ = select.select(
        [] if writing else watched, watched if writing else [], [], timeout
    )
    return bool(readable or writable)


# Names


def _is_simulated(name: Any) -> bool:
    """Whether a name is that of a host on which ranks run."""
    surroundings = here()
    if surroundings is None or not isinstance(name, str):
        return False
    if name == surroundings.host:
        return True
    universe = getattr(ranks.current(), "universe", None)
    return universe is not None and any(
        rank.host is not None and rank.host.name == name for rank in universe.ranks
    )


def _translated(real: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a socket whose address may name a simulated host."""

    def method(self: Any, address: Any, /) -> Any:
        if isinstance(address, tuple) and address and _is_simulated(address[0]):
            address = (_LOOPBACK, *address[1:])
        return real(self, address)

    return _like(real, method)


def _patch_names(patches: Patches, module: ModuleType) -> None:
    real_name = module.gethostname

    def gethostname() -> str:
        surroundings = here()
        return real_name() if surroundings is None else surroundings.host

    patches.set(module, "gethostname", _like(real_name, gethostname))
    for name in ("gethostbyname", "gethostbyname_ex", "getaddrinfo"):
        patches.set(module, name, _resolver(getattr(module, name)))


def _resolver(real: Callable[..., Any]) -> Callable[..., Any]:
    """A function that looks up a name, as its first argument."""

    def resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
        return real(_LOOPBACK if _is_simulated(host) else host, *args, **kwargs)

    return _like(real, resolve)


def _like(real: Callable[..., Any], new: Callable[..., Any]) -> Callable[..., Any]:
    new.__name__ = new.__qualname__ = real.__name__
    new.__doc__ = real.__doc__
    return new
