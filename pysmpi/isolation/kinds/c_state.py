"""State that C code keeps for the process: variables, random numbers, the position of `strtok`.

A rank's C code may change it unseen. It is therefore read and set at every switch of ranks, from
the moment on that a rank gets a C function which changes it: by name with ctypes, by `dlopen` with
cffi, or in an extension module that refers to the function.
"""

from __future__ import annotations

import ctypes
import locale
import os
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.isolation.state import PolledSetting, ProcessState
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches

_putenv, _unsetenv, _chdir, _getcwd, _umask = (
    os.putenv, os.unsetenv, os.chdir, os.getcwd, os.umask,
)  # fmt: skip
_GET_NAME, _SET_NAME = 16, 15  # of prctl(2)
_STATE = 128  # bytes of the state of random(3)

# What a rank may change with each function.
_KINDS = {
    "environment": ("setenv", "putenv", "unsetenv", "clearenv", "environ"),
    "directory": ("chdir", "fchdir"),
    "umask": ("umask",),
    "locale": ("setlocale",),
    "random": ("rand", "srand", "random", "srandom", "initstate", "setstate"),
    "random48": ("drand48", "lrand48", "mrand48", "srand48", "seed48", "lcong48"),
    "strtok": ("strtok",),
    "thread name": ("prctl", "pthread_setname_np"),
}
KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}


def _library() -> Any:
    return ctypes.PyDLL(None)


class CVariables(ProcessState):
    """The variables of C. Those that ranks set with `os.putenv` are among them."""

    name = "variables of C"
    polled = True

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self.array = ctypes.POINTER(ctypes.c_char_p).in_dll(_library(), "environ")
        self.common = self.capture()
        variables: Any = exchange.process_states.get("variables")
        for key in exchange.shown.own.get("variables", ()):
            _assign(self.common, key, variables.shared[key])

    def capture(self) -> dict[bytes, bytes]:
        """The variables that C code sees now."""
        result: dict[bytes, bytes] = {}
        place = 0
        while self.array and (entry := self.array[place]) is not None:
            name, _, value = entry.partition(b"=")
            result[name] = value
            place += 1
        return result

    def differs(self) -> bool:
        return True

    def initial(self, state: State) -> dict[bytes, bytes]:
        """The common variables, with those that the rank has set with `os.putenv`."""
        variables: dict[bytes, bytes] = dict(self.common)
        for key, value in state.own.get("variables", {}).items():
            _assign(variables, key, value)
        return variables

    def install(self, value: dict[bytes, bytes]) -> None:
        now = self.capture()
        for name in now.keys() - value.keys():
            _unsetenv(name)
        for name, text in value.items():
            if now.get(name) != text:
                _putenv(name, text)

    def changed(self) -> dict[bytes, bytes | None]:
        """The variables of the running rank that differ from the common ones."""
        now, common = self.capture(), self.common
        names = now.keys() | common.keys()
        return {name: now.get(name) for name in names if now.get(name) != common.get(name)}


def _assign(variables: dict[bytes, bytes], name: bytes, value: bytes | None) -> None:
    if value is None:
        variables.pop(name, None)
    else:
        variables[name] = value


class RandomNumbers(ProcessState):
    """The generator of `rand` and `random`: a table for each rank, which glibc works in."""

    name = "random numbers of C"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        library = _library()
        self._set = library.setstate
        library.initstate.restype = self._set.restype = ctypes.c_void_p
        library.initstate.argtypes = [ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t]
        self._set.argtypes = [ctypes.c_void_p]
        self._spare = ctypes.create_string_buffer(_STATE)
        address = library.initstate(1, self._spare, _STATE)
        self._original = ctypes.string_at(address, _STATE)
        self.common = (ctypes.c_char * _STATE).from_address(address)
        self.shown = self.initial(exchange.shown)
        self.install(self.shown)

    def initial(self, state: State) -> Any:
        """A new table of the rank, which it keeps."""
        if state is self.exchange.outside:
            return self.common
        table = ctypes.create_string_buffer(self._original, _STATE)
        state.keep(self.name, table)
        return table

    def install(self, value: Any) -> None:
        self._set(ctypes.addressof(value))


def _random48() -> tuple[Callable[[], Any], Callable[[Any], object]]:
    seed = _library().seed48
    kind = ctypes.c_ushort * 3
    seed.restype = ctypes.POINTER(ctypes.c_ushort)

    def put(value: tuple[int, ...]) -> None:
        seed(kind(*value))

    def get() -> tuple[int, ...]:
        old = seed(kind())
        value = tuple(old[place] for place in range(3))
        put(value)
        return value

    return get, put


