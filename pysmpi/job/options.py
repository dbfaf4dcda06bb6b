"""The options of a run: one declaration for the command line and for `pysmpi.run`.

Each field of `Options` has a type, a default, its allowed values and a line of help. The command
line makes its options from this (`pysmpi/cli/run_options.py` has their spellings), `pysmpi.run` has
them as parameters, and `check` validates both, with the same message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, field, fields, replace
from operator import index
from os import PathLike, fspath
from reprlib import Repr
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from pysmpi.errors import UsageError
from pysmpi.platform.config import Settings, canonical
from pysmpi.platform.mappings import EXPECTED, EXPECTED_RANKINGS, is_mapping, is_ranking
from pysmpi.python.records import record
from pysmpi.text import did_you_mean

if TYPE_CHECKING:
    from pysmpi.platform.model import Platform

Path: TypeAlias = str | PathLike[str]
ReductionOrder: TypeAlias = Literal["rank", "algorithm"]
OnDeadlock: TypeAlias = Literal["report", "raise"]
OnDivergence: TypeAlias = Literal["report", "stop", "full"]
OnFailure: TypeAlias = Literal["end", "continue"]

MOST_RANKS = 10_000_000  # a rank takes some 20 kB: no computer can hold more

_short = Repr()
_short.maxstring = _short.maxother = 60
_short.maxlong = 30


def shown(value: object) -> str:
    """A value for messages: short, with its type if the type is not obvious."""
    try:
        if isinstance(value, int):
            repr(value)  # `reprlib` of Python 3.14 has an address in place of too many digits
        text = _short.repr(value)
    except Exception:  # its own __repr__ fails, or it is a number too long for a decimal text
        text = "a value"
    if value is None or isinstance(value, (str, bool, int, float, list, tuple, dict)):
        return text
    return f"{text} of type {type(value).__name__}"


@record(frozen=True)
class Kind:
    """The values of an option: a test, a description, and a conversion.

    `choices` are the only values, if there are any.
    """

    expected: str
    test: Callable[[Any], bool]
    keep: Callable[[Any], Any] = lambda value: value
    choices: tuple[str, ...] = ()


def _is_integer(value: object) -> bool:
    return hasattr(type(value), "__index__") and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_path(value: object) -> bool:
    return isinstance(value, PathLike) or _is_text(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(map(_is_text, value))


def _is_module(name: object) -> bool:
    return isinstance(name, str) and all(part.isidentifier() for part in name.split("."))


def _is_modules(value: object) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(map(_is_module, value))


def _is_machine(value: object) -> bool:
    if _is_path(value) or isinstance(value, Mapping):
        return True
    from pysmpi.platform.model import Platform  # takes a while, which --help should not

    return isinstance(value, Platform)


def _path_text(value: object) -> Any:
    return fspath(value) if isinstance(value, PathLike) else value


def _words(choices: Sequence[str]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _choice(*choices: str) -> Kind:
    return Kind(_words(choices), lambda value: value in choices, choices=choices)


_INTEGER = Kind("a whole number", _is_integer, index)
_RANKS = Kind("a whole number of ranks", _is_integer, index)
_TEXT = Kind("a string", _is_text)
_FLAG = Kind("True or False", lambda value: isinstance(value, bool))
_FILE = Kind("the path of a file", _is_path, _path_text)
_MACHINE = Kind(
    "the name of a machine, the path of its file, a dictionary with its keys, or a Platform",
    _is_machine,
)
_NAMES = Kind("a list of module names", _is_modules)
_TEXTS = Kind("a string or a list of strings", lambda value: _is_text(value) or _is_texts(value))


def _pairs(example: str) -> Kind:
    return Kind(f"a dictionary such as {example}", lambda value: isinstance(value, Mapping))


def _option(default: object, kind: Kind, help: str) -> Any:
    """A field: its default, its values, and its meaning."""
    metadata = {"kind": kind, "help": help}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@record
class Options:
    """The options of a run. `pysmpi run --help` explains each.

    The fields are the options of the command line by their names.
    """

    nprocs: int = _option(1, _RANKS, "Number of ranks.")
    platform: Path | Mapping[str, object] | Platform | None = _option(
        None,
        _MACHINE,
        "The machine: a pysmpi YAML file, a SimGrid XML file, or a name from pysmpi platform list "
        "(default: cluster).",
    )
    hostfile: Path | None = _option(
        None,
        _FILE,
        "Hosts of the machine to use, and the number of ranks on each.",
    )
    map_by: str | None = _option(
        None,
        Kind(_words(EXPECTED), is_mapping, choices=EXPECTED),
        "Order in which ranks fill the machine (default: core).",
    )
    rank_by: str | None = _option(
        None,
        Kind(_words(EXPECTED_RANKINGS), is_ranking, choices=EXPECTED_RANKINGS),
        "Order in which the ranks that have their places are numbered (default: of --map-by).",
    )
    model: str | None = _option(
        None,
        _TEXT,
        "Network model, instead of the machine's model (default: hybrid); see pysmpi models.",
    )
    memory_model: str | None = _option(
        None,
        _TEXT,
        "Model of messages inside described nodes; see pysmpi models.",
    )
    memory_bound: str | float | None = _option(
        None,
        Kind("a number from 0 to 1", lambda value: _is_text(value) or _is_number(value)),
        "Part of a core's memory bandwidth that the program's compute uses, 0 to 1: the ranks of a "
        "node share its memory (default: 0).",
    )
    selector: Path | None = _option(
        None,
        Kind("the name of a selector, or the path of a selection file", _is_path, _path_text),
        "Library whose choice of collective algorithms is used, or a selection file "
        "(default: ompi5).",
    )
    coll: Mapping[str, str] = _option(
        {},
        _pairs("{'bcast': 'binomial_tree'}"),
        "Algorithm of one collective; repeatable. See pysmpi collectives.",
    )
    cfg: Mapping[str, str] = _option(
        {},
        _pairs("{'smpi/wtime': '10ns'}"),
        "A SimGrid option; repeatable. pysmpi run --help-cfg lists them.",
    )
    compute: Path | float = _option(
        "native",
        Kind(
            "native, steady, none, seconds or the path of a recording",
            lambda value: _is_path(value) or _is_number(value),
            _path_text,
        ),
        "Time of the program's own computation.",
    )
    record_compute: Path | None = _option(
        None,
        _FILE,
        "Record the measured times, for --compute FILE.",
    )
    host_speed: str | float = _option(
        "auto",
        Kind("auto or a speed such as 10Gf", lambda value: _is_text(value) or _is_number(value)),
        "Speed of this computer, e.g. 8Gf.",
    )
    reduction_order: ReductionOrder = _option(
        "rank",
        _choice(*get_args(ReductionOrder)),
        "Combine in the order of ranks, or in the order of the collective's algorithm.",
    )
    seed: int = _option(
        0,
        _INTEGER,
        "Seed of the ranks' random numbers, of --schedule, and of the order of sets.",
    )
    schedule: str = _option(
        "time",
        _TEXT,
        "Source of the order of events: the clock, or a strategy such as pct:3.",
    )
    replay_schedule: str | None = _option(
        None,
        _TEXT,
        "Repeat the schedule of an earlier run.",
    )
    trace: Path | None = _option(
        None,
        _FILE,
        "Record the run: .jsonl for pysmpi view, analyse and replay; .json for ui.perfetto.dev, "
        ".csv for pandas, .ti for SMPI.",
    )
    trace_format: str | None = _option(
        None,
        _TEXT,
        "Format of the trace, in place of that of its suffix; see pysmpi trace formats.",
    )
    view: Path | None = _option(
        None,
        _FILE,
        "Write a page that shows the run: its timeline, messages, times, and critical path.",
    )
    explain: bool = _option(
        False,
        _FLAG,
        "Explain the time of the run, in the summary.",
    )
    report: Path | None = _option(
        None,
        _FILE,
        "Write the figures of the run as JSON; - is the standard output.",
    )
    on_deadlock: OnDeadlock = _option(
        "report",
        _choice(*get_args(OnDeadlock)),
        "End with a report, or raise MPI.Exception in the ranks.",
    )
    check: Sequence[str] | str = _option(
        (),
        _TEXTS,
        "Check the program against the rules of MPI; repeatable. See pysmpi explain.",
    )
    fault: Sequence[str] | str = _option(
        (),
        _TEXTS,
        "A part of the machine that fails, or becomes slow, or noise; repeatable.",
    )
    noise: Path | Mapping[str, object] | None = _option(
        None,
        Kind(
            "the name of a noise, the path of its file, or a dictionary with its keys",
            lambda value: _is_path(value) or isinstance(value, Mapping),
            _path_text,
        ),
        "Noise of the machine by its name, or of a file of pysmpi calibrate noise.",
    )
    on_failure: OnFailure = _option(
        "end",
        _choice(*get_args(OnFailure)),
        "When a rank fails: end the job, as launchers do, or let the others continue (for programs "
        "that use ULFM).",
    )
    instrument: Sequence[str] | str = _option(
        (),
        _TEXTS,
        "An instrument of another distribution that listens to the run, or changes it; repeatable.",
    )
    private: Sequence[str] = _option(
        (),
        _NAMES,
        "Load this module or package once for each rank; repeatable.",
    )
    shared: Sequence[str] = _option(
        (),
        _NAMES,
        "Load this module or package once for all ranks; repeatable.",
    )
    sample: Sequence[str] | str = _option(
        (),
        _TEXTS,
        "Measure calls of a function a few times, then skip them; repeatable.",
    )
    once: Sequence[str] | str = _option(
        (),
        _TEXTS,
        "Run a function once and share its result with all ranks; repeatable.",
    )
    fold: Sequence[str] | str = _option(
        (),
        _TEXTS,
        "Let ranks share arrays of at least SIZE, or the arrays of a function; repeatable.",
    )
    data: str = _option(
        "all",
        _TEXT,
        "Messages that carry data: all, none, or those of up to SIZE. For programs that do not "
        "depend on the data.",
    )

    twin: str | None = _option(
        None,
        _TEXT,
        "Before a run with --sample, --fold or --data: run the program in full on so many ranks, "
        "for at most this time, take the results that steer from there, and compare the calls.",
    )
    on_divergence: OnDivergence = _option(
        "report",
        _choice(*get_args(OnDivergence)),
        "At the first call that differs from those of --twin: go on and report it, stop, or run "
        "in full.",
    )

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults, except the files to write."""
        return {
            name: value
            for name, value in vars(self).items()
            if name not in OUTPUTS
            if value != DEFAULTS[name] or type(value) is not type(DEFAULTS[name])
        }


