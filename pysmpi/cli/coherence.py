"""`pysmpi coherence`: studies of cache lines inside a node, without a program."""

from __future__ import annotations

import click

from pysmpi.cli.groups import Subcommands


class Coherence(Subcommands):
    """The subcommands, one file each."""

    homes = {
        "protocols": (
            "pysmpi.cli.coherence_protocols:protocols",
            "List the coherence protocols, or show the table of one.",
        ),
        "check": (
            "pysmpi.cli.coherence_protocols:check",
            "Explore every state of a line, and say whether a table is safe.",
        ),
        "study": (
            "pysmpi.cli.coherence_study:study_command",
            "Latency, misses of each variable and state space of send, receive, barrier.",
        ),
        "programs": (
            "pysmpi.cli.coherence_study:programs",
            "List the included primitives and their settings.",
        ),
        "latencies": (
            "pysmpi.cli.coherence_study:latencies_command",
            "List the included machines with latencies, or show the latencies of one.",
        ),
        "pingpong": (
            "pysmpi.cli.coherence_pingpong",
            "Time to pass one or several lines from one core to another.",
        ),
        "tune": (
            "pysmpi.cli.coherence_tune",
            "Collectives tuned to the cache lines of a node: trees, best and worst case.",
        ),
    }


@click.group("coherence", cls=Coherence)
def command() -> None:
    """Study the coherent caches of a node."""
