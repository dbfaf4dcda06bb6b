"""Pickling of objects in the lower-case calls: `MPI.Pickle` and `MPI.pickle`."""

from __future__ import annotations

import os
import pickle as _pickle
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pysmpi.mpi.base.constants import PROC_NULL
from pysmpi.mpi.base.exceptions import listed
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.memory import buffer
from pysmpi.mpi.calls import computing, mpi
from pysmpi.mpi.internal_errors import touches_program

if TYPE_CHECKING:
    from mpi4py.typing import Buffer

__all__ = ["Pickle", "pickle"]

# Buffers from this size on (bytes) travel outside of the pickle stream.
_THRESHOLD = 1024**2 // 4


class _Settings:
    """The functions and numbers of a pickler."""

    __slots__ = ("dumps", "loads", "protocol", "threshold")

    def __init__(
        self,
        dumps: Any = None,
        loads: Any = None,
        protocol: int | None = None,
        threshold: int | None = None,
    ) -> None:
        self.dumps = _pickle.dumps if dumps is None else dumps
        self.loads: Callable[..., Any] = _pickle.loads if loads is None else loads
        self.set_protocol(protocol)
        self.set_threshold(threshold)

    def set_protocol(self, protocol: int | None) -> None:
        """Set the protocol; None is the default, which only pickle's own dumps function has."""
        if protocol is None and self.dumps is _pickle.dumps:
            protocol = int(os.environ.get("MPI4PY_PICKLE_PROTOCOL", _pickle.HIGHEST_PROTOCOL))
        self.protocol = protocol

    def set_threshold(self, threshold: int | None) -> None:
        """Set the threshold; None is the default."""
        if threshold is None:
            threshold = int(os.environ.get("MPI4PY_PICKLE_THRESHOLD", _THRESHOLD))
        self.threshold = threshold


class Pickle:
    """Pickle/unpickle Python objects."""

    __slots__ = ("_own",)

    _own: _Settings

    def __new__(cls, *args: object, **kwargs: object) -> Pickle:
        self = object.__new__(cls)
        self._own = _Settings()
        return self

    def __init__(
        self,
        dumps: Callable[[Any, int], bytes] | None = None,
        loads: Callable[[object], object] | None = None,
        protocol: int | None = None,
        threshold: int | None = None,
    ) -> None:
        """Set the functions, the protocol and the threshold."""
        self._use(_Settings(dumps, loads, protocol, threshold))

    def _use(self, settings: _Settings) -> None:
        self._own = settings

    def _settings(self) -> _Settings:
        return self._own

    @mpi.local()
    @touches_program
    def dumps(self, obj: Any) -> bytes:
        """Serialize object to pickle data stream."""
        settings = self._settings()
        with computing():
            if settings.protocol is not None:
                return settings.dumps(obj, settings.protocol)
            return settings.dumps(obj)

    @mpi.local()
    @touches_program
    def loads(self, data: Buffer) -> Any:
        """Deserialize object from pickle data stream."""
        with computing():
            return self._settings().loads(data)

    @mpi.local()
    @touches_program
    def dumps_oob(self, obj: Any) -> tuple[bytes, list[buffer]]:
        """Serialize object to pickle data stream and out-of-band buffers."""
        settings = self._settings()
        protocol = settings.protocol
        if protocol is None:
            protocol = _pickle.HIGHEST_PROTOCOL
        buffers: list[buffer] = []

        def keep_in_band(exported: Any) -> bool:
            view = buffer.frombuffer(exported, readonly=memoryview(exported).readonly)
            if view.nbytes < settings.threshold:
                return True
            buffers.append(view)
            return False

        with computing():
            data = settings.dumps(obj, max(protocol, 5), buffer_callback=keep_in_band)
        return data, buffers

    @mpi.local()
    @touches_program
    def loads_oob(self, data: Buffer, buffers: Iterable[Any]) -> Any:
        """Deserialize object from pickle data stream and out-of-band buffers."""
        settings = self._settings()
        parts = None if buffers is None else listed(buffers)
        with computing():
            return settings.loads(data, buffers=parts)

    @property
    def PROTOCOL(self) -> int | None:
        """Protocol version."""
        return self._settings().protocol

    @PROTOCOL.setter
    def PROTOCOL(self, protocol: int | None) -> None:
        self._settings().set_protocol(protocol)

    @property
    def THRESHOLD(self) -> int:
        """Out-of-band threshold."""
        threshold: int = self._settings().threshold
        return threshold

    @THRESHOLD.setter
    def THRESHOLD(self, threshold: int | None) -> None:
        self._settings().set_threshold(threshold)


SETTINGS = StateSlot(Rank, _Settings)


class _RankPickle(Pickle):
    """The pickler of the lower-case calls: one object, with separate settings in every rank."""

    __slots__ = ()

    def _use(self, settings: _Settings) -> None:
        SETTINGS.put(current(), settings)

    def _settings(self) -> _Settings:
        return SETTINGS.of(current())


pickle = _RankPickle()


def pickled(obj: object, dest: int) -> bytes:
    """The message of an object for a rank; PROC_NULL gets none."""
    return dumped(obj) if dest != PROC_NULL else b""


def dumped(obj: object) -> bytes:
    """The pickled object, as a message: of a function of the program, it must be `bytes`."""
    data = pickle.dumps(obj)
    if not isinstance(data, bytes):
        raise TypeError(f"MPI.pickle: expected bytes, {type(data).__name__} found")
    return data
