"""How fast this machine computes, to scale compute that was timed here to a simulated core.

Measured with multiply-adds on numpy arrays that fit a core's own cache, two flop an element: what
compiled code reaches without hand-tuned kernels, and one thread only, which BLAS would not
promise. A platform's core speeds (flop/s) are in the same currency when they were measured in the
same way, `pysmpi calibrate host`.
"""

from __future__ import annotations

import json
import math
import os
import platform
import tempfile
from pathlib import Path
from time import thread_time_ns

from pysmpi.errors import UsageError
from pysmpi.platform.units import parse_speed

_ELEMENTS = 8192  # three arrays of 64 KiB
_ROUNDS = 40
_TRIALS = 9

_known: float | None = None


def measure_host_speed() -> float:
    """The speed of a core of this machine (flop/s), the best of some trials of about 1 ms."""
    import numpy

    left = numpy.linspace(0.5, 1.5, _ELEMENTS)
    right = numpy.linspace(1.5, 0.5, _ELEMENTS)
    result = numpy.zeros(_ELEMENTS)
    best = math.inf
    for _ in range(_TRIALS):
        begin = thread_time_ns()
        for _ in range(_ROUNDS):
            numpy.multiply(left, 1.0000001, out=result)
            numpy.add(result, right, out=result)
        elapsed = thread_time_ns() - begin
        if elapsed > 0:
            best = min(best, elapsed / _ROUNDS)
    if not math.isfinite(best):
        raise UsageError("--host-speed auto: found no CPU clock, expected a speed such as 2Gf")
    return 2.0 * _ELEMENTS / best * 1e9


def cache_file() -> Path:
    """Where the measured speed is kept: `host_speed.json` in the user's cache directory."""
    root = os.environ.get("XDG_CACHE_HOME")
    directory = Path(root) if root else Path.home() / ".cache"
    return directory / "pysmpi" / "host_speed.json"


def _machine() -> str:
    """What the cached speed belongs to."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{platform.node()}, {model}"


def host_speed(choice: str | float = "auto") -> float:
    """The speed of this machine (flop/s): a given one, or for `auto` the measured one.

    `choice` is flop/s or text such as "3.5Gf". It is measured once, and read from a file in later
    runs. Raises `UsageError`.
    """
    if choice != "auto":
        return _given(choice)
    global _known
    if _known is None:
        _known = _read_cache()
        if _known is None:
            _known = measure_host_speed()
            _write_cache(_known)
    return _known


def _given(choice: str | float) -> float:
    try:
        speed = float(choice)
    except ValueError:
        try:
            speed = parse_speed(str(choice))
        except UsageError as error:
            raise UsageError(f"--host-speed: {error}, or auto") from None
    if not (math.isfinite(speed) and speed > 0.0):
        raise UsageError(f"--host-speed {choice}: expected a positive speed in flop/s, or auto")
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
