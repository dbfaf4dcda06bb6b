"""The options of `pysmpi run`, made from the one declaration of options of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pysmpi.runtime.options import DEFAULTS, FIELDS, Kind, check_value, on_command_line

_Command = TypeVar("_Command", bound=Callable[..., Any])

# Options that only the command line has, by the option that they follow.
_MORE: dict[str, list[Callable[[Any], Any]]] = {
    "cfg": [
        click.option("--help-cfg", is_flag=True, help="List the options that --cfg takes."),
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
    ],
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

        choices = self.kind.choices
        return [CompletionItem(one) for one in choices if one.startswith(incomplete)]

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        if isinstance(DEFAULTS[self.option], int):
            try:
                value = int(value)
            except ValueError:
                pass  # the text is refused, as it would be in Python
        return check_value(self.option, value, on_command_line)


def with_options(command: _Command) -> _Command:
    """Give a command the options of a run."""
    parts: list[Callable[[Any], Any]] = []
    for name in FIELDS:
        parts += [_option(name), *_MORE.get(name, ())]
    for part in reversed(parts):
        command = part(command)
    return command


def _option(name: str) -> Callable[[Any], Any]:
    about = FIELDS[name].metadata
    default = DEFAULTS[name]
    choices = "|".join(about["kind"].choices)
    settings: dict[str, Any] = {"help": about["help"], "metavar": about["metavar"]}
    if choices:
        settings["metavar"] = f"[{choices}]"
    if isinstance(default, (dict, tuple)):
        settings["multiple"] = True
    else:
        settings["type"] = _Value(name, about["kind"])
        settings["default"] = default
        settings["show_default"] = default is not None
    return click.option(*about["spellings"], name, **settings)
