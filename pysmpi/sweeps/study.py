"""Studies: a program, the values of each axis, and the cases that are their product."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.io.reading import read_bytes
from pysmpi.job.options import FIELDS, OUTPUTS, shown
from pysmpi.platform.mappings import is_mapping
from pysmpi.text import did_you_mean

# The axes of a study, with the column of each in the table. Later axes vary faster.
AXES = {
    "platforms": "platform",
    "models": "model",
    "memory_models": "memory_model",
    "selectors": "selector",
    "placements": "placement",
    "arguments": "arguments",
    "seeds": "seed",
    "ranks": "ranks",
}
# These are columns of every table.
ALWAYS = ("platform", "model", "selector", "placement", "ranks")

_OF_AXES = ("nprocs", "platform", "model", "memory_model", "selector", "map_by", "hostfile", "seed")
# Options of a run that a study can set for all of its cases.
OPTIONS = tuple(name for name in FIELDS if name not in (*_OF_AXES, *OUTPUTS, "trace_format"))

# Figures of a run that are columns, after those of the axes.
FIGURES = ("seconds", "compute_seconds", "wait_seconds", "messages", "bytes")
ENDING = ("exit_status", "error")


@dataclass(frozen=True)
class SweepPlot:
    """A picture: column `y` over column `x`, a line for each value of the columns `lines`.

    Each value of column `panels` has axes of its own. Without `lines`, all other columns of axes
    with several values make lines. `log` names the axes ("x", "y") with a logarithmic scale.
    """

    file: str
    x: str = "ranks"
    y: str = "seconds"
    lines: tuple[str, ...] | None = None
    panels: str | None = None
    log: tuple[str, ...] = ()


@dataclass(frozen=True)
class SweepCase:
    """One run of a sweep.

    `key` depends on everything that the run depends on: program, options, files. `columns` are the
    values of the axes, `request` is the task for a worker.
    """

    key: str
    columns: dict[str, Any]
    request: dict[str, Any]


@dataclass
class SweepStudy:
    """A program and the axes of a sweep.

    `main` is the path of a script, or a function that each rank calls with the arguments of the
    case. `axes` has the values of each axis that the study names (keys of `AXES`), `options` the
    options of all runs. `values` are columns of scripts: a name, and a regular expression whose
    group is the value in the program's output. `timeout` is the wall time of a case (s), or None.
    """

    name: str
    main: str | Callable[..., object]
    axes: dict[str, list[Any]]
    options: dict[str, Any] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    timeout: float | None = None
    plots: list[SweepPlot] = field(default_factory=list)

    def columns(self) -> list[str]:
        """The columns of axes in the table."""
        given = [AXES[axis] for axis in self.axes]
        return [name for name in AXES.values() if name in ALWAYS or name in given]

    def cases(self) -> list[SweepCase]:
        """All cases, in the order of the table."""
        program = _program(self.main)
        names = list(AXES)
        digests: dict[str, str] = {}
        result = []
        for values in product(*(self.axes.get(axis) or [None] for axis in names)):
            chosen = dict(zip(names, values))
            options = {**self.options, **_options(chosen)}
            request = {
                "main": program,
                "args": list(chosen["arguments"] or ()),
                "options": options,
                "values": self.values,
                "timeout": self.timeout,
            }
            columns = {AXES[axis]: _cell(axis, value) for axis, value in chosen.items()}
            result.append(SweepCase(_key(request, digests), columns, request))
        return result


def _options(chosen: Mapping[str, object]) -> dict[str, object]:
    """The options of a run for the values of the axes."""
    options: dict[str, Any] = {"nprocs": 1 if chosen["ranks"] is None else chosen["ranks"]}
    for axis, name in (
        ("platforms", "platform"), ("models", "model"), ("memory_models", "memory_model"),
        ("selectors", "selector"), ("seeds", "seed"),
    ):  # fmt: skip
        if chosen[axis] is not None:
            options[name] = chosen[axis]
    placement = chosen["placements"]
    if placement is not None:
        options["map_by" if is_mapping(placement) else "hostfile"] = placement
    return options


def _cell(axis: str, value: Any) -> object:
    if axis == "arguments" and value is not None:
        return " ".join(map(str, value))
    if isinstance(value, str) and os.sep in value:
        return os.path.splitext(os.path.basename(value))[0]
    return value


def _program(main: str | Callable[..., object]) -> dict[str, object]:
    """A program as a worker gets it: the path of a script, or a pickled function."""
    if isinstance(main, str):
        return {"script": main}
    import cloudpickle

    try:
        pickled = cloudpickle.dumps(main)
    except Exception as error:  # of any object that the function refers to
        raise UsageError(f"pysmpi.sweep: {shown(main)} cannot be pickled: {error}") from None
    try:
        source = inspect.getsource(main)
    except (OSError, TypeError):
        source = ""
    name = getattr(main, "__qualname__", type(main).__qualname__)
    return {"function": pickled, "name": name, "source": source, "path": list(sys.path)}


def _key(request: Mapping[str, Any], digests: dict[str, str]) -> str:
    """A name of everything that a run depends on; `digests` are of files that were read before."""
    main = request["main"]
    what: dict[str, Any] = {
        "args": [repr(one) for one in request["args"]],
        "options": {name: _named(name, value, digests)
                    for name, value in sorted(request["options"].items())},
        "values": request["values"],
        "timeout": request["timeout"],
    }  # fmt: skip
    if "script" in main:
        what["script"] = _digest(main["script"], digests)
    else:
        # The pickle of a function that a module defines does not have its code.
        source = main["source"] or hashlib.sha256(main["function"]).hexdigest()
        what["function"] = [main["name"], source]
    text = json.dumps(what, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _named(name: str, value: object, digests: dict[str, str]) -> object:
    """An option as a part of the key: the contents of files instead of their paths."""
    if isinstance(value, str) and name in ("platform", "hostfile", "selector", "compute"):
        if os.path.isfile(value):
            return _digest(value, digests)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return value


def _digest(path: str, digests: dict[str, str]) -> str:
    if path not in digests:
        digests[path] = hashlib.sha256(read_bytes(path)).hexdigest()
    return digests[path]


def check_values(where: str, values: Sequence[Any]) -> None:
    """Refuse an axis without values, or with a value twice."""
    if not values:
        raise UsageError(f"{where}: expected at least one value, got an empty list")
    for index, value in enumerate(values):
        if value in values[:index]:
            raise UsageError(f"{where}[{index}]: expected each value once, got {value!r} again")


def check_plot(where: str, plot: SweepPlot, study: SweepStudy) -> None:
    """Refuse columns of a picture that the table does not have."""
    axes = study.columns()
    known = [*axes, *FIGURES, *study.values]
    # A function's values are known once it has returned them.
    free = not isinstance(study.main, str)
    for key, names, among in (
        ("x", (plot.x,), known), ("y", (plot.y,), known),
        ("lines", plot.lines or (), axes), ("panels", (plot.panels,) if plot.panels else (), axes),
    ):  # fmt: skip
        for name in names:
            if name not in among and not (free and key in "xy"):
                hint = did_you_mean(name, among)
                raise UsageError(
                    f"{where}.{key}: expected a column among {', '.join(among)}, got {name!r}{hint}"
                )
    for name in plot.log:
        if name not in ("x", "y"):
            raise UsageError(f"{where}.log: expected x or y, got {name!r}")
    if os.path.splitext(plot.file)[1].lower() not in (".svg", ".png", ".pdf"):
        raise UsageError(f"{where}.file: expected a name with .svg, .png or .pdf, got {plot.file}")
