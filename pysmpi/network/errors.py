"""The known errors of a network: of latencies, of overheads, of the time of bytes.

An error is the standard deviation of the logarithm of real over predicted time. A network has one
if it was compared with measurements that its values do not come from:

- a measured preset has the errors of its checks on other machines; one without a check has those
  of the checks of all presets;
- `network/error` of a machine or a run gives it. `pysmpi calibrate network` and `platform fit`
  write it into their files.

Both compare the patterns of benchmarks. Programs have other patterns, so that `OTHER_PATTERNS` is
added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import hypot, pi, sqrt

from pysmpi.network.measured import PresetCheck, load
from pysmpi.network.presets import HYBRID
from pysmpi.platform.config import Settings
from pysmpi.python.records import record

# Of programs with other patterns than the calibration of their machine: root mean squares of the
# logarithms of predicted over real time of small messages (ten programs), and of large ones
# (docs/explanation/accuracy.md).
OTHER_PATTERNS = (0.5, 0.5, 0.04)
GIVEN = "network/error"  # the source of errors that the user or a calibration gives
# The standard deviation of a normal error whose absolute value is 1 on average.
NORMAL = sqrt(pi / 2.0)


@record(frozen=True)
class NetworkErrors:
    """The errors of latencies, of overheads and of the time of bytes, and where they are from."""

    latency: float
    overhead: float
    bandwidth: float
    source: str


def network_errors(preset: str | None, settings: Settings) -> NetworkErrors | None:
    """The errors of a network with a preset of model hybrid, None if they are not known."""
    given = settings.value(GIVEN)
    if given is not None:
        return _with_patterns(given, GIVEN)
    if preset is None or not HYBRID[preset].measured:
        return None
    checks = load(HYBRID[preset].measured).checks
    source = f"checks of preset {preset}"
    if not checks:
        checks, source = _all_checks(), f"checks of other presets, {preset} has none"
    rated = settings.number("network/message-rate", 0.0) > 0.0
    parts = (
        [check.latency for check in checks],
        [check.rated if rated else check.bandwidth for check in checks],
        # With its message rate, only the time of bytes remains.
        [check.rated for check in checks],
    )
    every = _all_checks()
    others = (
        [check.latency for check in every],
        [check.rated if rated else check.bandwidth for check in every],
        [check.rated for check in every],
    )
    found = [
        NORMAL * 0.01 * (_root_mean_square(own) or _root_mean_square(all_of_them) or 0.0)
        for own, all_of_them in zip(parts, others, strict=True)
    ]
    return _with_patterns(found, source)


def _with_patterns(errors: Sequence[float], source: str) -> NetworkErrors:
    latency, overhead, bandwidth = (
        hypot(own, other) for own, other in zip(errors, OTHER_PATTERNS, strict=True)
    )
    return NetworkErrors(latency, overhead, bandwidth, source)


@cache
def _all_checks() -> list[PresetCheck]:
    return [
        check
        for preset in HYBRID.values()
        if preset.measured
        for check in load(preset.measured).checks
    ]


def _root_mean_square(values: Iterable[float | None]) -> float | None:
    """None without any value."""
    known = [value for value in values if value is not None]
    return sqrt(sum(value * value for value in known) / len(known)) if known else None


def written(errors: Sequence[float]) -> str:
    """Mean absolute errors of latencies, overheads and bandwidths as a value of `network/error`."""
    return ";".join(f"{max(NORMAL * error, 1e-4):.3g}" for error in errors)
