"""`select.select`, `poll` and `epoll`, upon which `selectors` and event loops build."""

from __future__ import annotations

import select
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.isolation.threads.locks import reduce_as
from pysmpi.patching.patches import Patches
from pysmpi.patching.replacing import Replacements, methods
from pysmpi.time.seconds import check_seconds
from pysmpi.waiting.outside.reactor import READ, URGENT, WRITE, Reactor, reactor

_MOST = 2**31 - 1  # (ms) of a timeout


def _patiently(
    found: Reactor,
    look: Callable[[], Any],
    fds: Callable[[], list[tuple[int, int]]],
    timeout: float | None,
) -> object:
    """The result of `look()`, after at most `timeout` seconds; `fds` are its descriptors."""
    answer = look()
    if _some(answer):
        return answer
    if timeout is not None and timeout <= 0.0:
        found.missed([fd for fd, _ in fds()])
        return answer
    end = None if timeout is None else found.now() + timeout
    while True:
        came = found.wait(fds(), None if end is None else end - found.engine.now)
        answer = look()
        if not came or _some(answer):
            return answer


def _plain(timeout: Any) -> float | None:
    """The number of a valid timeout."""
    return None if timeout is None else check_seconds(timeout)


def _is_timeout(timeout: Any, most: float | None = None, unit: float = 1.0) -> bool:
    """Whether Python's own function accepts a timeout; where it has a most, a negative one, too."""
    try:
        seconds = check_seconds(timeout) * unit
    except Exception:
        return False
    return seconds >= 0 if most is None else seconds <= most


def _some(answer: Any) -> bool:
    return any(answer) if isinstance(answer, tuple) else bool(answer)


def _select(real: Callable[..., Any]) -> Callable[..., object]:
    def select_(rlist: Any, wlist: Any, xlist: Any, timeout: Any = None, /) -> object:
        current = reactor()
        if current is None:
            return real(rlist, wlist, xlist, timeout)
        if timeout is not None and not _is_timeout(timeout):
            return real(rlist, wlist, xlist, timeout)  # raises the error
        try:
            lists = [list(rlist), list(wlist), list(xlist)]
        except TypeError:
            return real(rlist, wlist, xlist, 0)  # raises the error

        def fds() -> list[tuple[int, int]]:
            return [
                (one if isinstance(one, int) else one.fileno(), events)
                for members, events in zip(lists, (READ, WRITE, URGENT), strict=True)
                for one in members
            ]

        return _patiently(current, lambda: real(*lists, 0), fds, _plain(timeout))

    return select_


class _Poll:
    """A polling object of a rank."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self._fds: dict[int, int] = {}

    def register(self, fd: Any, eventmask: int = READ | URGENT | WRITE, /) -> None:
        """Register a file descriptor with the polling object."""
        self._real.register(fd, eventmask)
        self._fds[_number(fd)] = eventmask

    def modify(self, fd: Any, eventmask: int, /) -> None:
        """Modify an already registered file descriptor."""
        self._real.modify(fd, eventmask)
        self._fds[_number(fd)] = eventmask

    def unregister(self, fd: Any, /) -> None:
        """Remove a file descriptor being tracked by the polling object."""
        self._real.unregister(fd)
        self._fds.pop(_number(fd), None)

    def poll(self, timeout: float | None = None, /) -> Any:
        """Polls the set of registered file descriptors; `timeout` is in milliseconds."""
        current = reactor()
        if current is None:
            return self._real.poll(timeout)
        if timeout is not None and not _is_timeout(timeout, _MOST * 1e-3, 1e-3):
            return self._real.poll(timeout)  # raises the error, or does not wait
        seconds = _plain(timeout)
        seconds = None if seconds is None or seconds < 0 else seconds * 1e-3
        return _patiently(
            current, lambda: self._real.poll(0), lambda: list(self._fds.items()), seconds
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduce_as(self._real, self, _Poll, protocol)

    def __reduce__(self) -> Any:
        return self.__reduce_ex__(0)


_Poll.__name__ = _Poll.__qualname__ = "poll"
_Poll.__module__ = "select"


def _number(fd: Any) -> int:
    return fd if isinstance(fd, int) else fd.fileno()


def _make_poll(real: Callable[[], Any]) -> Callable[[], object]:
    def poll() -> Any:
        return real() if reactor() is None else _Poll(real())

    return poll


def _epoll_poll(real: Callable[..., Any]) -> Callable[..., object]:
    def poll(self: Any, timeout: Any = None, maxevents: int = -1) -> Any:
        """Wait for events on the epoll file descriptor."""
        current = reactor()
        if current is None or self.closed:
            return real(self, timeout, maxevents)
        if timeout is not None and not _is_timeout(timeout, _MOST * 1e-3):
            return real(self, timeout, maxevents)  # raises the error
        seconds = _plain(timeout)
        if seconds is not None and seconds < 0:
            seconds = None
        fds = [(self.fileno(), READ)]
        return _patiently(current, lambda: real(self, 0, maxevents), lambda: fds, seconds)

    return poll


def patch_selectors(patches: Patches, module: ModuleType, replacements: Replacements) -> None:
    """Make module `selectors` use the functions of ranks."""
    replacements.inside(module)


def install(patches: Patches, replacements: Replacements) -> None:
    """Let other ranks continue during waits for descriptors, until the patches are undone."""
    replacements.function(select, "select", _select)
    replacements.function(select, "poll", _make_poll)
    if hasattr(select, "epoll"):
        methods(patches, select.epoll, {"poll": _epoll_poll(select.epoll.poll)})
