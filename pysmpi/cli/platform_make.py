"""`pysmpi platform new` and `fit`: files of machines from answers, and from OSU's figures."""

from __future__ import annotations

import re
from pathlib import Path

import click

from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import WholeNumber
from pysmpi.errors import UsageError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
MOST_NODES, MOST_CORES = 1_000_000, 4096


def _name_of(path: str) -> str:
    """The name of the machine in a file: the file's, without its suffix."""
    name = Path(path).name.rpartition(".")[0]
    if Path(path).suffix.lower() not in (".yaml", ".yml") or not _NAME.fullmatch(name):
        raise UsageError(
            f"{path}: expected a file such as mycluster.yaml, with a name of letters, digits, - "
            f"and _, got {Path(path).name!r}"
        )
    return name


def _write(path: str, text: str, force: bool) -> None:
    """Write a platform file that does not exist yet."""
    from pysmpi.io.output import OutputFile

    if Path(path).exists() and not force:
        raise UsageError(f"{path}: exists; --force overwrites it")
    with OutputFile("platform file", path) as target:
        with target.writing(), open(target.path, "w", encoding="utf-8") as stream:
            stream.write(text)
        target.keep()


@click.command("new")
@click.argument("file", metavar="FILE.yaml")
@click.option("--force", is_flag=True, help="Overwrite the file.")
def new(file: str, force: bool) -> None:
    """Ask five questions about a cluster, and write FILE.yaml.

    The questions: nodes, cores of a node, the kind of the network, and what osu_latency prints for
    1 byte and osu_bw for 4 MiB. An empty line takes the value in brackets.
    """
    from pysmpi.network.measured import load
    from pysmpi.network.presets import HYBRID
    from pysmpi.platform.units import parse_bandwidth, parse_time

    name = _name_of(file)
    if Path(file).exists() and not force:
        raise UsageError(f"{file}: exists; --force overwrites it")
    kinds = [one for one, preset in HYBRID.items() if preset.measured]
    nodes = click.prompt("How many nodes", default=64, type=click.IntRange(1, MOST_NODES))
    cores = click.prompt("Cores of a node", default=32, type=click.IntRange(1, MOST_CORES))
    echo("Networks: " + ", ".join(kinds))
    kind = click.prompt(
        "Network", default="infiniband-edr", type=click.Choice(kinds), show_choices=False
    )
    curves = load(kind)
    latency = 0.5e-6 if curves.latency is None else curves.latency.values[0]
    bandwidth = 6.35e9 if curves.bandwidth is None else curves.bandwidth.values[-1]
    if kind == "infiniband-ndr":
        bandwidth *= 2  # its curves are those of HDR
    seen = click.prompt("osu_latency of 1 byte", default=f"{latency * 1e6:.3g}us")
    rate = click.prompt("osu_bw of 4 MiB", default=f"{bandwidth / 1e9:.4g}GBps")
    for text, parse in ((seen, parse_time), (rate, parse_bandwidth)):
        if parse(text) <= 0.0:
            raise UsageError(f"expected a value above 0, got {text}")
    _write(
        file,
        f"name: {name}\npreset: {kind}\nclusters:\n  - name: {name}\n"
        f"    hosts: {name}-[0-{nodes - 1}]\n    cores: {cores}\n"
        f"    network: {{bandwidth: {rate}, latency: {seen}}}\n",
        force,
    )
    echo(f"{file}: {kind}, {curves.checked()}")


@click.command("fit")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FILE.yaml", required=True, help="Write this file.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@click.option(
    "--nodes", metavar="N", type=WholeNumber(2, MOST_NODES), default=2, show_default=True,
    help="Nodes of the machine.",
)  # fmt: skip
@click.option(
    "--cores", metavar="N", type=WholeNumber(1, MOST_CORES), default=1, show_default=True,
    help="Cores of a node.",
)  # fmt: skip
@click.option(
    "--eager",
    metavar="SIZE",
    help="Messages below are sent eagerly (default: where the one-way time has its step).",
)
def fit(
    files: tuple[str, ...], output: str, force: bool, nodes: int, cores: int, eager: str | None
) -> None:
    """Make a machine from what osu_latency and osu_bw (or osu_mbw_mr) printed.

    The two programs ran between two nodes, with one rank on each; FILE is their output, in one
    file or several, or a recording of the script that pysmpi validate script writes. The command
    prints the errors of the machine on the same figures.
    """
    from pysmpi.calibrate import osu
    from pysmpi.network.errors import written
    from pysmpi.platform.units import parse_size
    from pysmpi.validate.recording import curves

    name = _name_of(output)
    times, rates = curves(files)
    below = None if eager is None else int(parse_size(eager, bare=True))
    sources = [f"measured: {', '.join(files)}"]
    _write(output, osu.machine(name, times, rates, below, nodes, cores, sources), force)
    predicted = osu.predicted(output, sorted({*times, *rates}))
    means = []
    for title, values, index in (("one-way times", times, 0), ("bandwidths", rates, 1)):
        errors = [abs(predicted[size][index] / value - 1) for size, value in values.items()]
        echo(
            f"{title}: mean error {100 * sum(errors) / len(errors):.1f} %, worst "
            f"{100 * max(errors):.1f} %, {len(errors)} sizes"
        )
        means.append(sum(errors) / len(errors))
    known = written([means[0], means[1], means[1]])
    _write(output, osu.machine(name, times, rates, below, nodes, cores, sources, known), True)
    echo(f"{output}: written")
