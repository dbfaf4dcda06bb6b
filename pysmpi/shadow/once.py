"""Functions with the same result on every rank, run once: `--once`.

The n-th call of a rank with some arguments counts as the same as the n-th call with such arguments
on every other rank. The first ranks that make the call run it. The others are charged the mean of
the measured times, and share the result.

A result is stored as a pickle with separate array data: each rank loads its own objects around
shared data. The data is read-only or, on request, mapped copy-on-write. All ranks share one object
if it cannot be pickled.
"""

from __future__ import annotations

import mmap
import os
import pickle
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.mpi.base.ranks import Rank
from pysmpi.shadow.keys import key_function
from pysmpi.shadow.outputs import ArrayWatch
from pysmpi.shadow.passes import Guard, Shadow
from pysmpi.shadow.targets import OnceTarget
from pysmpi.time.figures import OnceFigures

_MAPPED = 1 << 16  # smallest size of data that is mapped (bytes)

_shape_of = key_function("shape")


class SharedResult:
    """A result that all ranks share."""

    def __init__(self, result: object, writable: bool) -> None:
        self.alone = False  # whether it could not be pickled, and is one object for all
        self._writable = writable
        self._buffers: list[object] = []
        self._files: list[int] = []
        buffers: list[pickle.PickleBuffer] = []
        try:
            self._pickle = pickle.dumps(result, 5, buffer_callback=buffers.append)
        except Exception:
            self.alone = True
            self._result = result
            return
        for buffer in buffers:
            self._buffers.append(self._store(buffer.raw()))
        self.nbytes = sum(buffer.raw().nbytes for buffer in buffers)

    def _store(self, data: memoryview) -> object:
        if self._writable and data.nbytes >= _MAPPED and hasattr(os, "memfd_create"):
            file = os.memfd_create("pysmpi-once")
            self._files.append(file)
            os.ftruncate(file, data.nbytes)
            with mmap.mmap(file, data.nbytes) as whole:
                whole[:] = data
            return file, data.nbytes
        return bytes(data)

    def take(self) -> object:
        """The result, for one rank."""
        if self.alone:
            return self._result
        return pickle.loads(self._pickle, buffers=[self._own(kept) for kept in self._buffers])

    def _own(self, kept: Any) -> object:
        if isinstance(kept, tuple):
            file, nbytes = kept
            return mmap.mmap(file, nbytes, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        return bytearray(kept) if self._writable else kept

    def same(self, result: object) -> bool:
        """Whether another rank's result is the same, by comparing pickles.

        Two results that cannot be pickled count as the same; if only one can, they differ.
        """
        buffers: list[pickle.PickleBuffer] = []
        try:
            data = pickle.dumps(result, 5, buffer_callback=buffers.append)
        except Exception:
            return self.alone
        if self.alone or len(buffers) != len(self._buffers):
            return False
        for buffer, kept in zip(buffers, self._buffers):
            if isinstance(kept, tuple):
                with mmap.mmap(kept[0], kept[1], mmap.MAP_PRIVATE) as mapped:
                    if bytes(mapped) != bytes(buffer.raw()):
                        return False
            elif bytes(buffer.raw()) != kept:
                return False
        return data == self._pickle

    def close(self) -> None:
        """Release the memory; arrays of ranks stay valid."""
        for file in self._files:
            os.close(file)
        self._files.clear()


class _Call:
    """One call that all ranks make."""

    __slots__ = ("shared", "ran", "taken", "nanoseconds", "host")

    def __init__(self) -> None:
        self.shared: SharedResult | None = None
        self.ran = 0
        self.taken = 0
        self.nanoseconds = 0.0  # of compute, all runs together
        self.host = 0


class Once:
    """One function that has the same result on every rank."""

    def __init__(
        self, shadow: Shadow, target: OnceTarget, ranks: int, reader: bool = False
    ) -> None:
        self.shadow = shadow
        self.target = target
        self.ranks = ranks
        self.reader = reader  # whether each rank makes its own result if it cannot be pickled
        self._calls: dict[Hashable, _Call] = {}
        self._turns: dict[Hashable, int] = {}
        self.ran = 0
        self.shared = 0
        self.charged = 0.0
        self.saved = 0.0
        self.alone = False

    def call(
        self,
        rank: Rank,
        function: Callable[..., object],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> Any:
        """A call of the function by a rank."""
        shadow = self.shadow
        with shadow.paused():
            key = _identity(args, kwargs)
            turn = self._turns.get((rank.pid, key), 0)
            self._turns[rank.pid, key] = turn + 1
            call = self._calls.get((key, turn))
            if call is None:
                call = self._calls[key, turn] = _Call()
            if call.ran >= self.target.iters and not self._apart(call):
                return self._share(call, (key, turn))
            watch = ArrayWatch(args, kwargs)
        guard = Guard(rank, self.target.name, shadow)
        rank.timer = guard
        try:
            result = function(*args, **kwargs)
        finally:
            guard.end()
        with shadow.paused():
            if watch.written():
                raise self._refused("writes to its arguments, expected a function that returns")
            self.ran += 1
            call.ran += 1
            call.nanoseconds += guard.measured()
            call.host += guard.host
            return self._keep(call, (key, turn), result, rank)

    def _keep(self, call: _Call, key: Hashable, result: object, rank: Rank) -> object:
        if call.shared is None:
            call.shared = SharedResult(result, self.target.writable)
            self.alone = self.alone or call.shared.alone
        elif self._apart(call):
            pass
        elif not call.shared.same(result):
            raise self._refused(
                f"gives a different result on rank {rank.pid} than on the rank before, "
                "expected a function with the same result on every rank"
            )
        return self._take(call, key, result)

    def _refused(self, why: str) -> UsageError:
        error = UsageError(f"--once {self.target.name}: {why}")
        self.shadow.failure = self.shadow.failure or error
        return error

    def _apart(self, call: _Call) -> bool:
        """Whether each rank needs its own result, such as an open file."""
        return self.reader and call.shared is not None and call.shared.alone

    def _share(self, call: _Call, key: Hashable) -> object:
        cost = call.nanoseconds / call.ran
        self.shared += 1
        self.charged += cost * 1e-9
        self.saved += call.host * 1e-9 / call.ran
        self.shadow.clock.charge(round(cost))
        return self._take(call, key)

    def _take(self, call: _Call, key: Hashable, result: object = None) -> Any:
        assert call.shared is not None
        if self._apart(call):
            return result
        result = call.shared.take()
        call.taken += 1
        if call.taken == self.ranks:
            call.shared.close()
            del self._calls[key]
        return result

    def close(self) -> None:
        """The run is over."""
        for call in self._calls.values():
            if call.shared is not None:
                call.shared.close()

    def report(self) -> OnceFigures:
        """The figures of this function."""
        return {
            "place": self.target.name,
            "ran": self.ran,
            "shared": self.shared,
            "charged_seconds": self.charged,
            "saved_seconds": self.saved,
            "one_object_for_all": self.alone,
        }


def _identity(args: tuple[object, ...], kwargs: Mapping[str, object]) -> Hashable:
    """The key of a call: the values of arguments, or their shapes if they have no values.

    Arguments that are names of files represent the contents of the files.
    """
    files = []
    for arg in args:
        if isinstance(arg, str | os.PathLike):
            try:
                found = os.stat(arg)
                files.append((os.path.abspath(arg), found.st_mtime_ns, found.st_size))
            except (OSError, ValueError):
                pass
    try:
        values = pickle.dumps((args, dict(kwargs)), 5)
    except Exception:
        return _shape_of(args, kwargs), tuple(files)
    from hashlib import blake2b

    return blake2b(values, digest_size=16).digest(), tuple(files)


# Functions of libraries that read a file, given by its name.
READERS = (
    "numpy:load", "numpy:loadtxt", "numpy:genfromtxt", "numpy:fromfile",
    "pathlib:Path.read_bytes", "pathlib:Path.read_text",
    "scipy.io:loadmat", "scipy.io:mmread", "scipy.sparse:load_npz",
    "pandas:read_csv", "pandas:read_parquet",
)  # fmt: skip


def names_file(args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
    """Whether a call gets a file by its name, and only reads it."""
    first = args[0] if args else next(iter(kwargs.values()), None)
    if not isinstance(first, str | os.PathLike) or kwargs.get("mmap_mode") is not None:
        return False
    return os.path.isfile(first)
