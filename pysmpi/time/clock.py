"""Virtual time in module `time`.

While ranks run, the functions of `time` return the clock of the calling rank, and real time outside
any rank. They are replaced in the module, and in all loaded modules that have imported one of them
(`threading`, `queue`, `timeit`...).

The wall clock of a simulation starts at `EPOCH`; the other clocks start at zero. A reading costs
`poll_cost` seconds, so that a loop that waits for a date ends. CPU clocks are in `cpu_time.py`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from pysmpi.mpi.base import ranks
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.patching.replacing import methods, replace_defaults
from pysmpi.python import holders
from pysmpi.time import alarms, cpu_time
from pysmpi.time.seconds import check_seconds

EPOCH = 946684800.0  # 2000-01-01 00:00 UTC: repeatable, and late enough for zip files
POLL_COST = 1e-8  # (s), SimGrid's smpi/wtime
SYSTEM_CALL = 1e-6  # (s), the shortest time of a sleep

_NANO = 1e9
_CPU_CLOCKS = {"process_time": cpu_time.process_time, "thread_time": cpu_time.thread_time}
_CLOCKS_OF_DATE = {"CLOCK_REALTIME", "CLOCK_TAI", "CLOCK_REALTIME_COARSE"}


def _seconds(real: Callable[[], float], origin: float, poll_cost: float) -> Callable[[], float]:
    current = ranks.current

    def read() -> float:
        rank = current()
        if rank.program is None:
            return real()
        rank.poll(poll_cost)
        return origin + rank.now()

    return like(real, read)


def _nanoseconds(real: Callable[[], int], origin: float, poll_cost: float) -> Callable[[], int]:
    current = ranks.current
    first = int(origin) * 1_000_000_000

    def read() -> int:
        rank = current()
        if rank.program is None:
            return real()
        rank.poll(poll_cost)
        return first + round(rank.now() * _NANO)

    return like(real, read)


def _cpu_seconds(
    real: Callable[[], float], spent: Callable[[], float], poll_cost: float
) -> Callable[[], float]:
    def read() -> float:
        rank = ranks.current()
        if rank.program is None:
            return real()
        rank.poll(poll_cost)
        return spent()

    return like(real, read)


def _cpu_nanoseconds(
    real: Callable[[], int], spent: Callable[[], float], poll_cost: float
) -> Callable[[], int]:
    def read() -> int:
        rank = ranks.current()
        if rank.program is None:
            return real()
        rank.poll(poll_cost)
        return round(spent() * _NANO)

    return like(real, read)


def _sleep(real: Callable[[float], None]) -> Callable[[float], None]:
    current = ranks.current

    def sleep(seconds: float, /) -> None:
        rank = current()
        if rank.program is None:
            return real(seconds)
        seconds = check_seconds(seconds)
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        # Every call of the operating system takes time, even a sleep of zero seconds, so that a
        # loop of such sleeps ends.
        seconds = max(seconds, SYSTEM_CALL)
        if alarms.next_alarm() is None:
            rank.sleep(seconds)
            if alarms.arrived():
                alarms.deliver()
        else:
            alarms.sleep(rank, seconds)
        return None

    return like(real, sleep)


def _broken_down(real: Callable[..., object], position: int) -> Callable[..., object]:
    """A function that uses the current date if argument `position` is missing or None."""
    current = ranks.current

    def convert(*args: object) -> object:
        rank = current()
        if rank.program is None or (len(args) > position and args[position] is not None):
            return real(*args)
        return real(*args[:position], EPOCH + rank.now())

    return like(real, convert)


def _broken_down_default(
    real: Callable[..., object], position: int, localtime: Callable[..., object]
) -> Callable[..., object]:
    """A function that uses the current local time if argument `position` is missing."""
    current = ranks.current

    def convert(*args: object) -> object:
        if current().program is None or len(args) != position:
            return real(*args)
        return real(*args, localtime())

    return like(real, convert)


def _clock_gettime(
    real: Callable[[int], object], poll_cost: float, convert: Callable[[float], object]
) -> Callable[[int], object]:
    current = ranks.current
    times = {getattr(time, name) for name in _CLOCKS_OF_DATE if hasattr(time, name)}
    process_clock = getattr(time, "CLOCK_PROCESS_CPUTIME_ID", None)
    thread_clock = getattr(time, "CLOCK_THREAD_CPUTIME_ID", None)

    def read(clk_id: int) -> Any:
        rank = current()
        if rank.program is None:
            return real(clk_id)
        real(clk_id)  # raises the error of a wrong number
        rank.poll(poll_cost)
        clk_id = int(clk_id)
        if clk_id == process_clock:
            return convert(cpu_time.process_time())
        if clk_id == thread_clock or clk_id < 0:  # of `time.pthread_getcpuclockid`
            return convert(cpu_time.thread_time())
        return convert(rank.now() + (EPOCH if clk_id in times else 0.0))

    return like(real, read)


def _replacements(poll_cost: float) -> dict[str, Callable[..., object]]:
    new: dict[str, Callable[..., Any]] = {"sleep": _sleep(time.sleep)}
    for name in ("time", "perf_counter", "monotonic"):
        origin = EPOCH if name == "time" else 0.0
        new[name] = _seconds(getattr(time, name), origin, poll_cost)
        new[name + "_ns"] = _nanoseconds(getattr(time, name + "_ns"), origin, poll_cost)
    for name, spent in _CPU_CLOCKS.items():
        if hasattr(time, name):
            new[name] = _cpu_seconds(getattr(time, name), spent, poll_cost)
            new[name + "_ns"] = _cpu_nanoseconds(getattr(time, name + "_ns"), spent, poll_cost)
    for name in ("localtime", "gmtime", "ctime"):
        new[name] = _broken_down(getattr(time, name), 0)
    new["asctime"] = _broken_down_default(time.asctime, 0, new["localtime"])
    new["strftime"] = _broken_down_default(time.strftime, 1, new["localtime"])
    if hasattr(time, "clock_gettime"):
        new["clock_gettime"] = _clock_gettime(time.clock_gettime, poll_cost, float)
        new["clock_gettime_ns"] = _clock_gettime(
            time.clock_gettime_ns, poll_cost, lambda seconds: round(seconds * _NANO)
        )
    return new


def install(patches: Patches, poll_cost: float = POLL_COST) -> None:
    """Let ranks see virtual time until the patches are undone."""
    replacements = _replacements(poll_cost)
    changed: dict[int, Callable[..., Any]] = {}
    reals: list[object] = [time]
    for name, function in replacements.items():
        real = patches.set(time, name, function)
        reals.append(real)
        changed[id(real)] = function
    # By the `id` of their names. Objects that stand for modules hold clocks, too.
    loaded: dict[int, object] = {}
    spaces: list[dict[str, Any]] = []
    for name, module in list(sys.modules.items()):
        space = getattr(module, "__dict__", None)
        if type(space) is dict and not name.startswith("pysmpi"):
            loaded[id(space)] = module
            spaces.append(space)
    users: dict[int, ModuleType] = {}
    for space, name, value in holders.find(spaces, reals):
        assert isinstance(space, dict)
        if value is not time:
            patches.entry(space, name, changed[id(value)])
        holder = loaded[id(space)]
        if type(holder) is ModuleType:
            users[id(space)] = holder
    for module in users.values():
        for function in _with_clocks(module):
            replace_defaults(patches, function, changed)


# The functions of a module that have functions of `time` as defaults, and the module's size then.
_found: WeakKeyDictionary[ModuleType, tuple[int, list[FunctionType]]] = WeakKeyDictionary()


def _with_clocks(module: ModuleType) -> list[FunctionType]:
    """Functions and methods, as those of `sched.scheduler`, with clocks or sleeps as defaults."""
    namespace = vars(module)
    size, functions = _found.get(module, (-1, []))
    if size == len(namespace):
        return functions
    functions = []
    # Types, not attributes: those of lazy objects and of proxies do work, or raise errors.
    things = list(namespace.values())
    for thing in namespace.values():
        if issubclass(type(thing), type) and thing.__module__ == namespace.get("__name__"):
            things += vars(thing).values()
    for one in things:
        if type(one) in (classmethod, staticmethod):
            one = one.__func__
        if type(one) is FunctionType:
            values = (*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values())
            if any(type(value) is BuiltinFunctionType and value.__module__ == "time"
                   for value in values):  # fmt: skip
                functions.append(one)
    _found[module] = len(namespace), functions
    return functions


def patch_datetime(patches: Patches, datetime: Any) -> None:
    """Make `datetime.now` and `utcnow` use module `time`.

    The class must stay the same object, or its instances could not be pickled; so the methods
    are exchanged in its dictionary, which Python has no official way to write to.
    (`date.today` and `datetime.today` already use module `time`.)
    """
    kind = datetime.datetime
    utc = datetime.timezone.utc
    real_now, real_utcnow = kind.now, kind.utcnow
    current = ranks.current

    def now(cls: Any, tz: Any = None) -> Any:
        """Returns new datetime object representing current time local to tz."""
        if current().program is None:
            return real_now(tz) if cls is kind else namespace_now.__get__(None, cls)(tz)
        return cls.fromtimestamp(time.time(), tz)

    def utcnow(cls: Any) -> object:
        """Return a new datetime representing UTC day and time."""
        if current().program is None:
            return real_utcnow() if cls is kind else namespace_utcnow.__get__(None, cls)()
        return cls.fromtimestamp(time.time(), utc).replace(tzinfo=None)

    now, utcnow = like(real_now, now), like(real_utcnow, utcnow)
    namespace_now, namespace_utcnow = vars(kind)["now"], vars(kind)["utcnow"]
    methods(patches, kind, {"now": classmethod(now), "utcnow": classmethod(utcnow)})