OUTPUTS = ("trace", "view", "explain", "report", "record_compute")  # files that a run writes
FIELDS = {one.name: one for one in fields(Options)}
DEFAULTS: dict[str, Any] = {
    name: {} if one.default is MISSING else one.default for name, one in FIELDS.items()
}


def in_python(name: str) -> str:
    """The name of an option of `pysmpi.run` in messages."""
    return f"pysmpi.run: {name}"


def check(options: Options, where: Callable[[str], str] = in_python) -> Options:
    """The checked options of a run.

    Integers become plain integers and paths become text. `where` gives the name of an option in
    messages. A UsageError has the option, the found value and the expected one.
    """
    checked = {name: check_value(name, getattr(options, name), where) for name in FIELDS}
    return replace(options, **{**checked, **_of_simgrid(checked)})


def _of_simgrid(given: Mapping[str, Any]) -> dict[str, object]:
    """The options of a run that its --cfg asks for by SimGrid's names."""
    asks = ("tracing", "tracing/smpi", "smpi/list-leaks")
    cfg = {canonical(name, f"--cfg {name}"): text for name, text in given["cfg"].items()}
    found: dict[str, object] = {}
    if not any(name in cfg for name in asks):
        return found
    settings = Settings(cfg)
    traces = settings.flag("tracing") or settings.flag("tracing/smpi")
    if traces and given["trace"] is None:
        found["trace"] = settings.text("tracing/filename")
        found["trace_format"] = given["trace_format"] or settings.value("tracing/smpi/format")
    if settings.number("smpi/list-leaks"):
        checks = given["check"]
        checks = [checks] if isinstance(checks, str) else checks
        found["check"] = list(dict.fromkeys([*checks, "leaks"]))
    return found


