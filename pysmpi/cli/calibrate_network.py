"""`pysmpi calibrate network`: costs of messages between two computers, with a real MPI."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import click

from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import Seconds, WholeNumber
from pysmpi.errors import UsageError
from pysmpi.io.output import writing_to

if TYPE_CHECKING:
    from pysmpi.calibrate.network import NetworkMeasurement
    from pysmpi.calibrate.network_fit import Fit

NOISY = 0.1  # relative deviation of repeats above which a fit is not reliable


@click.command("network")
@click.option(
    "-o",
    "--output",
    metavar="FILE.yaml",
    required=True,
    help="Write the platform file here, and the raw data beside it (FILE.csv).",
)
@click.option("--force", is_flag=True, help="Overwrite the files.")
@click.option(
    "--name",
    metavar="NAME",
    default="measured",
    show_default=True,
    help="Name of the machine in the file.",
)
@click.option(
    "--max-size", metavar="SIZE", default="4MiB", show_default=True, help="Largest message."
)
@click.option(
    "--sizes",
    metavar="N",
    type=WholeNumber(10, 2000),
    default=80,
    show_default=True,
    help="Number of random sizes.",
)
@click.option(
    "--repeats",
    metavar="N",
    type=WholeNumber(1, 1000),
    default=9,
    show_default=True,
    help="Number of measurements of each size.",
)
@click.option(
    "--seed",
    metavar="K",
    type=WholeNumber(),
    default=1,
    show_default=True,
    help="Seed of the sizes and of their order.",
)
@click.option(
    "--time-limit",
    metavar="SECONDS",
    type=Seconds(),
    default=300.0,
    show_default=True,
    help="After this time, measure nothing again.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the fit and its error as JSON.")
def command(
    output: str, force: bool, name: str, max_size: str, sizes: int, repeats: int, seed: int,
    time_limit: float, as_json: bool,
) -> None:  # fmt: skip
    """Measure messages between two ranks of a real MPI, and fit the model hybrid to them.

    Run it with the MPI's own launcher, with two ranks on two computers:

    \b
        mpiexec -n 2 --hosts a,b pysmpi calibrate network -o cluster.yaml

    The command measures sends, non-blocking sends, receives, ping-pongs, exchanges and windows of
    many messages, of random sizes in random order. A fifth of the sizes of single
    messages, and windows of other sizes, are not used for the fit; the error of the fit is the
    error of predicting these. Two ranks of one computer are kept on a core each. With matplotlib,
    FILE.png shows the fit and the data.
    """
    from pysmpi.platform.units import parse_size

    largest = int(parse_size(max_size))
    if not 1024 <= largest <= 1 << 30:
        raise UsageError(f"--max-size: expected 1KiB to 1GiB, got {max_size}")
    target = Path(output)
    if target.suffix.lower() not in (".yaml", ".yml"):
        raise UsageError(f"--output {output}: expected a file called .yaml or .yml")
    comm = _two_ranks()
    _prepare(comm, target, force)
    from pysmpi.calibrate.network import measure

    with apart(comm):
        found = measure(comm, largest, sizes, repeats, seed, time_limit)
    hosts = comm.allgather(_host())
    if comm.rank == 0:
        _report(target, name, found, hosts, seed, as_json)
    # Most MPI libraries poll while they wait, which would slow down a report on the same core.
    reported = comm.Ibarrier()
    while not reported.Test():
        sleep(0.01)


def _two_ranks() -> Any:
    """The first two ranks' communicator; UsageError outside of a launcher of two."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UsageError(f"calibrate network: mpi4py finds no MPI library: {error}") from None
    comm = MPI.COMM_WORLD
    if comm.size != 2:
        raise UsageError(
            f"calibrate network: expected 2 ranks of a real MPI, got {comm.size}: mpiexec -n 2 "
            "pysmpi calibrate network ..."
        )
    return comm


def _prepare(comm: Any, target: Path, force: bool) -> None:
    """Raise UsageError, on both ranks, if the files cannot be written."""
    problem = None
    if comm.rank == 0:
        if not target.resolve().parent.is_dir():
            problem = f"--output {target}: no such directory: {target.resolve().parent}"
        elif target.exists() and not force:
            problem = f"--output {target}: the file exists; --force overwrites it"
    problem = comm.bcast(problem, 0)
    if problem is not None:
        if comm.rank == 0:
            raise UsageError(problem)
        raise SystemExit(UsageError.exit_status)


