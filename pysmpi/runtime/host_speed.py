"""How fast this machine computes, to scale compute that was timed here to a simulated core.

Measured with multiply-adds on numpy arrays that fit a core's own cache, two flop an element: what
compiled code reaches without hand-tuned kernels, and one thread only, which BLAS would not
promise. A platform's core speeds (flop/s) are in the same currency when they were measured in the
same way, `pysmpi calibrate host`.

Whatever else a computer does only ever slows a block of work down, and does so for milliseconds or
for minutes. So the speed is that of the fastest of many short blocks. It is kept in a file, and a
run that needs it measures a few blocks again: what is faster than the file says replaces it.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from platform import machine as _architecture
from statistics import median
from time import sleep as _sleep
from time import thread_time_ns

from pysmpi.errors import UsageError
from pysmpi.options import speed as parse_choice

# The real ones: inside a run, a rank's `os.uname` and `time.sleep` are those of its simulated host.
_uname = os.uname if hasattr(os, "uname") else None

_ELEMENTS = 8192  # three arrays of 64 KiB
_ROUNDS = 40  # so that a block takes about a millisecond

FIRST_BLOCKS = 60  # where nothing is known yet
CHECK_BLOCKS = 8  # in each run that needs the speed
LONG_BLOCKS = 400  # of `pysmpi calibrate host`
_BURST = 20  # blocks between two pauses
_PAUSE = 0.02  # seconds in which other work may get its turn
NOISE = 0.05  # by how much a check must be faster to count, since clocks are boosted at times
SLOW = 0.8  # part of the known speed below which a check is told to the user

_known: float | None = None
_checked: float | None = None


@dataclass(frozen=True)
class Measurement:
    """Speeds (flop/s) of blocks: the fastest, which is the computer's, the median, the slowest."""

    speed: float
    usual: float
    slowest: float
    blocks: int


def measure(blocks: int = FIRST_BLOCKS) -> Measurement:
    """Measure the speed of a core of this machine; a block takes about 1 ms."""
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
        raise UsageError("--host-speed auto: found no CPU clock, expected a speed such as 2Gf")
    work = 2.0 * _ELEMENTS * 1e9
    return Measurement(work / min(times), work / median(times), work / max(times), len(times))


def measure_host_speed(blocks: int = FIRST_BLOCKS) -> float:
    """The speed of a core of this machine (flop/s): that of the fastest block."""
    return measure(blocks).speed


def cache_file() -> Path:
    """Where the measured speed is kept: `host_speed.json` in the user's cache directory."""
    root = os.environ.get("XDG_CACHE_HOME")
    directory = Path(root) if root else Path.home() / ".cache"
    return directory / "pysmpi" / "host_speed.json"


def _machine() -> str:
    """What the cached speed belongs to: this computer's own name and its processor."""
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

    `choice` is flop/s or text such as "3.5Gf". The measured one is kept in a file, and checked
    once in each process that asks. Raises `UsageError`.
    """
    if choice != "auto":
        return _given(choice)
    global _known, _checked
    if _known is None:
        kept = _read_cache()
        if kept is None:
            _known = measure_host_speed()
            _write_cache(_known)
        else:
            _known, _checked = kept, measure(CHECK_BLOCKS).speed
            if _checked > kept * (1.0 + NOISE):
                _known = _checked
                _write_cache(_known)
    return _known


def doubt() -> str | None:
    """What to tell the user where this run found the computer far slower than it is known to be."""
    if _known is None or _checked is None or _checked >= SLOW * _known:
        return None
    return (
        f"this computer is known for {_known / 1e9:.3g} Gflop/s and reaches "
        f"{_checked / 1e9:.3g} now; if it stays so, run pysmpi calibrate host"
    )


def renew(blocks: int = LONG_BLOCKS) -> Measurement:
    """Measure the speed for longer and keep it, in place of what is known."""
    global _known, _checked
    found = measure(blocks)
    _write_cache(found.speed)
    _known, _checked = found.speed, None
    return found


def _given(choice: str | float) -> float:
    try:
        speed = parse_choice(str(choice))
    except UsageError as error:
        raise UsageError(f"--host-speed: {error}") from None
    assert speed is not None
    return speed


def _read_cache() -> float | None:
    try:
        speeds = json.loads(cache_file().read_text())
        speed = speeds.get(_machine())
    except (OSError, ValueError, AttributeError):
        return None
    valid = isinstance(speed, float) and math.isfinite(speed) and speed > 0.0
    return speed if valid else None


def _write_cache(speed: float) -> None:
    """Keep the speed; a cache that cannot be written is done without."""
    file = cache_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            speeds = json.loads(file.read_text())
        except (OSError, ValueError):
            speeds = {}
        if not isinstance(speeds, dict):
            speeds = {}
        speeds[_machine()] = speed
        handle, name = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "w") as stream:
            json.dump(speeds, stream)
        os.replace(name, file)
    except OSError:
        return
