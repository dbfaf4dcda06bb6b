"""`pysmpi calibrate noise`: the detours of this computer's cores, as a file for `--noise`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from pysmpi import text
from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import Seconds
from pysmpi.errors import UsageError


@click.command("noise")
@click.option(
    "--seconds",
    type=Seconds(zero=False),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Time of the measurement.",
)
@click.option("-o", "--output", metavar="FILE.yaml", help="Write a file for pysmpi run --noise.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON: seconds, by core.")
def command(seconds: float, output: str | None, force: bool, as_json: bool) -> None:
    """Measure how often, and for how long, this computer's cores leave their work.

    Every core does a fixed quantum of work, some 5 us, again and again. The time above the usual
    one is a detour: of the operating system, or of other programs. The detours of an idle computer
    are those of its system.
    """
    from pysmpi.calibrate.noise import kinds, measure
    from pysmpi.faults.noise_files import write_detours
    from pysmpi.io.output import writing_to

    if not hasattr(os, "sched_getaffinity"):
        raise UsageError("calibrate noise: needs Linux, to keep processes on cores")
    if output is not None and Path(output).exists() and not force:
        raise UsageError(f"--output {output}: the file exists; --force overwrites it")
    cpus = sorted(os.sched_getaffinity(0))
    cores = measure(cpus, seconds)
    detours = kinds(cores)
    if as_json:
        figures = {
            str(cpu): {
                "quanta": core.quanta, "usual_seconds": core.usual, "detours": core.detours,
                "share": core.share,
            }
            for cpu, core in zip(cpus, cores)
        }  # fmt: skip
        echo(json.dumps(figures, indent=2))
    else:
        for cpu, core in zip(cpus, cores):
            longest = max(core.detours, default=0.0)
            echo(
                f"core {cpu:4}  {100 * core.share:7.3f} % of the time in "
                f"{text.count(len(core.detours), 'detour')}, the longest "
                f"{text.seconds(longest)}; a quantum takes {text.seconds(core.usual)}"
            )
        for one in detours:
            echo(f"{one.rate:10.4g} a second of work, {text.seconds(one.seconds)} on average")
    if output is not None:
        if not detours:
            raise UsageError("calibrate noise: no detours in this time; expected more --seconds")
        description = f"detours of {text.count(len(cores), 'core')} in {seconds:g} s"
        with writing_to("--output", output):
            Path(output).write_text(write_detours(detours, description), encoding="utf-8")
        echo(f"wrote {output}", err=True)
