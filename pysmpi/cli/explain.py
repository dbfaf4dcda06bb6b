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
        echo(styled(page))
    else:
        echo(page, nl=False)


def styled(page: str) -> str:
    """A page of Markdown for a terminal: headings are bold, blocks of code are indented."""
    lines, block = [], False
    for line in page.splitlines():
        if line.startswith("```"):
            block = not block
        elif block:
            lines.append(f"    {line}".rstrip())
        elif line.startswith("#"):
            lines.append(click.style(line.lstrip("# "), bold=True))
        else:
            lines.append(line)
    return "\n".join(lines)
