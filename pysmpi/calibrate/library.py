"""The overheads of this computer's MPI library for messages, and its method of copying.

Each memory model is fitted to real ping-pongs and exchanges with reused buffers. The simulated time
is linear in all parameters of a model, so a run without the parameters and one run with each of
them give the coefficients. For each model and each eager limit, least squares of the relative error
give the parameters. The fit with the smallest error is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from pysmpi.calibrate.pingpong import OPERATIONS, Times, really, simulated

SIZES = tuple(
    kib << 10 for kib in (1, 2, 4, 5, 6, 7, 8, 12, 16, 32, 64, 128, 256, 512, 1024, 2048)
)  # bytes
SMALL = 8
POOL = 128 << 20  # bytes of each rank; large arrays are on huge pages if these are available
LARGEST_EAGER = 64 << 10
UNIT = 1e-6  # seconds of a parameter that is tried
REUSE = ("reuse",)

# Of each model: the parameters of long messages, besides those that all have.
MODELS = {
    "cma": ("memory/single-copy-start", "memory/single-copy-page"),
    "pipelined": ("memory/chunk-overhead",),
}
COMMON = "memory/overhead"
EAGER = (COMMON, "memory/chunk-overhead")
# The place of a buffer before its first send: the program has written its pool long before.
FIXED = {"memory/library": "mpich", "memory/first-send": "memory"}


@dataclass(frozen=True, slots=True)
class LibraryFit:
    """The options that best explain the real MPI, and their relative errors."""

    config: dict[str, str]
    mean_error: float
    worst_error: float
    real: Times


def explain(
    platform: Path, cpus: Sequence[int], steady: Callable[[], bool], runs: int = 3
) -> LibraryFit:
    """The options of a platform file that best explain the MPI of this computer.

    `steady` tells whether the computer still agrees with the file; see `pingpong.really`.
    """
    sizes = (SMALL, *SIZES)
    real = really(cpus, POOL, REUSE, OPERATIONS, sizes, steady, runs)
    target = np.array(list(real.values()))
    lengths = np.array([nbytes for _, _, nbytes in real])

    def times(config: dict[str, str]) -> np.ndarray:
        found = simulated(platform, POOL, REUSE, OPERATIONS, sizes, config)
        return np.array([found[case] for case in real])

    best: tuple[float, dict[str, str], np.ndarray] | None = None
    short = _Linear(times, {**FIXED, "memory/eager": str(max(sizes))}, EAGER)
    for model, more in MODELS.items():
        chosen = {**FIXED, "memory/model": model}
        long = _Linear(times, {**chosen, "memory/eager": "0"}, (COMMON, *more))
        for limit in (n for n in sizes if n <= LARGEST_EAGER):
            found, errors = _fit(short, long, lengths <= limit, target)
            cost = float(np.sqrt(np.mean(errors**2)))
            if best is None or cost < best[0]:
                values = {name: f"{seconds * 1e9:.4g}ns" for name, seconds in found.items()}
                best = cost, {**chosen, "memory/eager": str(limit), **values}, errors
    assert best is not None
    errors = np.abs(best[2])
    return LibraryFit(best[1], float(errors.mean()), float(errors.max()), real)


class _Linear:
    """Simulated times as a function of parameters: `base`, and the change for a second of each."""

    def __init__(self, times: object, fixed: dict[str, str], names: Sequence[str]) -> None:
        nothing = {name: "0ns" for name in (*EAGER, *names)}
        self.names = tuple(names)
        self.base: np.ndarray = times({**fixed, **nothing})  # type: ignore[operator]
        self.slopes = []
        for name in names:
            more = {**fixed, **nothing, name: f"{UNIT * 1e9:g}ns"}
            self.slopes.append((times(more) - self.base) / UNIT)  # type: ignore[operator]


def _fit(
    short: _Linear, long: _Linear, eager: np.ndarray, target: np.ndarray
) -> tuple[dict[str, float], np.ndarray]:
    """Parameters that are not negative, and the relative errors that are left."""
    names = tuple(dict.fromkeys((*short.names, *long.names)))
    base = np.where(eager, short.base, long.base)
    columns = []
    for name in names:
        one, other = (
            part.slopes[part.names.index(name)] if name in part.names else 0.0 * part.base
            for part in (short, long)
        )
        columns.append(np.where(eager, one, other))
    matrix = np.stack(columns, axis=1) / target[:, None]
    rest = (target - base) / target
    best = np.zeros(len(names))
    for used in _subsets(len(names)):
        trial = np.zeros(len(names))
        trial[list(used)] = np.linalg.lstsq(matrix[:, used], rest, rcond=None)[0]
        if (trial >= 0).all() and _cost(matrix, trial, rest) < _cost(matrix, best, rest):
            best = trial
    return dict(zip(names, map(float, best), strict=True)), matrix @ best - rest


def _cost(matrix: np.ndarray, values: np.ndarray, rest: np.ndarray) -> float:
    return float(np.sum((matrix @ values - rest) ** 2))


def _subsets(count: int) -> Iterator[tuple[int, ...]]:
    for size in range(1, count + 1):
        yield from combinations(range(count), size)
