"""`pysmpi models`: the models of messages that there are."""

from __future__ import annotations

import click


@click.command("models")
def command() -> None:
    """List the models that --model (between hosts) and --memory-model (inside hosts) take."""
    from pysmpi.memory.transfer.models import memory_models
    from pysmpi.network.models import models
    from pysmpi.network.presets import HYBRID

    network, memory = models(), memory_models()
    width = max(map(len, (*network, *memory)))
    for name in sorted(network):
        click.echo(f"{name.ljust(width)}  {network[name].line}")
    click.echo("\nPresets of the factors of hybrid (network/preset), where the machine gives none:")
    for name, preset in HYBRID.items():
        click.echo(f"{name.ljust(width)}  {preset.line}")
    click.echo("\nInside a node that the platform describes:")
    for name in sorted(memory):
        click.echo(f"{name.ljust(width)}  {memory[name].line}")
