"""The options that choose a machine: the same for every command that simulates one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

_OPTIONS = (
    click.option(
        "--platform", "-platform", metavar="FILE|NAME",
        help="The machine: a YAML or XML file, or a name from pysmpi platform list "
        "(default: cluster).",
    ),
    click.option(
        "--hostfile", "-hostfile", "--machinefile", "-machinefile", "-f", metavar="FILE",
        help="Hosts of the machine to use, and the number of ranks on each.",
    ),
    click.option(
        "--map-by", "-map-by", type=click.Choice(["core", "socket", "node"]),
        help="Order in which ranks fill the machine (default: core).",
    ),
    click.option(
        "--model", metavar="NAME",
        help="Network model, instead of the machine's model (default: hybrid); see "
        "pysmpi models.",
    ),
    click.option(
        "--memory-model", metavar="NAME",
        help="Model of messages inside described nodes; see pysmpi models.",
    ),
    click.option(
        "--selector", metavar="NAME|FILE",
        help="Library whose choice of collective algorithms is used, or a selection file "
        "(default: ompi5).",
    ),
    click.option(
        "--coll", multiple=True, metavar="OP=ALGORITHM",
        help="Algorithm of one collective; repeatable. See pysmpi collectives.",
    ),
    click.option(
        "--cfg", "-cfg", multiple=True, metavar="KEY:VALUE",
        help="A SimGrid option; repeatable. pysmpi run --help-cfg lists them.",
    ),
)  # fmt: skip


def machine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
