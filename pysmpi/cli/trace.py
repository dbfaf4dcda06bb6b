"""`pysmpi trace`: convert recordings, list the formats."""

from __future__ import annotations

import click

from pysmpi.cli.echo import echo


@click.group("trace", no_args_is_help=False)
def command() -> None:
    """Convert recorded runs to other formats."""


@command.command("convert")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--trace-format",
    metavar="NAME",
    help="Format of OUT, in place of that of its suffix; see pysmpi trace formats.",
)
def convert(source: str, target: str, trace_format: str | None) -> int:
    """Write the recording IN to OUT, in the format of its suffix."""  # fmt: skip
    from pysmpi.trace.conversion import convert

    convert(source, target, trace_format)
    return 0


@command.command("formats")
def formats() -> int:
    """List the formats of traces."""
    from pysmpi.trace.formats import FORMATS

    width = max(map(len, FORMATS.names()))
    for known in FORMATS:
        echo(f"{known.name.ljust(width)}  {known.line}")
    return 0
