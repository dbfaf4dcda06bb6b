"""Stores of keys and values, which the ranks of a run share in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from pysmpi.isolation.loading.libraries import PatchedRun
from pysmpi.mpi.base.ranks import World, current
from pysmpi.mpi.base.state import StateSlot

# Stores of a world, by the address or the file that names them.
STORES: StateSlot[World, dict[object, object]] = StateSlot(World, dict)
_kinds: list[Callable[[], object]] = []  # the store in memory

FIRST, LONGEST = 1e-5, 0.1  # (s) between two looks at a store


def common(world: World) -> object:
    """The store of all ranks of a world."""
    return _store(world, None)


def _store(world: World, name: object) -> object:
    stores = STORES.of(world)
    if name not in stores:
        stores[name] = _kinds[-1]()
    return stores[name]


def _patient(kind: type[Any]) -> type[Any]:
    """A class of stores whose readers let other ranks continue until there is a value."""

    class Store(kind):  # type: ignore[misc]
        def get(self, key: str) -> bytes:
            self.wait([key])
            value: bytes = super().get(key)
            return value

        def multi_get(self, keys: list[str]) -> list[bytes]:
            return [self.get(key) for key in keys]

        def wait(self, keys: Iterable[str], timeout: timedelta | None = None) -> None:
            rank = current()
            keys = list(keys)
            end = rank.now() + (timeout or self.timeout).total_seconds()
            pause = FIRST
            while not self.check(keys):
                if rank.now() >= end:
                    raise _timed_out(keys)
                rank.sleep(pause)
                pause = min(2 * pause, LONGEST)

    Store.__name__ = Store.__qualname__ = kind.__name__
    return Store


def _timed_out(keys: list[str]) -> Exception:
    distributed: Any = sys.modules["torch.distributed"]

    kind: Any = getattr(distributed, "DistStoreError", RuntimeError)
    error: Exception = kind(f"wait timeout for keys: {', '.join(keys)}")
    return error


def install(run: PatchedRun, module: Any) -> None:
    """Let ranks make stores that they share."""
    distributed: Any = sys.modules["torch.distributed"]

    HashStore, PrefixStore = _patient(distributed.HashStore), _patient(distributed.PrefixStore)
    _kinds.append(HashStore)
    run.patches.call_back(_kinds.pop)
    real_tcp, real_file = distributed.TCPStore, distributed.FileStore

    def TCPStore(host_name: str, port: int, *args: object, **kwargs: object) -> object:  # noqa: N802
        rank = current()
        if rank.program is None:
            return real_tcp(host_name, port, *args, **kwargs)
        return _store(rank.world, (host_name, port))

    def FileStore(path: str, *args: object, **kwargs: object) -> object:  # noqa: N802
        rank = current()
        if rank.program is None:
            return real_file(path, *args, **kwargs)
        return _store(rank.world, path)

    new: dict[str, Callable[..., object]] = {
        "TCPStore": TCPStore,
        "FileStore": FileStore,
        "HashStore": HashStore,
        "PrefixStore": PrefixStore,
    }
    for name, replacement in new.items():
        real = getattr(distributed, name)
        for holder in (distributed, module, sys.modules.get("torch.distributed.rendezvous")):
            if getattr(holder, name, None) is real:
                run.patches.set(holder, name, replacement)
