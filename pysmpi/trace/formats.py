"""The registry of formats of timelines.

A format is a class with the methods of `events.Format`, made with the path of the file and whether
it is compressed, under the suffix of its files' names without the dot. One of another distribution
is found through the entry point group `pysmpi.trace_formats`: the entry names a module that calls
`FORMATS.add` when it is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

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


FORMATS: Registry[TraceFormat] = Registry("format of timelines", "pysmpi.trace_formats")


def _chrome(path: str, compressed: bool) -> Format:
    from pysmpi.trace.chrome import ChromeFormat

    return ChromeFormat(path, compressed)


def _independent(path: str, compressed: bool) -> Format:
    from pysmpi.trace.independent import IndependentFormat

    return IndependentFormat(path, compressed)


def _paje(path: str, compressed: bool) -> Format:
    from pysmpi.trace.paje import PajeFormat

    return PajeFormat(path, compressed)


def _goal(path: str, compressed: bool) -> Format:
    from pysmpi.trace.goal import GoalFormat

    return GoalFormat(path, compressed)


def _parquet(path: str, compressed: bool) -> Format:
    from pysmpi.trace.parquet import ParquetFormat

    return ParquetFormat(path, compressed)


def _archive(path: str, compressed: bool) -> Format:
    from pysmpi.trace.archive import ArchiveFormat

    return ArchiveFormat(path, compressed)


def _table(path: str, compressed: bool) -> Format:
    from pysmpi.trace.table import TableFormat

    return TableFormat(path, compressed)


def _lines(path: str, compressed: bool) -> Format:
    from pysmpi.trace.lines import LinesFormat

    return LinesFormat(path, compressed)


FORMATS.add(TraceFormat("jsonl", "the recorded form, which loses nothing", _lines, True))
FORMATS.add(TraceFormat("json", "Chrome's trace format, which ui.perfetto.dev shows", _chrome))
FORMATS.add(TraceFormat("csv", "a table of events", _table))
FORMATS.add(TraceFormat("ti", "SMPI's time-independent traces", _independent, True))
FORMATS.add(TraceFormat("paje", "Paje's trace format, which ViTE shows", _paje))
FORMATS.add(TraceFormat("goal", "the input of LogGOPSim", _goal))
FORMATS.add(TraceFormat("otf2", "an OTF2 archive, for Vampir and Scalasca", _archive, several=True))
FORMATS.add(TraceFormat("parquet", "tables of the recorded form, with pyarrow", _parquet))


def is_packed(name: str) -> bool:
    """Whether the suffix of a file asks for compression."""
    return name.lower().endswith(".gz")


def find_format(name: str, format: str | None = None) -> TraceFormat:
    """The format of a name, or that of the suffix of a file."""
    if format is not None:
        return FORMATS.find(format, f"--trace-format {format}")
    plain = os.path.basename(name).lower().removesuffix(".gz")
    for known in FORMATS:
        if plain.endswith(f".{known.name}"):
            return known
    suffixes = [f".{known}" for known in FORMATS.names()]
    raise UsageError(
        f"--trace {name}: expected the suffix {', '.join(suffixes[:-1])} or {suffixes[-1]}, with "
        "or without .gz; or --trace-format"
    )
