"""Reader of study files. `docs/reference/sweep.md` describes them key by key."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pysmpi.collectives.registry import find_selector, is_selector
from pysmpi.errors import UsageError
from pysmpi.job.options import FIELDS, check_value
from pysmpi.memory.transfer.models import find_memory_model
from pysmpi.network.models import find as find_model
from pysmpi.platform import loader
from pysmpi.platform.mappings import EXPECTED, is_mapping
from pysmpi.platform.nodes import Node, compose
from pysmpi.platform.units import parse_time
from pysmpi.sweeps.study import (
    AXES,
    OPTIONS,
    SweepPlot,
    SweepStudy,
    check_plot,
    check_values,
)

_AXES = {axis.replace("_", "-"): axis for axis in AXES}
_OPTIONS = {name.replace("_", "-"): name for name in OPTIONS}
_COLUMN = re.compile(r"[A-Za-z_]\w*")


def read_study(path: str | os.PathLike[str]) -> SweepStudy:
    """The study in a YAML file. Raises UsageError with the file, the line and the key."""
    file = Path(path)
    top = compose(file)
    keys = top.fields(("program",), ("name", *_AXES, "options", "values", "timeout", "plots"))
    base = file.absolute().parent
    program = _existing(keys["program"], base)
    axes = {}
    for key, axis in _AXES.items():
        if key in keys:
            node = keys[key]
            values = [_READERS[axis](one, base) for one in _several(node)]
            check_values(node.where, values)
            axes[axis] = values
    study = SweepStudy(
        keys["name"].text() if "name" in keys else file.stem,
        program,
        axes,
        _read_options(keys["options"], base) if "options" in keys else {},
        _read_values(keys["values"]) if "values" in keys else {},
        keys["timeout"].parse(_positive_time) if "timeout" in keys else None,
    )
    for node in keys["plots"].items() if "plots" in keys else ():
        study.plots.append(_read_plot(node, study))
    return study


def _several(node: Node) -> list[Node]:
    """The entries of a list, or a single value as a list."""
    return node.items() if node.is_list() else [node]


def _existing(node: Node, base: Path) -> str:
    path = base / node.text()
    if not path.is_file():
        raise node.error(f"expected a file, got none at {path}")
    return str(path)


def _platform(node: Node, base: Path) -> str:
    text = node.text()
    result = text if text in loader.shipped() else str(base / text)
    if result != text and os.sep not in text and not Path(result).suffix:
        node.parse(loader.find)  # names the machines that ship
    try:
        loader.read(result)
    except UsageError as error:
        raise node.error(str(error)) from None
    return result


def _model(node: Node, base: Path) -> str:
    return node.parse(lambda text: find_model(text).name)


def _memory_model(node: Node, base: Path) -> str:
    return node.parse(lambda text: find_memory_model(text).name)


def _selector(node: Node, base: Path) -> str:
    text = node.text()
    if is_selector(text):
        return text
    if os.sep in text or (base / text).is_file():
        return _existing(node, base)
    node.parse(find_selector)
    return text


def _placement(node: Node, base: Path) -> str:
    text = node.text()
    if is_mapping(text):
        return text
    if not (base / text).is_file():
        raise node.error(f"expected {', '.join(EXPECTED)} or the path of a hostfile, got {text!r}")
    return str(base / text)


def _ranks(node: Node, base: Path) -> int:
    return int(check_value("nprocs", _whole(node), lambda _: node.where))


def _whole(node: Node) -> int:
    text = node.text()
    try:
        return int(text)
    except ValueError:
        raise node.error(f"expected a whole number, got {text!r}") from None


def _arguments(node: Node, base: Path) -> tuple[str, ...]:
    if node.is_list():
        return tuple(one.text(empty=True) for one in node.items())
    text = node.text(empty=True)
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise node.error(f"expected words as a shell reads them, got {text!r}: {error}") from None


_READERS: dict[str, Callable[[Node, Path], object]] = {
    "platforms": _platform,
    "models": _model,
    "memory_models": _memory_model,
    "selectors": _selector,
    "placements": _placement,
    "arguments": _arguments,
    "seeds": lambda node, base: _whole(node),
    "ranks": _ranks,
}


def _positive_time(text: str) -> float:
    result = parse_time(text)
    if result <= 0.0:
        raise UsageError(f"expected a time above 0, got {text}")
    return result


def _read_options(node: Node, base: Path) -> dict[str, object]:
    result = {}
    for key, value in node.fields((), tuple(_OPTIONS)).items():
        name = _OPTIONS[key]
        given: Any
        if value.is_mapping():
            given = {one: entry.text() for one, entry in value.entries().items()}
        elif value.is_list():
            given = [entry.text() for entry in value.items()]
        elif FIELDS[name].type == "bool":
            given = value.switch()
        else:
            given = value.text()
        if name == "compute" and (base / given).is_file():
            given = str(base / given)
        where = value.where
        result[name] = check_value(name, given, lambda _, where=where: where)  # type: ignore[misc]
    return result


def _read_values(node: Node) -> dict[str, str]:
    result = {}
    for name, value in node.entries().items():
        if _COLUMN.fullmatch(name) is None:
            raise value.error("expected a name of letters, digits and _")
        text = value.text()
        try:
            groups = re.compile(text).groups
        except re.error as error:
            raise value.error(f"expected a regular expression, got {text!r}: {error}") from None
        if groups != 1:
            raise value.error(f"expected a regular expression with one group, got {groups}")
        result[name] = text
    return result


def _read_plot(node: Node, study: SweepStudy) -> SweepPlot:
    keys = node.fields(("file",), ("x", "y", "lines", "panels", "log"))
    texts = {key: keys[key].text() for key in ("file", "x", "y", "panels") if key in keys}
    lists = {
        key: tuple(one.text() for one in _several(keys[key]))
        for key in ("lines", "log")
        if key in keys
    }
    plot = SweepPlot(**texts, **lists)  # type: ignore[arg-type]
    check_plot(node.where, plot, study)
    return plot
