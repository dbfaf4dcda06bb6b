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
    if preset.measured:
        _explain_curves(preset.measured)
        return
    values = options(preset, 0.0)
    del values["network/loopback-lat"]
    width = max(map(len, values))
    for option, value in values.items():
        echo(f"{option.ljust(width)}  {value}")
    if preset.source:
        echo(f"source: {preset.source}")


def _explain_curves(name: str) -> None:
    """Print the figures of a measured preset, their sources and the machines of its checks."""
    from pysmpi.network.measured import load

    curves = load(name)
    echo(f"messages below {curves.eager:,} bytes are sent eagerly")
    times = (
        {}
        if curves.latency is None
        else dict(zip(curves.latency.sizes, curves.latency.values, strict=True))
    )
    rates = {}
    if curves.bandwidth is not None:
        rates = dict(zip(curves.bandwidth.sizes, curves.bandwidth.values, strict=True))
    if times or rates:
        echo(f"{'bytes':>9}  {'osu_latency, us':>15}  {'osu_bw, MB/s':>12}")
    for size in sorted({*times, *rates}):
        time = f"{times[size] * 1e6:.2f}" if size in times else ""
        rate = f"{rates[size] / 1e6:.2f}" if size in rates else ""
        echo(f"{size:9,}  {time:>15}  {rate:>12}".rstrip())
    for source in curves.sources:
        echo(f"source: {source}")
    echo(curves.checked())
    for check in curves.checks:
        echo(f"checked against: {check.machine} ({check.source})")


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