def check_value(name: str, value: object, where: Callable[[str], str] = in_python) -> Any:
    """The value of one option, as `check` does it."""
    kind: Kind = FIELDS[name].metadata["kind"]
    if value is None and DEFAULTS[name] is None:
        return None
    if not kind.test(value):
        raise _wrong(where(name), value, kind.expected, _close(value, kind.choices))
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if not isinstance(key, str):
                raise _wrong(where(name), key, "a string as the name of an entry")
            if isinstance(DEFAULTS[name], Mapping) and not isinstance(entry, str):
                raise _wrong(f"{where(name)}[{key!r}]", entry, "a string")
    kept = kind.keep(value)
    if name == "nprocs" and kept < 1:
        raise _wrong(where(name), kept, "at least 1 rank")
    if name == "nprocs" and kept > MOST_RANKS:
        raise _wrong(where(name), kept, f"at most {MOST_RANKS:,} ranks")
    return kept


def check_names(names: Iterable[str]) -> None:
    """Refuse names that are not options of `pysmpi.run`."""
    for name in names:
        if name not in FIELDS:
            raise UsageError(f"pysmpi.run: unknown option {name!r}{_close(name, FIELDS)}")


def check_arguments(args: object) -> tuple[object, ...]:
    """The arguments of a program; UsageError if they are not a sequence of arguments."""
    if isinstance(args, (str, bytes)) or not isinstance(args, Iterable):
        raise _wrong(in_python("args"), args, "a list of arguments")
    return tuple(args)


def _close(value: object, known: Iterable[str]) -> str:
    return did_you_mean(value, known) if isinstance(value, str) else ""


def _wrong(place: str, value: object, expected: str, hint: str = "") -> UsageError:
    found = "an empty text" if value == "" else shown(value)
    return UsageError(f"{place}: expected {expected}, got {found}{hint}")
