"""`pysmpi demo`: small programs with their results, to begin with."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from pysmpi.cli.columns import print_glossary
from pysmpi.cli.echo import echo
from pysmpi.errors import UsageError
from pysmpi.python.installed import environment
from pysmpi.python.records import record
from pysmpi.text import did_you_mean
from pysmpi.version import HOME

PROGRAMS = Path(HOME, "cli", "demos")


@record
class DemoStep:
    """A command of a demo, and the exit statuses that it may have."""

    say: str
    command: tuple[str, ...]
    statuses: tuple[int, ...] = (0,)


@record
class Demo:
    """A program, the commands that run it, and further ones to try."""

    title: str
    files: tuple[str, ...]
    steps: tuple[DemoStep, ...]
    further: tuple[str, ...]


GRAPHENE = ("--platform", "graphene")
DEMOS = {
    "deadlock": Demo(
        "a program that waits for ever, and the report of the reason",
        ("deadlock.py",),
        (
            DemoStep("With small messages the program ends:",
                 ("run", "-n", "4", *GRAPHENE, "deadlock.py", "10")),
            DemoStep("With large ones all ranks wait in Send:",
                 ("run", "-n", "4", *GRAPHENE, "deadlock.py"), (3,)),
        ),
        ("pysmpi explain PSM101",
         "pysmpi run -n 4 --cfg smpi/buffering:zero deadlock.py 10    # no message is buffered"),
    ),
    "race": Demo(
        "a program that is right in one order of events only, and the search for another order",
        ("race.py",),
        (
            DemoStep("A run in which all compute takes no time:",
                 ("run", "-n", "4", "--compute", "none", "race.py")),
            DemoStep("The search tries the other orders that MPI allows:",
                 ("explore", "-n", "4", "race.py"), (1, 3)),
        ),
        ("the command after \"repeat:\", with --pdb: it stops in the failing rank",),
    ),
    "contention": Demo(
        "messages that share a cable, on a machine described in a file",
        ("contention.py", "two-switches.yaml"),
        (
            DemoStep("Eight nodes on either side of one cable:",
                 ("run", "-n", "16", "--platform", "two-switches.yaml", "--map-by", "node",
                  "--compute", "none", "contention.py")),
        ),
        ("twice the bandwidth of \"between\" in two-switches.yaml",
         "pysmpi platform show two-switches.yaml"),
    ),
    "allreduce": Demo(
        "one collective operation with the algorithms of two MPI libraries",
        ("allreduce.py",),
        (
            DemoStep("With the choices of Open MPI 5:",
                 ("run", "-n", "16", *GRAPHENE, "allreduce.py")),
            DemoStep("With the choices of MPICH:",
                 ("run", "-n", "16", *GRAPHENE, "--selector", "mpich", "allreduce.py")),
        ),
        ("pysmpi collectives    # all operations, algorithms and libraries",
         "pysmpi run -n 16 --platform graphene --coll allreduce=rab_rdb allreduce.py",
         "pysmpi collectives draw allreduce rab_rdb -n 8 -o allreduce.svg"),
    ),
    "halo": Demo(
        "the time of a simulation of heat on 16 nodes, and how to shorten it",
        ("halo.py",),
        (
            DemoStep("The program, with an explanation of its time:",
                 ("run", "-n", "16", *GRAPHENE, "--explain", "halo.py")),
        ),
        ("pysmpi run -n 16 --platform graphene --view run.html halo.py    # a page of the run",
         "pysmpi run -n 256 halo.py"),
    ),
}  # fmt: skip


@click.command("demo")
@click.argument("name", required=False)
@click.option(
    "--save", is_flag=True, help="Write the files of the demo to this directory, and run nothing."
)
def command(name: str | None, save: bool) -> int:
    """Show a small program and its result; without NAME, list the demos."""
    if name is None:
        print_glossary((name, demo.title) for name, demo in DEMOS.items())
        echo("\npysmpi demo deadlock shows the first one.")
        return 0
    if name not in DEMOS:
        hint = did_you_mean(name, DEMOS)
        raise UsageError(f"no demo {name!r}, expected one of {', '.join(DEMOS)}{hint}")
    if save:
        _save(DEMOS[name])
        return 0
    return _show(name, DEMOS[name])


def _save(demo: Demo) -> None:
    for file in demo.files:
        try:
            with open(file, "x", encoding="utf-8") as copy:
                copy.write((PROGRAMS / file).read_text(encoding="utf-8"))
        except FileExistsError:
            raise UsageError(f"{file} is there already, and stays as it is") from None
        echo(f"wrote {file}")


def _show(name: str, demo: Demo) -> int:
    # Its own copies: frames of files of pysmpi are left out of tracebacks and reports.
    with tempfile.TemporaryDirectory(prefix="pysmpi-demo-") as folder:
        for file in demo.files:
            shutil.copyfile(PROGRAMS / file, Path(folder, file))
            click.secho(f"{file}:", bold=True)
            for number, line in enumerate((PROGRAMS / file).read_text("utf-8").splitlines(), 1):
                echo(f"{number:4}  {line}".rstrip())
            echo()
        for step in demo.steps:
            echo(step.say)
            click.secho("$ pysmpi " + " ".join(step.command), bold=True)
            sys.stdout.flush()
            done = subprocess.run(
                [sys.executable, "-m", "pysmpi", *step.command], cwd=folder,
                env=environment(), stderr=subprocess.STDOUT,
            )  # fmt: skip
            echo()
            if done.returncode not in step.statuses:
                return done.returncode
    echo("To try next:")
    echo(f"  pysmpi demo {name} --save    # writes {' and '.join(demo.files)} here")
    for line in demo.further:
        echo(f"  {line}")
    return 0
