"""The registry of formats of timelines.

A format is a class with the methods of `events.Format`, made with the path of the file and whether
it is compressed. To add one, write it under `@trace_format(suffix, line)` in a file in `kinds/`
that is named like the suffix, or in your own package, which is found through the entry point group
`pysmpi.trace_formats`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pysmpi.errors import UsageError
from pysmpi.plugins import Registry
from pysmpi.trace.events import Format


@dataclass(frozen=True)
class TraceFormat:
    """A suffix, a description of one line, and the function to open: `open(path, compressed)`.

    A format that `streams` writes whole lines, which readers understand up to any line. One of
    `several` files writes them itself, under names that follow from that of the trace.
    """

    name: str
    line: str
    open: Callable[[str, bool], Format]
    streams: bool = False
    several: bool = False


FORMATS: Registry[TraceFormat] = Registry(
    "format of timelines", "pysmpi.trace_formats", "pysmpi.trace.kinds", apart=True
)

_Open = TypeVar("_Open", bound=Callable[[str, bool], Format])


def trace_format(
    name: str, line: str, *, streams: bool = False, several: bool = False
) -> Callable[[_Open], _Open]:
    """Register a class of writers, or a function that opens one, for the suffix `name`."""

    def register(open: _Open) -> _Open:
        FORMATS.add(TraceFormat(name, line, open, streams, several))
        return open

    return register


def is_packed(name: str) -> bool:
    """Whether the suffix of a file asks for compression."""
    return name.lower().endswith(".gz")


def find_format(name: str, format: str | None = None) -> TraceFormat:
    """The format of a name, or that of the suffix of a file."""
    if format is not None:
        return FORMATS.find(format, f"--trace-format {format}")
    plain = os.path.basename(name).lower().removesuffix(".gz")
    suffixes = [f".{suffix}" for suffix in FORMATS.candidates()]
    for suffix in suffixes:
        if plain.endswith(suffix):
            return FORMATS.find(suffix[1:])
    raise UsageError(
        f"--trace {name}: expected the suffix {', '.join(suffixes[:-1])} or {suffixes[-1]}, with "
        "or without .gz; or --trace-format"
    )