def _strtok() -> tuple[Callable[[], Any], Callable[[Any], object]]:
    """The rest of the text that `strtok` looks at.

    With no delimiters the function returns the rest, and stands behind it. To stand before the
    rest again, it is given the two bytes before it, as a token and its delimiter.
    """
    strtok = _library().strtok
    strtok.restype = ctypes.c_void_p
    strtok.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    nothing = ctypes.create_string_buffer(b"")

    def put(rest: int | None) -> None:
        if rest is None:
            strtok(ctypes.addressof(nothing), b"")
            return
        before = ctypes.string_at(rest - 2, 2)
        ctypes.memmove(rest - 2, b"\x02\x01", 2)
        strtok(rest - 2, b"\x01")
        ctypes.memmove(rest - 2, before, 2)

    put(None)  # else it may stand nowhere, which it does not check

    def get() -> int | None:
        rest: int | None = strtok(None, b"")
        if rest is not None:
            put(rest)
        return rest

    return get, put


def _thread_name() -> tuple[Callable[[], Any], Callable[[Any], object]]:
    control = _library().prctl
    buffer = ctypes.create_string_buffer(16)

    def get() -> bytes:
        control(_GET_NAME, buffer)
        return buffer.value

    return get, lambda value: control(_SET_NAME, value)


def _mask() -> int:
    mask = _umask(0)
    _umask(mask)
    return mask


class CState:
    """Exchanges the state of C that ranks may change."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.armed: set[str] = set()

    def note(self, names: Iterable[str]) -> None:
        """A rank can call these functions of C."""
        if here() is None or not sys.platform.startswith("linux"):
            return
        for name in names:
            kind = KIND_OF.get(name)
            if kind is not None and kind not in self.armed:
                self.armed.add(kind)
                self._arm(kind)

    def _arm(self, kind: str) -> None:
        exchange = self.exchange
        state: ProcessState
        try:
            if kind == "environment":
                state = CVariables(exchange)
            elif kind == "random":
                state = RandomNumbers(exchange)
            else:
                state = PolledSetting(exchange, kind, *_accesses(kind))
                before = exchange.process_states.get(kind)
                if before is not None:
                    state.common = before.common
        except (AttributeError, ValueError):
            return  # another C library
        exchange.follow(state)

    def arm_errno(self, module: Any) -> None:
        """A rank may set the copy of `errno` that ctypes keeps."""
        if "errno" not in self.armed and here() is not None:
            self.armed.add("errno")
            self.exchange.follow(
                PolledSetting(self.exchange, "errno of ctypes", module.get_errno, self._set_errno)
            )

    _set_errno: Callable[[int], int] = staticmethod(ctypes.set_errno)


def _accesses(kind: str) -> tuple[Callable[[], Any], Callable[[Any], object]]:
    low: Any = sys.modules["_locale"]
    set_locale = getattr(low.setlocale, "real", low.setlocale)
    accesses: dict[str, Callable[[], tuple[Callable[[], Any], Callable[[Any], object]]]] = {
        "directory": lambda: (_getcwd, _chdir),
        "umask": lambda: (_mask, _umask),
        "locale": lambda: (
            lambda: set_locale(locale.LC_ALL, None),
            lambda value: set_locale(locale.LC_ALL, value),
        ),
        "random48": _random48,
        "strtok": _strtok,
        "thread name": _thread_name,
    }
    return accesses[kind]()


def patch_ctypes(patches: Patches, module: ModuleType, state: CState) -> None:
    """Notice the functions of C that ranks get by name."""
    loaded: Any = module
    kind = loaded.CDLL
    real_get, real_init, real_set = kind.__getitem__, kind.__init__, loaded.set_errno

    def __getitem__(self: Any, name_or_ordinal: Any) -> Any:
        if type(name_or_ordinal) is str:
            state.note((name_or_ordinal,))
        return real_get(self, name_or_ordinal)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("use_errno") or any(args[3:4]):
            state.arm_errno(loaded)
        real_init(self, *args, **kwargs)

    def set_errno(value: int, /) -> int:
        state.arm_errno(loaded)
        return int(real_set(value))

    patches.set(kind, "__getitem__", like(real_get, __getitem__))
    patches.set(kind, "__init__", like(real_init, __init__))
    patches.set(loaded, "set_errno", like(real_set, set_errno))
