"""`pysmpi platform`: check, show, convert and list descriptions of machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from pysmpi.cli.columns import print_glossary, width
from pysmpi.cli.echo import echo
from pysmpi.cli.main import USAGE, complain
from pysmpi.cli.platform_make import fit, new
from pysmpi.errors import UsageError

if TYPE_CHECKING:
    from pysmpi.platform.model import Platform

GRAPHS = ("graphml", "gexf", "json")
FORMS = ("yaml", "xml", *GRAPHS)


@click.group("platform", no_args_is_help=False)
def command() -> None:
    """Check, show or make a machine: a pysmpi YAML, SimGrid XML or graph file, or a name."""


command.add_command(new)
command.add_command(fit)


@command.command("check")
@click.argument("file")
def check(file: str) -> int:
    """Read FILE, and check its options, and that its hosts reach each other."""
    from pysmpi.cli.platform_options import wrong_options
    from pysmpi.platform.check import check as check_platform

    report = check_platform(file)
    if report.ok:
        report.problems += wrong_options(file)
    if report.ok:
        echo(str(report))
        if report.platform is not None:
            _note_unlikely(report.platform)
        return 0
    for problem in report.problems:
        complain(problem)
    return USAGE


def _note_unlikely(platform: Platform) -> None:
    """Print a note if a machine has other figures than the network of its measured preset."""
    from pysmpi.network.kinds.fluid import network_of
    from pysmpi.network.measured import load as load_curves
    from pysmpi.network.presets import HYBRID

    preset = HYBRID.get(platform.preset)
    if preset is None or not preset.measured or len(platform.hosts) < 2:
        return
    unlikely = load_curves(preset.measured).far_from(*network_of(platform))
    if unlikely:
        echo(f"note: {platform.source}: preset {platform.preset}: {unlikely}", err=True)


@command.command("show")
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON: s, bytes/s, flop/s.")
def show(file: str, as_json: bool) -> None:
    """Show the contents of FILE: hosts, zones, a route, options."""
    from pysmpi.platform import load
    from pysmpi.platform.check import describe
    from pysmpi.platform.check import show as show_platform

    platform = load(file)
    if as_json:
        echo(json.dumps(describe(platform), indent=2))
        return
    echo(show_platform(platform, width()))
    from pysmpi.network.presets import HYBRID

    preset = HYBRID.get(platform.preset)
    if preset is not None and preset.measured:
        from pysmpi.network.measured import load as load_curves

        echo(f"  {load_curves(preset.measured).checked()}")


@command.command("convert")
@click.argument("file")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write to this file, in the format of its suffix (default: print).",
)
@click.option(
    "--to",
    "form",
    type=click.Choice(FORMS),
    help="Format, if the suffix does not tell it: pysmpi's YAML, SimGrid's XML, a graph.",
)
def convert(file: str, output: str | None, form: str | None) -> None:
    """Write FILE in another format: the same hosts, links, routes, options.

    SimGrid's XML becomes pysmpi YAML, and pysmpi YAML, a graph or the name of a machine SimGrid's
    XML. Formats of graphs are GraphML, GEXF and node-link JSON. Parts that a format cannot describe
    are left out; for SimGrid's, they are reported.
    """
    from pysmpi.platform import load
    from pysmpi.platform.loader import find, read

    suffix = "" if output is None else output.lower().rpartition(".")[2]
    suffix = "yaml" if suffix == "yml" else suffix
    if output is not None and suffix not in FORMS:
        raise UsageError(
            f"--output {output}: expected a file called .yml, .{', .'.join(FORMS[:-1])} or "
            f".{FORMS[-1]}"
        )
    if form is not None and output is not None and form != suffix:
        raise UsageError(f"--to {form}: found --output {output}, which is {suffix}; give one")
    platform = load(file)
    form = form or suffix or ("yaml" if find(file).suffix.lower() == ".xml" else "xml")
    if form in GRAPHS:
        from pysmpi.platform import to_graph
        from pysmpi.platform.graph_files import text_of

        _write(text_of(to_graph(platform), form), output)
        return
    if form == "yaml":
        from pysmpi.platform.dump import dump

        _write(dump(read(file)), output)
        return
    from pysmpi.network import presets
    from pysmpi.network.kinds.fluid import network_of
    from pysmpi.platform.construct import LOOPBACK_LATENCY
    from pysmpi.platform.xml_dump import dump_xml, leaves_out

    definition = read(file)
    preset = presets.find(definition.preset)
    values = presets.options(preset, LOOPBACK_LATENCY)
    if preset.measured:
        rate = float(definition.config.get("network/message-rate", 0.0))
        values = presets.options(preset, LOOPBACK_LATENCY, *network_of(platform), rate)
    _write(dump_xml(definition, values), output)
    for what in leaves_out(definition):
        echo(f"pysmpi: left out, since SimGrid has no form for it: {what}", err=True)


@command.command("draw")
@click.argument("file")
@click.option("-o", "--output", metavar="FILE.svg", help="Write to this file (default: print).")
def draw(file: str, output: str | None) -> None:
    """Draw FILE as SVG: its hosts, the points where links join, its links by class."""
    from pysmpi.platform import load
    from pysmpi.platform.drawing import draw as picture_of

    if output is not None and not output.lower().endswith(".svg"):
        raise UsageError(f"--output {output}: expected a file called .svg")
    _write(picture_of(load(file)), output)


def _write(text: str, output: str | None) -> None:
    """Write a text to a file, which is whole or not there, or to standard output."""
    from pysmpi.io.output import OutputFile

    if output is None:
        echo(text, nl=False)
        return
    with OutputFile("--output", output) as target:
        with target.writing(), open(target.path, "w", encoding="utf-8") as stream:
            stream.write(text)
        target.keep()


@command.command("list")
def shipped_machines() -> None:
    """List the machines that come with pysmpi: its own, systems of the TOP500, and presets."""
    from pysmpi.network.measured import load as load_curves
    from pysmpi.network.presets import HYBRID
    from pysmpi.platform import DEFAULT, load, shipped
    from pysmpi.platform.check import summary
    from pysmpi.platform.loader import read, systems

    for name in shipped():
        mark = " (default)" if name == DEFAULT else ""
        echo(summary(load(name)) + mark)
    echo("\nSystems of the TOP500 by their public figures; only their presets were checked:")
    print_glossary(
        (name, f"{definition.description.partition('.')[0]}; {definition.preset}")
        for name, definition in zip(systems(), map(read, systems()), strict=True)
    )
    echo("\nPresets of networks, for machines of your own (`pysmpi platform new`):")
    print_glossary(
        (name, f"{preset.line}; {load_curves(name).checked()}")
        for name, preset in HYBRID.items()
        if preset.measured
    )
