"""Sockets of module `ssl`, which wait in C.

A call that would block is tried again when the socket is ready; meanwhile other ranks continue.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.waiting.outside.descriptors import changing
from pysmpi.waiting.outside.reactor import READ, WRITE, reactor

_METHODS = ("read", "write", "send", "do_handshake", "unwrap")


def patch_ssl(patches: Patches, module: ModuleType) -> None:
    """Let secure sockets of ranks wait in simulated time."""
    kind = module.SSLSocket
    for name in _METHODS:
        patches.set(kind, name, _patient(module, getattr(kind, name)))


def _patient(module: ModuleType, real: Callable[..., Any]) -> Callable[..., object]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        current = reactor()
        if current is None or self.fileno() < 0:
            return real(self, *args, **kwargs)
        timeout = self.gettimeout()
        end = None if not timeout else current.now() + timeout
        while True:
            changing(current)
            self.settimeout(0.0)
            try:
                return real(self, *args, **kwargs)
            except (module.SSLWantReadError, module.SSLWantWriteError) as error:
                wanted = READ if isinstance(error, module.SSLWantReadError) else WRITE
                if timeout == 0.0:
                    current.missed([self.fileno()])
                    raise
            finally:
                if self.fileno() >= 0:
                    self.settimeout(timeout)
                current.changed()
            left = None if end is None else end - current.engine.now
            if left is not None and left <= 0.0:
                raise TimeoutError(f"The {real.__name__} operation timed out")
            current.wait([(self.fileno(), wanted)], left)

    return like(real, method)
