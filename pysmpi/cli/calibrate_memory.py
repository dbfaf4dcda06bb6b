"""`pysmpi calibrate memory`: the costs of reads and writes of memory on this computer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from pysmpi.cli.echo import echo
from pysmpi.errors import PysmpiError, UsageError
from pysmpi.io.output import writing_to

if TYPE_CHECKING:
    from pysmpi.calibrate.check import Comparison
    from pysmpi.calibrate.memory import Measured
    from pysmpi.calibrate.topology import Topology

ATTEMPTS = 4


@click.command("memory")
@click.option("-o", "--output", metavar="FILE.yaml", help="Write a platform file.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@click.option(
    "--name",
    metavar="NAME",
    default="here",
    show_default=True,
    help="Name of the computer in the file.",
)
@click.option(
    "--max-size", metavar="SIZE", default="8MiB", show_default=True, help="Largest buffer."
)
@click.option(
    "--mpi", is_flag=True, help="Also fit the options memory/... to the MPI that mpiexec starts."
)
@click.option(
    "--check",
    is_flag=True,
    help="Also predict ping-pongs and exchanges of that MPI, and compare (with --mpi).",
)
@click.option("--plot", metavar="FILE.png|svg|pdf", help="Draw the curves (needs matplotlib).")
@click.option("--json", "as_json", is_flag=True, help="Print the result of --check as JSON.")
def command(
    output: str | None, force: bool, name: str, max_size: str, mpi: bool, check: bool,
    plot: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Measure throughputs and line latencies of this computer's caches and memory.

    Without -o the platform file goes to standard output. The command takes some 10 s, or a minute
    or two with --check. Run nothing else at the same time. The values are lower quartiles; the file
    also has their spread.
    """
    from pysmpi.calibrate import curves
    from pysmpi.calibrate.pingpong import mpiexec
    from pysmpi.calibrate.topology import find_topology
    from pysmpi.platform.units import parse_size

    largest = int(parse_size(max_size))
    if not 4096 <= largest <= 1 << 30:
        raise UsageError(f"--max-size: expected 4KiB to 1GiB, got {max_size}")
    if output is not None and os.path.exists(output) and not force:
        raise UsageError(f"--output {output}: the file exists; --force overwrites it")
    if output is not None and not Path(output).resolve().parent.is_dir():
        raise UsageError(f"--output {output}: no such directory: {Path(output).resolve().parent}")
    if plot is not None:
        curves.ready(Path(plot))
    if mpi or check:
        mpiexec()  # an error here comes before measurements of a minute
    topology = find_topology()
    if not topology.distances:
        raise UsageError("calibrate memory: expected two cores that can exchange lines, got one")
    text, measured, comparison = _calibrate(topology, name, largest, mpi or check, check)
    if output is not None:
        with writing_to("--output", output):
            Path(output).write_text(text, encoding="utf-8")
        echo(f"wrote {output}", err=True)
    elif not check:
        echo(text, nl=False)
    if plot is not None:
        with writing_to("--plot", plot):
            curves.draw(measured, Path(plot))
        echo(f"wrote {plot}", err=True)
    if comparison is not None:
        _report(comparison, as_json)


def _calibrate(
    topology: Topology, name: str, largest: int, mpi: bool, check: bool
) -> tuple[str, Measured, Comparison | None]:
    """The platform file, its measurements, and the errors of its predictions.

    If the computer changes during the measurement, everything is measured again.
    """
    from pysmpi.calibrate.check import compare
    from pysmpi.calibrate.fragment import fragment
    from pysmpi.calibrate.library import explain
    from pysmpi.calibrate.memory import Probe
    from pysmpi.time.host_speed import measure_host_speed

    speed = measure_host_speed()
    cpus = topology.cpus[0], topology.distances[0].cpu
    for attempt in range(ATTEMPTS):
        measured = _measure(topology, largest)
        steady = Probe(topology, measured.latencies["LMM", 0].value)
        text = fragment(measured, name, speed)
        if not steady():
            continue
        if not mpi:
            return text, measured, None
        try:
            with TemporaryDirectory() as directory:
                path = Path(directory) / "machine.yaml"
                path.write_text(text, encoding="utf-8")
                echo("ping-pong of the real MPI, to fit its library", err=True)
                found = explain(path, cpus, steady)
                text = fragment(measured, name, speed, found.config)
                echo(
                    f"library: {found.config['memory/model']}, "
                    f"fitted with {found.mean_error:.1%} mean, {found.worst_error:.1%} worst error",
                    err=True,
                )
                if not check:
                    return text, measured, None
                path.write_text(text, encoding="utf-8")
                echo("ping-pongs and exchanges, real and simulated", err=True)
                return text, measured, compare(path, cpus, steady)
        except PysmpiError as error:
            if isinstance(error, UsageError) or attempt == ATTEMPTS - 1:
                raise
            echo(f"{error}; measuring again", err=True)
    raise PysmpiError("calibrate memory: the cores move too often; the measurement failed")


def _measure(topology: Topology, largest: int) -> Measured:
    from pysmpi.calibrate.memory import SIZES, measure, steps

    sizes = tuple(nbytes for nbytes in SIZES if nbytes <= largest)
    while sizes[-1] * 2 <= largest:
        sizes = (*sizes, sizes[-1] * 2)
    with click.progressbar(
        length=steps(topology, sizes), file=sys.stderr, label="memory",
        item_show_func=lambda what: what or "",
    ) as bar:  # fmt: skip
        measured = measure(topology, sizes, lambda what: bar.update(1, what))
    if measured.uncontrolled:
        echo(f"non-temporal stores and flushes are not measured: {measured.uncontrolled}", err=True)
    return measured


def _report(comparison: Comparison, as_json: bool) -> None:
    """Print the errors of predictions against the real MPI."""
    from pysmpi.calibrate.pingpong import OPERATIONS, PATTERNS

    if as_json:
        cases: list[dict[str, object]] = [
            {"pattern": case[0], "operation": case[1], "bytes": case[2],
             "real_seconds": comparison.real[case],
             "predicted_seconds": comparison.predicted[case]}
            for case in comparison.real
        ]  # fmt: skip
        mean, worst = comparison.summary()
        echo(json.dumps({"mean_error": mean, "worst_error": worst, "cases": cases}, indent=1))
        return
    columns = [(operation, pattern) for operation in OPERATIONS for pattern in PATTERNS]
    echo("seconds of the real MPI, in microseconds, and the error of the prediction")
    echo("".join(["bytes".rjust(8), *(o.rjust(17) for o, _ in columns)]))
    echo("".join(["".rjust(8), *(p.rjust(17) for _, p in columns)]))
    for nbytes in sorted({case[2] for case in comparison.real}):
        cells = []
        for operation, pattern in columns:
            case = pattern, operation, nbytes
            cells.append(f"{comparison.real[case] * 1e6:9.2f} {comparison.error(case):+7.0%}")
        echo("".join([str(nbytes).rjust(8), *cells]))
    for label, part in (("mean", 0), ("worst", 1)):
        errors = [comparison.summary(pattern, operation)[part] for operation, pattern in columns]
        echo("".join([label.rjust(8), *(f"{error:17.0%}" for error in errors)]))
    mean, worst = comparison.summary()
    echo(f"error of {len(comparison.real)} predictions: {mean:.1%} mean, {worst:.0%} worst")
