"""The instruments of a run (`ranks/instruments.py`) that its options choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pysmpi.job.options import DEFAULTS, Options
from pysmpi.platform.profiles import ProfileDef
from pysmpi.ranks.instruments import Instrument

# Makes an instrument from the options of a run and the profiles of its platform.
Make = Callable[[Options, Sequence[ProfileDef]], Instrument | None]


# Few runs need what these functions import.


def _trace(options: Options, profiles: Sequence[ProfileDef]) -> Instrument | None:
    from pysmpi.trace.formats import find_format
    from pysmpi.trace.recorder import TraceFile

    if options.trace is None:
        find_format("", options.trace_format)  # which has to exist
        return None
    return TraceFile(options.trace, options.trace_format)


def _report(options: Options, profiles: Sequence[ProfileDef]) -> Instrument | None:
    from pysmpi.reports.report_file import ReportFile

    return None if options.report is None else ReportFile(options.report)


def _observation(options: Options, profiles: Sequence[ProfileDef]) -> Instrument:
    from pysmpi.analysis.observation import Observation

    return Observation(options.view)


def _guide(options: Options, profiles: Sequence[ProfileDef]) -> Instrument | None:
    from pysmpi.explore.guide import guide_of

    return guide_of(options)


def _checks(options: Options, profiles: Sequence[ProfileDef]) -> Instrument | None:
    from pysmpi.explore.evidence import checks_of

    return checks_of(options)


def _faults(options: Options, profiles: Sequence[ProfileDef]) -> Instrument:
    from pysmpi.faults.injection import injection_of

    return injection_of(options, profiles)


# The options that choose an instrument by another value than their default. The result of a run is
# completed by the last one first: the report has what those below it add.
TABLE: tuple[tuple[tuple[str, ...], Make], ...] = (
    (("trace", "trace_format"), _trace),
    (("report",), _report),
    (("explain", "view"), _observation),
    (("schedule", "replay_schedule"), _guide),
    (("check",), _checks),
    (("fault",), _faults),
)


def chosen(options: Options, profiles: Sequence[ProfileDef] = ()) -> list[Instrument]:
    """The instruments that the options of a run choose; UsageError for a wrong value.

    Profiles of the platform choose faults.
    """
    instruments = []
    for names, make in TABLE:
        values = ((getattr(options, name), DEFAULTS[name]) for name in names)
        other = any(value and value != default for value, default in values)
        if other or (make is _faults and profiles):
            instrument = make(options, profiles)
            if instrument is not None:
                instruments.append(instrument)
    return instruments
