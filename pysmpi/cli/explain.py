"""`pysmpi explain CODE`: the meaning of a diagnostic, and the remedy."""

from __future__ import annotations

import sys

import click

from pysmpi import diagnostics
from pysmpi.cli.echo import echo


@click.command("explain")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain the diagnostic CODE, such as PSM101; without CODE, list them."""
    from pysmpi.checkers import CHECKERS

    CHECKERS.names()  # loads the checkers, which register their diagnostics
    if code is None:
        for kind in diagnostics.DIAGNOSTICS.values():
            echo(f"{kind.code}  {kind.title}")
        return
    page = diagnostics.explanation(diagnostics.find(code))
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(page))
    else:
        echo(page, nl=False)
