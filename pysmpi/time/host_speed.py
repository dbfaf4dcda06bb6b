"""The speed of this computer, used to scale measured compute to a simulated core.

The measurement uses multiply-adds on numpy arrays that fit a core's own cache, with two flop for
each element. Compiled code reaches this speed without hand-tuned kernels. It uses one thread only,
which BLAS would not guarantee. Core speeds of a platform (flop/s) are comparable if they were
measured in the same way, with `pysmpi calibrate host`.

Other work of a computer only slows down a block, for milliseconds or for minutes. The speed is
therefore that of the fastest of many short blocks. It is stored in a file. A run that needs the
speed measures a few blocks again; a faster result replaces the one in the file.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from platform import machine as _architecture
from time import sleep as _sleep
from time import thread_time_ns

from pysmpi.errors import UsageError
from pysmpi.io.reading import parse_json, read_bytes
from pysmpi.platform.config_values import speed as parse_choice
from pysmpi.python.installed import cache_directory
from pysmpi.python.records import record

# The real functions: in a run, `os.uname` and `time.sleep` are those of the simulated host.
_uname = os.uname if hasattr(os, "uname") else None

_ELEMENTS = 8192  # three arrays of 64 KiB
_ROUNDS = 40  # so that a block takes about a millisecond

FIRST_BLOCKS = 60  # if no speed is stored yet
CHECK_BLOCKS = 8  # in each run that needs the speed
LONG_BLOCKS = 400  # of `pysmpi calibrate host`
_BURST = 20  # blocks between two pauses
_PAUSE = 0.02  # seconds for other work to run
NOISE = 0.05  # factor by which a check must be faster to count, because clocks are boosted at times
SLOW = 0.8  # part of the known speed below which the user is informed

_known: float | None = None
_checked: float | None = None


@record(frozen=True)
class Measurement:
    """Speeds (flop/s) of blocks: the fastest, which is the computer's, the median, the slowest."""

    speed: float
    usual: float
    slowest: float
    blocks: int


def measure(blocks: int = FIRST_BLOCKS) -> Measurement:
    """Measure the speed of a core of this machine; a block takes about 1 ms."""
    from statistics import median

    import numpy

    left = numpy.linspace(0.5, 1.5, _ELEMENTS)
    right = numpy.linspace(1.5, 0.5, _ELEMENTS)
    result = numpy.zeros(_ELEMENTS)
    times: list[float] = []
    for number in range(blocks):
        if number and number % _BURST == 0:
            _sleep(_PAUSE)
        begin = thread_time_ns()
        for _ in range(_ROUNDS):
            numpy.multiply(left, 1.0000001, out=result)
            numpy.add(result, right, out=result)
        elapsed = thread_time_ns() - begin
        if elapsed > 0:
            times.append(elapsed / _ROUNDS)
    if not times:
        raise UsageError("--host-speed auto: no CPU clock; give a speed such as 2Gf")
    work = 2.0 * _ELEMENTS * 1e9
    return Measurement(work / min(times), work / median(times), work / max(times), len(times))


def measure_host_speed(blocks: int = FIRST_BLOCKS) -> float:
    """The speed of a core of this machine (flop/s): that of the fastest block."""
    return measure(blocks).speed


def cache_file() -> Path:
    """The file of the measured speed: `host_speed.json` in the user's cache directory."""
    return Path(cache_directory()) / "host_speed.json"


def _machine() -> str:
    """The identity of this computer for the cached speed: its name and its processor."""
    model = _architecture()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    name = _uname().nodename if _uname is not None else os.environ.get("COMPUTERNAME", "")
    return f"{name}, {model}"


def host_speed(choice: str | float = "auto") -> float:
    """The speed of this machine (flop/s): a given one, or for `auto` the measured one.

    `choice` is flop/s or text such as "3.5Gf". The measured speed is stored in a file, and checked
    once in each process that needs it. Raises `UsageError`.
    """
    if choice != "auto":
        return _given(choice)
    global _known, _checked
    if _known is None:
        cache = _read_cache()
        if cache is None:
            _known = measure_host_speed()
            _write_cache(_known)
        else:
            _known, _checked = cache, measure(CHECK_BLOCKS).speed
            if _checked > cache * (1.0 + NOISE):
                _known = _checked
                _write_cache(_known)
    return _known


def doubt() -> str | None:
    """A note for the user if the computer is far slower than its stored speed."""
    if _known is None or _checked is None or _checked >= SLOW * _known:
        return None
    return (
        f"this computer is known for {_known / 1e9:.3g} Gflop/s and reaches "
        f"{_checked / 1e9:.3g} now; if it stays so, run pysmpi calibrate host"
    )


def renew(
    blocks: int = LONG_BLOCKS, kept: Callable[[str | None], object] = lambda reason: None
) -> Measurement:
    """Measure the speed for longer, and replace the stored one.

    `kept` is called with the reason if the speed cannot be stored, or with None.
    """
    global _known, _checked
    result = measure(blocks)
    kept(_write_cache(result.speed))
    _known, _checked = result.speed, None
    return result


def _given(choice: str | float) -> float:
    try:
        speed = parse_choice(str(choice))
    except UsageError as error:
        raise UsageError(f"--host-speed: {error}") from None
    assert speed is not None
    return speed


def _read_cache() -> float | None:
    try:
        speeds = parse_json(read_bytes(cache_file()))
        speed = speeds.get(_machine())
    except (OSError, ValueError, AttributeError):
        return None
    valid = isinstance(speed, float) and math.isfinite(speed) and speed > 0.0
    return speed if valid else None


def _write_cache(speed: float) -> str | None:
    """Keep the speed, if the cache can be written; the reason if it cannot."""
    import json
    import tempfile

    file = cache_file()
    name = ""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            speeds = parse_json(read_bytes(file))
        except (OSError, ValueError):
            speeds = {}
        if not isinstance(speeds, dict):
            speeds = {}
        speeds[_machine()] = speed
        handle, name = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "w") as stream:
            json.dump(speeds, stream)
        os.replace(name, file)
    except OSError as error:
        if name:
            with contextlib.suppress(OSError):
                os.unlink(name)
        return error.strerror or str(error)
    return None


def is_busy() -> bool:
    """Whether more processes want to run on this computer than it has processors."""
    if not hasattr(os, "getloadavg"):
        return False
    return os.getloadavg()[0] > (os.cpu_count() or 1) + 0.5


def had_to_wait() -> bool:
    """Whether this thread has waited for a processor for more than a tenth of its time so far."""
    try:
        # Nanoseconds on a processor, and of waits for one, of this thread (Linux).
        ran, waited, _ = Path("/proc/thread-self/schedstat").read_text().split()
    except (OSError, ValueError):
        return is_busy()
    return int(waited) > 0.1 * (int(ran) + int(waited))
