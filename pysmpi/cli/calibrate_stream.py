"""`pysmpi calibrate stream`: the memory bandwidth of this computer, for compute that shares it."""

from __future__ import annotations

import json
import os

import click

from pysmpi.cli.echo import echo
from pysmpi.errors import UsageError


@click.command("stream")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON: bytes/s by cores.")
def command(as_json: bool) -> None:
    """Measure the memory bandwidth of 1, 2, 4, ... and all cores, as STREAM's triad does.

    The last lines are options for the file of a machine with such nodes. With them `pysmpi run
    --memory-bound SHARE` predicts how ranks of a node slow each other down.
    """
    from pysmpi.calibrate.stream import curve

    if not hasattr(os, "sched_getaffinity"):
        raise UsageError("calibrate stream: needs Linux, to keep processes on cores")
    measured = curve(sorted(os.sched_getaffinity(0)))
    if as_json:
        echo(json.dumps(measured, indent=2))
        return
    for count, value in measured.items():
        echo(f"{count:5} {'core ' if count == 1 else 'cores'}  {value / 1e9:8.1f} GB/s")
    echo("config:")
    echo(f"  memory/core-bandwidth: {measured[1] / 1e9:.3g}GBps")
    echo(f"  memory/bandwidth: {max(measured.values()) / 1e9:.3g}GBps")
