"""The numbers of options: their types for click, with the same messages as those of a run."""

from __future__ import annotations

from typing import Any

import click

from pysmpi.job.options import MOST_RANKS
from pysmpi.text import integer, real

_ParamType: Any = click.ParamType  # generic in newer versions of click only
LONGEST = 1e9  # seconds: more than thirty years


class WholeNumber(_ParamType):  # type: ignore[misc]
    """A whole number in a range; None stands for no limit."""

    name = "whole number"

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        self.least = least
        self.most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        if not isinstance(value, str):
            return value
        found = integer(value)
        if found is None:
            raise click.BadParameter(f"expected a whole number, got {value!r}", ctx, param)
        if self.least is not None and found < self.least:
            raise click.BadParameter(f"expected at least {self.least}, got {value}", ctx, param)
        if self.most is not None and found > self.most:
            raise click.BadParameter(f"expected at most {self.most:,}, got {value}", ctx, param)
        return found


class Seconds(_ParamType):  # type: ignore[misc]
    """A wall time (s), above 0 or from 0 on."""

    name = "seconds"

    def __init__(self, zero: bool = True) -> None:
        self.zero = zero

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        found = real(value) if isinstance(value, str) else value
        if found is None or not 0.0 <= found <= LONGEST or (found == 0.0 and not self.zero):
            least = "from 0" if self.zero else "above 0"
            raise click.BadParameter(
                f"expected seconds {least} to {LONGEST:g}, got {value!r}", ctx, param
            )
        return found


RANKS = WholeNumber(1, MOST_RANKS)
