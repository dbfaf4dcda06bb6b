"""`pysmpi validate`: a script that measures a real machine, and its results beside predictions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pysmpi.cli.arguments import pairs
from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import WholeNumber
from pysmpi.cli.run_options import machine_options, run_option
from pysmpi.errors import UsageError

CLASSES = ("S", "W", "A")


class ValidateGroup(click.Group):
    """A group whose first command is the default."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["compare", *args]
        return super().parse_args(ctx, args)


@click.group("validate", cls=ValidateGroup, no_args_is_help=True)
def command() -> None:
    """Measure a real machine with a script, and show predictions beside the results.

    The default command is `compare`: pysmpi validate RECORDING --platform FILE.
    """


@command.command("script")
@click.option(
    "-o", "--output", metavar="FILE.py", default="validate.py", show_default=True,
    help="Write the script here, and the jobs beside it.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite the files.")
@click.option(
    "--nodes", type=WholeNumber(1, 100_000), default=1, show_default=True, metavar="N",
    help="Nodes of the largest job.",
)  # fmt: skip
@click.option(
    "--cores", type=WholeNumber(1, 4096), default=2, show_default=True, metavar="P",
    help="Cores of a node: the ranks of a full node.",
)  # fmt: skip
@click.option(
    "--class", "name", type=click.Choice(CLASSES), default="W", show_default=True,
    help="Problems of the programs: S takes seconds, A minutes on a core.",
)  # fmt: skip
@click.option(
    "--largest", metavar="SIZE", default="4MiB", show_default=True, help="Largest message."
)
@click.option(
    "--repeats", type=WholeNumber(1, 1000), default=5, show_default=True, metavar="K",
    help="Repeats of each measurement.",
)  # fmt: skip
@click.option(
    "--elements", type=WholeNumber(1000, 1 << 32), default=4_000_000, show_default=True,
    metavar="N", help="Numbers in each of the three arrays of a rank, for the memory bandwidth.",
)  # fmt: skip
@click.option(
    "--python", metavar="COMMAND", default="python3", show_default=True,
    help="Python of the machine, with mpi4py and numpy.",
)  # fmt: skip
def script_command(
    output: str, force: bool, nodes: int, cores: int, name: str, largest: str, repeats: int,
    elements: int, python: str,
) -> None:  # fmt: skip
    """Write a script that measures a machine, and jobs for Slurm, PBS and mpiexec.

    The machine needs Python, mpi4py and numpy, and not pysmpi. The script measures messages as
    the OSU benchmarks do, STREAM's triad, and five programs.
    """
    from pysmpi.io.output import OutputFile
    from pysmpi.platform.units import parse_size
    from pysmpi.validate import script

    path = Path(output)
    if path.suffix != ".py":
        raise UsageError(f"--output {output}: expected a file called .py")
    if re.search(r"[^\w./-]", path.name):
        raise UsageError(f"--output {output}: expected a name of letters, digits, ., - and _")
    most = int(parse_size(largest, bare=True))
    if not 4 <= most <= 1 << 30:
        raise UsageError(f"--largest: expected 4B to 1GiB, got {largest}")
    chosen = script.layouts(nodes, cores)
    texts = {path: script.script(script.settings(name, most, repeats, elements))}
    for kind in script.JOBS:
        job = path.with_suffix(f".{kind}.sh")
        texts[job] = script.job(kind, path.name, python, f"{path.stem}.jsonl", chosen)
    for target in texts:
        if target.exists() and not force:
            raise UsageError(f"{target}: exists; --force overwrites it")
    for target, content in texts.items():
        with OutputFile("--output", str(target)) as file:
            with file.writing(), open(file.path, "w", encoding="utf-8") as stream:
                stream.write(content)
            file.keep()
        echo(f"pysmpi: wrote {target}", err=True)
    shown = ", ".join(f"{number} x {count}" for number, count in chosen)
    echo(f"pysmpi: the jobs measure nodes x ranks: {shown}", err=True)


@command.command("compare")
@click.argument("recordings", metavar="RECORDING...", nargs=-1, required=True)
@machine_options
@run_option("compute")
@run_option("host_speed")
@click.option("-o", "--output", metavar="FILE.html", help="Write a page.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option(
    "--clock", type=click.Choice(["wall", "processor"]), default="wall", show_default=True,
    help="Time of programs: wall, or processor on a busy machine.",
)  # fmt: skip
@click.option(
    "--of", "statistic", type=click.Choice(["median", "minimum"]), default="median",
    show_default=True, help="Which of the measured repeats counts.",
)  # fmt: skip
@click.option(
    "--repeats", type=WholeNumber(1, 100), default=3, show_default=True, metavar="K",
    help="Predictions of each program; the shortest counts.",
)  # fmt: skip
@click.option(
    "--layout", metavar="NODESxRANKS", default="2x1", show_default=True,
    help="Nodes and ranks on each, for output of OSU's programs.",
)  # fmt: skip
def compare_command(
    recordings: tuple[str, ...], output: str | None, as_json: bool, clock: str, statistic: str,
    repeats: int, layout: str, coll: tuple[str, ...], cfg: tuple[str, ...], **rest: Any,
) -> None:  # fmt: skip
    """Simulate the measured programs on a machine, and compare.

    RECORDING is a file that the script wrote, or the output of osu_latency, osu_bw, osu_bibw,
    osu_mbw_mr, osu_allreduce or osu_alltoall. Prints errors by kind and by program, where they come
    from, and what to calibrate.
    """
    from pysmpi.io.output import OutputFile
    from pysmpi.platform.config import parse
    from pysmpi.validate import comparison, page, recording
    from pysmpi.validate.prediction import machine, predict

    found = re.fullmatch(r"([1-9]\d{0,5})x([1-9]\d{0,3})", layout)
    if found is None or int(found[1]) * int(found[2]) < 2:
        raise UsageError(f"--layout {layout}: expected nodes and ranks on each, such as 4x32")
    if output is not None and Path(output).suffix != ".html":
        raise UsageError(f"--output {output}: expected a file called .html")
    options: Mapping[str, Any] = {
        "coll": pairs(coll, "--coll", "bcast=binomial_tree"), "cfg": parse(cfg), **rest,
    }  # fmt: skip
    read = recording.read(recordings, (int(found[1]), int(found[2])))
    name = machine(options["platform"], options["cfg"]).name
    predicted = []
    for job in read.jobs:
        echo(f"pysmpi: simulates {job.layout}", err=True)
        predicted.append(predict(job, options, repeats))
    compared = comparison.Validation(read.jobs, predicted, clock, statistic)
    if output is not None:
        with OutputFile("--output", output) as file:
            with file.writing(), open(file.path, "w", encoding="utf-8") as stream:
                stream.write(page.page(compared, name, recordings, read.remarks))
            file.keep()
    if as_json:
        echo(json.dumps(comparison.report(compared, recordings, read.remarks), indent=1))
    else:
        echo(comparison.text(compared, recordings, read.remarks), nl=False)
