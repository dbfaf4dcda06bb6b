"""mpi4py's options, and whether MPI is initialized in a rank."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from pysmpi.mpi.base.constants import (
    THREAD_FUNNELED,
    THREAD_MULTIPLE,
    THREAD_SERIALIZED,
    THREAD_SINGLE,
)
from pysmpi.mpi.base.ranks import Rank, Universe, current
from pysmpi.mpi.base.state import StateSlot


class RcOptions:
    """The settings of `mpi4py.rc` and of MPI4PY_RC_* (mpi4py, section "mpi4py.rc")."""

    __slots__ = (
        "initialize",
        "threads",
        "thread_level",
        "finalize",
        "fast_reduce",
        "recv_mprobe",
        "irecv_bufsz",
        "errors",
    )

    def __init__(self, rc: object = None, environ: Mapping[str, str] | None = None) -> None:
        def option(name: str, default: object) -> object:
            text = environ.get(f"MPI4PY_RC_{name.upper()}") if environ is not None else None
            if text is None:
                return getattr(rc, name, default)
            value = _parsed(text, type(default) is int)
            if rc is not None:
                setattr(rc, name, value)
            return value

        self.initialize = _flag("initialize", option("initialize", True), True)
        self.threads = _flag("threads", option("threads", True), True)
        self.thread_level = _choice(
            "thread_level",
            option("thread_level", "multiple"),
            {
                "single": THREAD_SINGLE,
                "funneled": THREAD_FUNNELED,
                "serialized": THREAD_SERIALIZED,
                "multiple": THREAD_MULTIPLE,
            },
            "multiple",
        )
        finalize = option("finalize", None)
        self.finalize = (
            self.initialize if finalize is None else _flag("finalize", finalize, self.initialize)
        )
        self.fast_reduce = _flag("fast_reduce", option("fast_reduce", True), True)
        self.recv_mprobe = _flag("recv_mprobe", option("recv_mprobe", True), True)
        size = option("irecv_bufsz", 32768)
        if type(size) is not int or size < 0:
            _warn("irecv_bufsz", size)
            size = 32768
        self.irecv_bufsz: int = size
        # The error handler of new objects.
        self.errors: str = _choice(
            "errors",
            option("errors", "exception"),
            {name: name for name in ("default", "exception", "abort", "fatal")},
            "exception",
        )


def _parsed(text: str, number: bool) -> object:
    word = text.strip().lower()
    if number and word.isdigit():
        return int(word)
    if word in ("true", "yes", "on", "y", "1"):
        return True
    if word in ("false", "no", "off", "n", "0"):
        return False
    return word


def _warn(name: str, value: object) -> None:
    message = f"mpi4py.rc.{name}: unexpected value {value!r}"
    warnings.warn(message, RuntimeWarning, stacklevel=4)


def _flag(name: str, value: object, default: bool) -> bool:
    if value in (True, "yes"):
        return True
    if value in (False, "no"):
        return False
    _warn(name, value)
    return default


def _choice(name: str, value: object, choices: Mapping[str, object], default: str) -> Any:
    if not isinstance(value, str) or value not in choices:
        _warn(name, value)
        value = default
    return choices[value]


class Environment(NamedTuple):
    """Whether and how MPI is initialized in a rank.

    A rank starts with MPI initialized, as after the import of `mpi4py.MPI`; `start` represents that
    import. Ranks with equal environments share one object.
    """

    options: RcOptions
    initialized: bool = True
    finalized: bool = False
    thread_level: int = THREAD_MULTIPLE
    init_thread: int | None = None  # that has initialized MPI; None for the main thread of the rank
    abort_status: int = 0
    sessions: int = 0  # that the rank has, and that do not end with MPI


ENVIRONMENT: StateSlot[Rank, Environment] = StateSlot(Rank, kept=True)
_SHARED: StateSlot[Universe, dict[Environment, Environment]] = StateSlot(Universe, dict)


def of_rank() -> Environment:
    """The environment of the calling rank."""
    rank = current()
    return ENVIRONMENT.peek(rank) or put(Environment(RcOptions(), init_thread=thread_of(rank)))


def put(environment: Environment) -> Environment:
    """Make it the environment of the calling rank, or an equal one; return that."""
    rank = current()
    shared = _SHARED.of(rank.universe).setdefault(environment, environment)
    ENVIRONMENT.put_common(rank, shared)
    return shared


def thread_of(rank: Rank) -> int | None:
    """The running thread of a rank, None for its main thread."""
    thread = rank.thread()
    return None if thread == id(rank.fiber) else thread
