"""`pysmpi coherence`: what happens to cache lines inside a node, without a program."""

from __future__ import annotations

import click

from pysmpi.cli.groups import Subcommands


class Coherence(Subcommands):
    """The subcommands, one file each."""

    homes = {
        "tune": (
            "pysmpi.cli.coherence_tune",
            "Collectives tuned to the cache lines of a node: trees, best and worst case.",
        ),
    }


@click.group("coherence", cls=Coherence)
def command() -> None:
    """Study how the caches of a node work together."""