@contextmanager
def apart(comm: Any) -> Iterator[None]:
    """Keep two ranks of one computer on a core each, unless their launcher has bound them."""
    may = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()
    one, other = comm.allgather((platform.node(), may))
    if one != other or len(may) < 2:
        yield
        return
    from pysmpi.calibrate.topology import find_topology

    try:
        cores = find_topology(allowed=set(may)).cpus
    except UsageError:
        cores = tuple(sorted(may))
    # The first core often serves interrupts.
    cores = cores[-2:] if len(cores) > 1 else tuple(sorted(may))[-2:]
    os.sched_setaffinity(0, {cores[comm.rank]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, may)


def _host() -> tuple[str, int]:
    return platform.node(), os.getpid()


def _report(
    target: Path, name: str, found: NetworkMeasurement, hosts: Sequence[tuple[str, int]], seed: int,
    as_json: bool,
) -> None:  # fmt: skip
    from mpi4py import MPI

    from pysmpi.calibrate.network import (
        check,
        draw,
        explain,
        platform_text,
        with_windows,
        write_raw,
    )
    from pysmpi.calibrate.network_fit import spread

    result, held = explain(found, seed)
    library = MPI.Get_library_version().splitlines()[0].strip("\0 ")
    (one, _), (other, _) = hosts
    where = f"{one} and {other}" if one != other else f"two processes of {one}"
    raw = target.with_suffix(".csv")
    with writing_to("--output", raw):
        write_raw(raw, found, held)
    count = sum(map(len, found.samples.values()))
    sources = [
        f"pysmpi calibrate network between {where}: {count:,} times, in {raw.name}",
        library,
    ]

    def write() -> None:
        text = platform_text(result, name, f"The costs of messages between {where}.", sources)
        with writing_to("--output", target):
            target.write_text(text, encoding="utf-8")

    write()
    result = with_windows(result, found, held, target) or result
    write()
    result.errors = check(target, found, held)
    sources.append(
        f"error of {len(held)} sizes that were held out, mean and worst: "
        + "; ".join(f"{k} {m:.1%}, {w:.0%}" for k, (m, w) in result.errors.items())
    )
    write()
    if found.cut_short:
        echo(
            "pysmpi: the time limit ended the measurements before all repeats; --time-limit "
            "SECONDS sets it",
            err=True,
        )
    noise = spread(found.samples)
    if noise > NOISY:
        echo(
            f"pysmpi: repeats of one measurement differ by some {noise:.0%}: other "
            "programs run on the computers, or both ranks share a core; measure again",
            err=True,
        )
    if _matplotlib():
        picture = target.with_suffix(".png")
        with writing_to("--output", picture):
            draw(picture, found, result, target)
    _print(target, result, len(held), as_json)


def _matplotlib() -> bool:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def _print(target: Path, result: Fit, held: int, as_json: bool) -> None:
    if as_json:
        facts = {
            "bandwidth": result.bandwidth,
            "latency": result.latency,
            "breakpoints": [piece.first for piece in result.pieces],
            "synchronous_from": result.detached,
            "eager_below": result.eager,
            "limiter": result.limiter,
            "held_out": held,
            "errors": {k: {"mean": m, "worst": w} for k, (m, w) in result.errors.items()},
            "options": result.options(),
        }
        echo(json.dumps(facts, indent=1))
        return
    echo(
        f"{result.bandwidth / 1e9:.4g} GB/s, {result.latency * 1e6:.4g} us; pieces from "
        f"{', '.join(str(piece.first) for piece in result.pieces)} bytes; sends wait from "
        f"{result.detached} bytes on"
        + (f"; limiter {result.limiter / 1e9:.4g} GB/s" if result.limiter is not None else "")
    )
    for name, (mean, worst) in result.errors.items():
        echo(f"{name}: {held} sizes held out, error {mean:.1%} mean, {worst:.0%} worst")
    echo(f"wrote {target} and {target.with_suffix('.csv').name}", err=True)
