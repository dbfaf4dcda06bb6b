"""The names in the options of memory models."""

from __future__ import annotations

from collections.abc import Callable

from pysmpi.errors import UsageError
from pysmpi.memory.coherence import protocol
from pysmpi.memory.primitives.library import program
from pysmpi.platform.config import Settings

LINE_STATES = {"E": "exclusive", "I": "invalid"}


def line_state(text: str) -> str:
    """The state of a line by its letter. Raises UsageError for other letters."""
    if text not in LINE_STATES:
        raise UsageError(f"expected E or I, got {text!r}")
    return LINE_STATES[text]


_CHECKS: dict[str, Callable[[str], object]] = {
    "memory/protocol": protocol,
    "memory/primitive": program,
    "memory/line-state": line_state,
}


def check_names(settings: Settings) -> None:
    """Raise UsageError for a wrong name in an option, also if no model of the run reads it."""
    for option, check in _CHECKS.items():
        text = settings.said.get(option)
        if text:
            try:
                check(text)
            except UsageError as error:
                reason = str(error).removeprefix("protocol: ").removeprefix("program: ")
                raise UsageError(f"{option}: {reason}") from None
