"""A command line of click's, invoked in each rank with its own arguments."""

from __future__ import annotations

import click
from click.testing import CliRunner
from mpi4py import MPI

comm = MPI.COMM_WORLD


@click.group()
@click.option("--scale", default=1.0, show_default=True, help="Factor.")
@click.version_option("1.2.3", prog_name="calc")
@click.pass_context
def calc(context: click.Context, scale: float) -> None:
    """Calculates."""
    context.obj = scale


@calc.command()
@click.argument("numbers", nargs=-1, type=float, required=True)
@click.option("--by", type=click.Choice(["sum", "max"]), default="sum")
@click.pass_obj
def reduce(scale: float, numbers: tuple[float, ...], by: str) -> None:
    """Reduce NUMBERS over all ranks."""
    mine = scale * (sum(numbers) if by == "sum" else max(numbers))
    total = comm.allreduce(mine, MPI.SUM if by == "sum" else MPI.MAX)
    click.echo(f"rank {comm.rank}: {mine} of {total}")


@calc.command()
@click.option("--name", prompt=True)
@click.option("--count", type=click.IntRange(1, 5), prompt=True)
@click.confirmation_option(prompt="Sure?")
def ask(name: str, count: int) -> None:
    click.secho(name * count, fg="red")


runner = CliRunner()
for arguments, answers in (
    (["--scale", str(comm.rank + 1), "reduce", "1", "2.5"], None),
    (["reduce", "--by", "max", *map(str, range(comm.rank + 1))], None),
    (["reduce", "--by", "mean", "1"], None),
    (["reduce"], None),
    (["ask"], f"r{comm.rank}\n9\n{comm.rank + 1}\ny\n"),
    (["ask"], "x\n1\nn\n"),
    (["--help"], None),
    (["--version"], None),
):
    result = runner.invoke(calc, arguments, input=answers)
    print(comm.rank, result.exit_code, result.output.splitlines())
with runner.isolated_filesystem():
    click.open_file(f"f{comm.rank}", "w").write("x")
    print(comm.rank, click.Path(exists=True).convert(f"f{comm.rank}", None, None))
calc(["reduce", str(comm.rank)], standalone_mode=False)
calc(["reduce", "x"]) if comm.rank == comm.size else calc(["reduce", "7"])
