"""A command line of typer's: types from annotations, callbacks, exit codes."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer
from mpi4py import MPI
from typer.testing import CliRunner

comm = MPI.COMM_WORLD
app = typer.Typer(add_completion=False)


class Kind(enum.StrEnum):
    mean = "mean"
    total = "total"


@app.command()
def reduce(
    values: Annotated[list[float], typer.Argument(help="Numbers.")],
    kind: Annotated[Kind, typer.Option(case_sensitive=False)] = Kind.total,
    out: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
) -> None:
    """Reduce numbers over ranks."""
    total = comm.allreduce(sum(values))
    result = total / comm.allreduce(len(values)) if kind is Kind.mean else total
    typer.echo(f"{comm.rank}: {result:.6f}")
    if out is not None:
        out.write_text(str(result))


@app.command()
def fail(code: int = 3) -> None:
    """Fail."""
    raise typer.Exit(code + comm.rank)


runner = CliRunner()
for arguments in (
    ["reduce", "1", str(comm.rank)],
    ["reduce", "--kind", "MEAN", *map(str, range(comm.rank + 2)), "--out", f"o{comm.rank}.txt"],
    ["fail"],
    ["fail", "--code", "x"],
    ["nothing"],
):
    result = runner.invoke(app, arguments)
    print(comm.rank, result.exit_code, result.stdout.split())
print(comm.rank, Path(f"o{comm.rank}.txt").read_text())
print(comm.rank, "Reduce numbers over ranks." in runner.invoke(app, ["--help"]).stdout)
