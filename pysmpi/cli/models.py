"""`pysmpi models`: the models of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pysmpi.cli.columns import print_glossary
from pysmpi.cli.echo import echo

if TYPE_CHECKING:
    from pysmpi.network.models import Model
    from pysmpi.network.presets import Preset


@click.command("models")
@click.option(
    "--explain",
    metavar="NAME",
    help="Formula, parameters, source and valid range of a model, or values of a preset.",
)
def command(explain: str | None) -> None:
    """List the models of --model (between hosts) and --memory-model (inside hosts)."""
    from pysmpi.memory.transfer.models import memory_models
    from pysmpi.network.models import find, models
    from pysmpi.network.presets import HYBRID

    if explain is not None:
        if explain in HYBRID:
            _explain_preset(explain, HYBRID[explain])
        else:
            _explain(find(explain, "--explain"))
        return
    network, memory = models(), memory_models()
    print_glossary((name, network[name].line) for name in sorted(network))
    echo("\nPresets of the factors of hybrid (network/preset), if the machine gives none:")
    print_glossary((name, preset.line) for name, preset in HYBRID.items())
    echo("\nInside a node that the platform describes:")
    print_glossary((name, memory[name].line) for name in sorted(memory))


def _explain_preset(name: str, preset: Preset) -> None:
    """Print the values of a preset of hybrid, and their source."""
    from pysmpi.network.presets import options

    echo(f"{name}: {preset.line}\n")
    values = options(preset, 0.0)
    del values["network/loopback-lat"]
    width = max(map(len, values))
    for option, value in values.items():
        echo(f"{option.ljust(width)}  {value}")
    if preset.source:
        echo(f"source: {preset.source}")


def _explain(model: Model) -> None:
    """Print the explanation of a model."""
    from textwrap import fill

    def say(title: str, text: str) -> None:
        if text:
            echo(fill(text, 88, initial_indent=f"{title}: ", subsequent_indent="  ",
                            break_long_words=False, break_on_hyphens=False))  # fmt: skip

    echo(f"{model.name}: {model.line}\n")
    told = model.explanation
    if told is None:
        echo("its author gives no explanation")
        return
    say("formula", told.formula)
    width = max((len(symbol) for symbol, _ in told.parameters), default=0)
    if told.parameters:
        echo("parameters:")
    for symbol, meaning in told.parameters:
        echo(fill(meaning, 88, initial_indent=f"  {symbol.ljust(width)}  ",
                        subsequent_indent=" " * (width + 4), break_long_words=False,
                        break_on_hyphens=False))  # fmt: skip
    say("source", told.source)
    say("valid", told.valid)
