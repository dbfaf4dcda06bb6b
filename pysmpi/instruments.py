"""The instruments of a run that its options choose, and their registry.

`ranks/instruments.py` describes instruments. Those of other distributions are found through the
entry point group `pysmpi.instruments`; `--instrument NAME` chooses one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from pysmpi.errors import UsageError
from pysmpi.job.options import DEFAULTS, Options
from pysmpi.platform.profiles import ProfileDef
from pysmpi.plugins import Registry
from pysmpi.python.records import record
from pysmpi.ranks.instruments import Instrument, InstrumentedRun

__all__ = ["INSTRUMENTS", "Instrument", "InstrumentKind", "InstrumentedRun", "chosen", "instrument"]


@record(frozen=True)
class InstrumentKind:
    """A plug-in: a name, one line, and a function that makes an instrument.

    `make(argument)` gets the text after the colon of `NAME:ARGUMENT`, None without a colon, and
    raises ValueError with the expected form if it is wrong.
    """

    name: str
    line: str
    make: Callable[[str | None], Instrument]


INSTRUMENTS: Registry[InstrumentKind] = Registry("instrument", "pysmpi.instruments")

_Make = TypeVar("_Make", bound=Callable[[str | None], Instrument])


def instrument(name: str, line: str) -> Callable[[_Make], _Make]:
    """Register a class of instruments, or a function that makes one, under `name`."""

    def register(make: _Make) -> _Make:
        INSTRUMENTS.add(InstrumentKind(name, line, make))
        return make

    return register


# Makes instruments from the options of a run and the profiles of its platform.
Make = Callable[[Options, Sequence[ProfileDef]], list[Instrument]]


# Few runs need what these functions import.


def _trace(options: Options, profiles: Sequence[ProfileDef]) -> list[Instrument]:
    from pysmpi.trace.formats import find_format
    from pysmpi.trace.recorder import TraceFile

    if options.trace is None:
        find_format("", options.trace_format)  # which has to exist
        return []
    return [TraceFile(options.trace, options.trace_format)]


def _report(options: Options, profiles: Sequence[ProfileDef]) -> list[Instrument]:
    from pysmpi.reports.report_file import ReportFile

    return [] if options.report is None else [ReportFile(options.report)]


def _named(options: Options, profiles: Sequence[ProfileDef]) -> list[Instrument]:
    texts = [options.instrument] if isinstance(options.instrument, str) else options.instrument
    return [_by_name(text) for text in texts]


def _by_name(text: str) -> Instrument:
    name, colon, argument = text.partition(":")
    if not INSTRUMENTS.names():
        raise UsageError(
            f"--instrument {text}: no instrument is registered; a distribution has one in the "
            "entry point group pysmpi.instruments"
        )
    kind = INSTRUMENTS.find(name, f"--instrument {name}")
    try:
        return kind.make(argument if colon else None)
    except ValueError as error:
        raise UsageError(f"--instrument {text}: {error}") from None


def _observation(options: Options, profiles: Sequence[ProfileDef]) -> list[Instrument]:
    from pysmpi.analysis.observation import Observation

    return [Observation(options.view)]


def _guide(options: Options, profiles: Sequence[ProfileDef]) -> list[Instrument]:
    from pysmpi.explore.guide import guide_of

    guide = guide_of(options)
    return [] if guide is None else [guide]


def _checks(options: Options, profiles: Sequence[ProfileDef]) -> list[Instrument]:
    from pysmpi.explore.evidence import checks_of

    checks = checks_of(options)
    return [] if checks is None else [checks]


def _faults(options: Options, profiles: Sequence[ProfileDef]) -> list[Instrument]:
    from pysmpi.faults.injection import injection_of

    return [injection_of(options, profiles)]


# The options that choose instruments by a value other than their default. The last instrument
# completes the result first: the report has what those below it add.
TABLE: tuple[tuple[tuple[str, ...], Make], ...] = (
    (("trace", "trace_format"), _trace),
    (("report",), _report),
    (("instrument",), _named),
    (("explain", "view"), _observation),
    (("schedule", "replay_schedule"), _guide),
    (("check",), _checks),
    (("fault", "noise"), _faults),
)


def _given(options: Options, name: str) -> bool:
    value = getattr(options, name)
    return bool(value) and value != DEFAULTS[name]


def chosen(options: Options, profiles: Sequence[ProfileDef] = ()) -> list[Instrument]:
    """The instruments that the options of a run choose; UsageError for a wrong value.

    Profiles of the platform choose faults.
    """
    instruments: list[Instrument] = []
    for names, make in TABLE:
        other = any(_given(options, name) for name in names)
        if other or (make is _faults and profiles):
            instruments += make(options, profiles)
    return instruments


def unused(options: Options, used: Collection[str]) -> str | None:
    """The first option that chooses an instrument, in its spelling on the command line.

    For commands that run a job without the instruments of its options, except for those `used`.
    """
    for names, _ in TABLE:
        for name in names:
            if name not in used and _given(options, name):
                return f"--{name.replace('_', '-')}"
    return None
