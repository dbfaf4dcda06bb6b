"""The registry of formats of timelines.

A format is a class with the methods of `events.Format`, made with the path of the file and whether
it is compressed, under the suffix of its files' names without the dot. One of another distribution
is found through the entry point group `pysmpi.trace_formats`: the entry names a module that calls
`FORMATS.add` when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pysmpi.plugins import Registry
from pysmpi.trace.events import Format


@dataclass(frozen=True)
class TraceFormat:
    """A suffix, a description of one line, and the function to open: `open(path, compressed)`."""

    name: str
    line: str
    open: Callable[[str, bool], Format]


FORMATS: Registry[TraceFormat] = Registry("format of timelines", "pysmpi.trace_formats")


def _chrome(path: str, compressed: bool) -> Format:
    from pysmpi.trace.chrome import ChromeFormat

    return ChromeFormat(path, compressed)


def _independent(path: str, compressed: bool) -> Format:
    from pysmpi.trace.independent import IndependentFormat

    return IndependentFormat(path, compressed)


def _table(path: str, compressed: bool) -> Format:
    from pysmpi.trace.table import TableFormat

    return TableFormat(path, compressed)


def _lines(path: str, compressed: bool) -> Format:
    from pysmpi.trace.lines import LinesFormat

    return LinesFormat(path, compressed)


FORMATS.add(TraceFormat("jsonl", "the recorded form, which loses nothing", _lines))
FORMATS.add(TraceFormat("json", "Chrome's trace format, which ui.perfetto.dev shows", _chrome))
FORMATS.add(TraceFormat("csv", "a table of events", _table))
FORMATS.add(TraceFormat("ti", "SMPI's time-independent traces", _independent))
