"""`pysmpi calibrate`: measurements that describe this computer as a machine."""

from __future__ import annotations

import click

from pysmpi.cli.groups import Subcommands


class Calibrate(Subcommands):
    """The subcommands, one file each."""

    homes = {
        "host": (
            "pysmpi.cli.calibrate_host",
            "Speed of this computer's cores, for runs that scale compute.",
        ),
        "memory": (
            "pysmpi.cli.calibrate_memory",
            "Throughputs and line latencies of this computer's caches and memory.",
        ),
        "network": (
            "pysmpi.cli.calibrate_network",
            "Costs of messages between two computers, under a real MPI.",
        ),
        "noise": (
            "pysmpi.cli.calibrate_noise",
            "Detours of this computer's cores, for pysmpi run --noise.",
        ),
        "stream": (
            "pysmpi.cli.calibrate_stream",
            "Memory bandwidth by cores, for compute that ranks of a node share.",
        ),
    }


@click.group("calibrate", cls=Calibrate)
def command() -> None:
    """Measure this computer, to describe it as a machine."""
