"""The options of `pysmpi run`, made from the one declaration of options of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pysmpi.cli.numbers import WholeNumber
from pysmpi.job.options import DEFAULTS, FIELDS, Kind, check_value
from pysmpi.text import integer

_Command = TypeVar("_Command", bound=Callable[..., Any])

# The spellings of each option of a run, and the name of its value in --help; None: its choices. The
# spellings with one hyphen are those of mpiexec and smpirun.
SPELLINGS: dict[str, tuple[str, str | None]] = {
    "nprocs": ("-n -np --np", "N"),
    "platform": ("--platform -platform", "FILE|NAME"),
    "hostfile": ("--hostfile -hostfile --machinefile -machinefile -f", "FILE"),
    "map_by": ("--map-by -map-by", None),
    "rank_by": ("--rank-by -rank-by", None),
    "model": ("--model", "NAME"),
    "memory_model": ("--memory-model", "NAME"),
    "memory_bound": ("--memory-bound", "SHARE"),
    "selector": ("--selector", "NAME|FILE"),
    "coll": ("--coll", "OP=ALGORITHM"),
    "cfg": ("--cfg -cfg", "KEY:VALUE"),
    "compute": ("--compute", "native|steady|none|SECONDS|FILE"),
    "record_compute": ("--record-compute", "FILE"),
    "host_speed": ("--host-speed", "auto|FLOPS"),
    "reduction_order": ("--reduction-order", None),
    "seed": ("--seed", "K"),
    "schedule": ("--schedule", "time|STRATEGY[:ARGUMENT]"),
    "replay_schedule": ("--replay-schedule", "SCHEDULE"),
    "trace": ("--trace", "FILE"),
    "trace_format": ("--trace-format", "NAME"),
    "view": ("--view", "FILE.html"),
    "explain": ("--explain", None),
    "report": ("--report", "FILE.json"),
    "on_deadlock": ("--on-deadlock", None),
    "check": ("--check", "all|NAME|-NAME,..."),
    "fault": ("--fault", "rank=N@TIME|host=NAME@TIME[:slow=F[:for=TIME]]|link=...|jitter:..."),
    "noise": ("--noise", "NAME|FILE.yaml"),
    "on_failure": ("--on-failure", None),
    "instrument": ("--instrument", "NAME[:ARGUMENT]"),
    "private": ("--private", "NAME"),
    "shared": ("--shared", "NAME"),
    "sample": ("--sample", "MODULE:FUNCTION[:OPTION=VALUE,...]|auto|none"),
    "once": ("--once", "MODULE:FUNCTION|files"),
    "fold": ("--fold", "SIZE|MODULE:FUNCTION|none"),
    "data": ("--data", "all|none|SIZE"),
    "twin": ("--twin", "all|RANKS[:TIME]"),
    "on_divergence": ("--on-divergence", None),
}


def spellings(name: str) -> list[str]:
    """The spellings of an option of a run, the usual one first."""
    return SPELLINGS[name][0].split()


def on_command_line(name: str) -> str:
    """The name of an option of `pysmpi run` in messages."""
    return spellings(name)[0]


# Options that only the command line has, by the option that they follow.
_MORE: dict[str, list[Callable[[Any], Any]]] = {
    "cfg": [
        click.option("--help-cfg", is_flag=True, help="List the options that --cfg takes."),
    ],
    "seed": [
        click.option(
            "--seeds", type=WholeNumber(2), metavar="N",
            help="Run with N seeds from that of --seed on, and print p10, p50 and p90 of the time.",
        ),
    ],
    "on_deadlock": [
        click.option(
            "--pdb", "debug", is_flag=True,
            help="Stop in the debugger where a rank fails, or at a deadlock.",
        ),
        click.option(
            "--break", "breaks", metavar="rank=R,call=NAME,count=N", multiple=True,
            help="Stop in the debugger before an MPI call; repeatable.",
        ),
    ],
    "once": [
        click.option(
            "--check-shadow", is_flag=True,
            help="Run without and with the shadow options, and compare times and MPI calls.",
        ),
        click.option(
            "--check-tolerance", metavar="PERCENT", default="5%", show_default=True,
            help="Largest difference of times that --check-shadow allows.",
        ),
    ],
    "data": [
        click.option("--quiet", "-q", is_flag=True, help="No summary, progress or notes."),
        click.option(
            "--explain-speed", is_flag=True,
            help="Print the parts of the wall time of the run, and advice.",
        ),
    ],
}  # fmt: skip


_MACHINE = (
    "platform", "hostfile", "map_by", "rank_by", "model", "memory_model",
    "memory_bound", "selector", "coll", "cfg",
)  # fmt: skip

# The sections of --help, with the names of their options.
SECTIONS = {
    "The job": ("nprocs", "seed", "seeds", "private", "shared"),
    "The machine": ("platform", "hostfile", "map_by", "rank_by"),
    "Models and algorithms": (
        "model", "memory_model", "memory_bound", "selector", "coll", "reduction_order", "cfg",
        "help_cfg",
    ),
    "Time of compute": ("compute", "record_compute", "host_speed"),
    "Results": (
        "explain", "view", "trace", "trace_format", "report", "instrument", "explain_speed",
        "quiet",
    ),
    "Errors of the program": (
        "check", "on_deadlock", "schedule", "replay_schedule", "debug", "breaks", "fault",
        "noise", "on_failure",
    ),
    "Large jobs": (
        "sample", "once", "fold", "data", "twin", "on_divergence", "check_shadow",
        "check_tolerance",
    ),
}  # fmt: skip

_ParamType: Any = click.ParamType  # generic in newer versions of click only


class _Value(_ParamType):  # type: ignore[misc]
    """A value for `Options`; errors have the text of `pysmpi.run`."""

    def __init__(self, option: str, kind: Kind) -> None:
        self.option = option
        self.name = option
        self.kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(one) for one in known_values(self.option) if one.startswith(incomplete)
        ]
        if not found and "FILE" in (param.metavar or ""):
            found = [CompletionItem(incomplete, type="file")]
        return found

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        if isinstance(DEFAULTS[self.option], int):
            found = integer(str(value))  # a text is refused, as it would be in Python
            value = value if found is None else found
        return check_value(self.option, value, on_command_line)


def known_values(option: str) -> list[str]:
    """The values of an option that pysmpi knows by name, for completion."""
    if option == "platform":
        from pysmpi.platform.loader import shipped

        return shipped()
    if option == "model":
        from pysmpi.network.models import MODELS

        return MODELS.names()
    if option == "memory_model":
        from pysmpi.memory.transfer.models import MEMORY_MODELS

        return MEMORY_MODELS.names()
    if option == "selector":
        from pysmpi.collectives.registry import SELECTORS

        return SELECTORS.names()
    kind: Kind = FIELDS[option].metadata["kind"]
    words = {"compute": ["native", "steady", "none"], "host_speed": ["auto"]}
    return [*kind.choices, *words.get(option, ()), *(["all", "none"] if option == "data" else ())]


def with_options(command: _Command) -> _Command:
    """Give a command the options of a run."""
    parts: list[Callable[[Any], Any]] = []
    for name in FIELDS:
        parts += [run_option(name), *_MORE.get(name, ())]
    for part in reversed(parts):
        command = part(command)
    return command


class Sectioned(click.Command):
    """A command whose --help shows its options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = {
            param.name: record
            for param in self.get_params(ctx)
            if (record := param.get_help_record(ctx)) is not None
        }
        titles = {name: title for title, names in SECTIONS.items() for name in names}
        for title in [*SECTIONS, "More"]:
            rows = [row for name, row in records.items() if titles.get(str(name), "More") == title]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=28)


def machine_options(command: _Command) -> _Command:
    """Give a command the options that choose a machine, and the models on it."""
    for name in reversed(_MACHINE):
        command = run_option(name)(command)
    return command


def run_option(name: str) -> Callable[[Any], Any]:
    """An option of a run, for a command."""
    about = FIELDS[name].metadata
    default = DEFAULTS[name]
    choices = "|".join(about["kind"].choices)
    settings: dict[str, Any] = {"help": about["help"], "metavar": SPELLINGS[name][1]}
    if choices:
        settings["metavar"] = f"[{choices}]"
    if default is False:
        settings["is_flag"] = True
        settings["default"] = False
    elif isinstance(default, (dict, tuple)):
        settings["multiple"] = True
    else:
        settings["type"] = _Value(name, about["kind"])
        settings["default"] = default
        settings["show_default"] = default is not None
    return click.option(*spellings(name), name, **settings)
