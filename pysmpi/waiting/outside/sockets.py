"""Sockets of ranks: both ends of a connection may be in this one process.

While a call blocks, other ranks continue, see `outside/reactor.py`; a timeout counts in simulated
time.

Names of hosts of the simulated machine resolve to this computer.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.mpi.base import ranks
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.waiting.outside.descriptors import changing, is_ready
from pysmpi.waiting.outside.reactor import READ, WRITE, Reactor, reactor

_LOOPBACK = "127.0.0.1"
# Methods that wait for data, and which of their arguments are flags.
_RECEIVING = {
    "accept": 0,
    "recv": 1,
    "recv_into": 2,
    "recvfrom": 1,
    "recvfrom_into": 2,
    "recvmsg": 2,
}
_SENDING = {"sendto": 9, "sendmsg": 2}


def patch_socket(patches: Patches, module: ModuleType) -> None:
    """Give module `socket` the hosts of the simulation, and sockets that let others run."""
    _patch_names(patches, module)
    kind = module.socket
    for name, flags in _RECEIVING.items():
        if hasattr(kind, name):
            patches.set(kind, name, _patient(module, getattr(kind, name), flags, READ))
    for name, flags in _SENDING.items():
        if hasattr(kind, name):
            patches.set(kind, name, _patient(module, getattr(kind, name), flags, WRITE))
    patches.set(kind, "bind", _translated(kind.bind))
    for name in ("connect", "connect_ex"):
        patches.set(kind, name, _translated(_connecting(module, getattr(kind, name))))
    for name in ("close", "shutdown", "detach"):
        patches.set(kind, name, _telling(getattr(kind, name)))
    if hasattr(module, "MSG_DONTWAIT"):
        patches.set(kind, "sendall", _send_all(module, kind.sendall, kind.send))
        patches.set(kind, "send", _patient(module, kind.send, 1, WRITE))


def _patient(
    module: ModuleType, real: Callable[..., Any], flags: int, events: int
) -> Callable[..., object]:
    """A method of a socket that waits in simulated time, unless argument `flags` forbids it."""
    impatient = getattr(module, "MSG_DONTWAIT", 0)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        current = reactor()
        if current is None:
            return real(self, *args, **kwargs)
        given = args[flags] if len(args) > flags else kwargs.get("flags", 0)
        if not given & impatient:
            _wait(module, current, self, events, _end(current, self))
        changing(current)
        try:
            return real(self, *args, **kwargs)
        except BlockingIOError:
            current.missed([self.fileno()])
            raise
        finally:
            current.changed()

    return like(real, method)


def _send_all(
    module: ModuleType, real: Callable[..., Any], send: Callable[..., Any]
) -> Callable[..., object]:
    def sendall(self: Any, data: Any, flags: int = 0, /) -> None:
        current = reactor()
        if current is None:
            real(self, data, flags)
            return
        end = _end(current, self)
        with memoryview(data) as view, view.cast("B") as rest:
            begin = 0
            while begin < len(rest):
                _wait(module, current, self, WRITE, end)
                changing(current)
                try:
                    begin += send(self, rest[begin:], flags | module.MSG_DONTWAIT)
                except BlockingIOError:
                    if self.gettimeout() == 0.0:
                        raise
                finally:
                    current.changed()

    return like(real, sendall)


def _connecting(module: ModuleType, real: Callable[..., Any]) -> Callable[..., object]:
    """`connect` or `connect_ex`: begin without blocking, then wait."""
    raises = real.__name__ == "connect"

    def method(self: Any, address: Any, /) -> Any:
        current = reactor()
        timeout = self.gettimeout()
        if current is None or timeout == 0.0:
            answer = real(self, address)
            if current is not None:
                current.generation += 1
                current.changed()
            return answer
        changing(current)
        end = _end(current, self)
        self.settimeout(0.0)
        try:
            number = _begin_connecting(current, self, address, real, raises)
            if number in (errno.EINPROGRESS, errno.EWOULDBLOCK):
                while not is_ready(self.fileno(), WRITE):
                    if end is not None and current.engine.now >= end:
                        number = errno.EWOULDBLOCK
                        break
                    left = None if end is None else end - current.engine.now
                    current.wait([(self.fileno(), WRITE)], left)
                else:
                    number = self.getsockopt(module.SOL_SOCKET, module.SO_ERROR)
        finally:
            self.settimeout(timeout)
        current.generation += 1
        current.changed()
        if not raises:
            return number
        if number == errno.EWOULDBLOCK:
            raise module.timeout("timed out")
        if number:
            raise OSError(number, os.strerror(number))
        return None

    return like(real, method)


def _begin_connecting(
    found: Reactor, sock: Any, address: Any, real: Callable[..., Any], raises: bool
) -> int:
    """Begin to connect a non-blocking socket; return the error number, 0 for none."""
    while True:
        try:
            number = real(sock, address)
        except BlockingIOError as error:
            number = error.errno
        # A Unix socket with a full backlog returns EAGAIN, and has not begun to connect.
        if number != errno.EAGAIN or errno.EAGAIN == errno.EINPROGRESS:
            return number or 0
        found.missed([sock.fileno()])


def _telling(real: Callable[..., object]) -> Callable[..., object]:
    """A method after which others may find that their wait is over."""

    def method(self: object, *args: object, **kwargs: object) -> Any:
        current = reactor()
        if current is None:
            return real(self, *args, **kwargs)
        changing(current)
        try:
            return real(self, *args, **kwargs)
        finally:
            current.generation += 1
            current.changed()

    return like(real, method)


def _end(found: Reactor, sock: Any) -> float | None:
    """The date at which a socket that is used now reaches its timeout."""
    timeout = sock.gettimeout()
    return None if not timeout else found.now() + timeout


def _wait(module: ModuleType, found: Reactor, sock: Any, events: int, end: float | None) -> None:
    """Let others run until a socket is ready; at most until a date."""
    fd = sock.fileno()
    if fd < 0 or sock.gettimeout() == 0.0:
        return
    while not is_ready(fd, events):
        left = None if end is None else end - found.engine.now
        if left is not None and left <= 0.0:
            raise module.timeout("timed out")
        found.wait([(fd, events)], left)


# Names


def _is_simulated(name: object) -> bool:
    """Whether ranks run on a host with this name."""
    environment = here()
    if environment is None or not isinstance(name, str):
        return False
    if name == environment.host:
        return True
    universe = getattr(ranks.current(), "universe", None)
    return universe is not None and any(
        rank.host is not None and rank.host.name == name for rank in universe.ranks
    )


def _translated(real: Callable[..., object]) -> Callable[..., object]:
    """A method of a socket with an address that may name a simulated host."""

    def method(self: object, address: object, /) -> Any:
        if isinstance(address, tuple) and address and _is_simulated(address[0]):
            address = (_LOOPBACK, *address[1:])
        return real(self, address)

    return like(real, method)


def _patch_names(patches: Patches, module: ModuleType) -> None:
    real_name = module.gethostname

    def gethostname() -> str:
        environment = here()
        return real_name() if environment is None else environment.host

    patches.set(module, "gethostname", like(real_name, gethostname))
    for name in ("gethostbyname", "gethostbyname_ex", "getaddrinfo"):
        patches.set(module, name, _resolver(getattr(module, name)))


def _resolver(real: Callable[..., object]) -> Callable[..., object]:
    """A function that looks up a name, as its first argument."""

    def resolve(host: object, *args: object, **kwargs: object) -> object:
        return real(_LOOPBACK if _is_simulated(host) else host, *args, **kwargs)

    return like(real, resolve)
