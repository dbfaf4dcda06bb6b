"""`pysmpi models`: the network models there are."""

from __future__ import annotations

import click


@click.command("models")
def command() -> None:
    """List the network models that --model takes."""
    from pysmpi.network.models import models

    known = models()
    width = max(map(len, known))
    for name in sorted(known):
        click.echo(f"{name.ljust(width)}  {known[name].line}")
