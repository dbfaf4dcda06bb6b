"""`pysmpi study`: the figures and tables of papers, repeated."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import WholeNumber
from pysmpi.errors import UsageError
from pysmpi.python.extras import installs
from pysmpi.text import did_you_mean

if TYPE_CHECKING:
    from pysmpi.studies.framework import PaperStudy, StudyResult


@click.command("study")
@click.argument("names", metavar="[NAME...]", nargs=-1)
@click.option("--quick", is_flag=True, help="Few and small sizes.")
@click.option(
    "--output",
    "-o",
    default="studies-output",
    show_default=True,
    metavar="DIRECTORY",
    help="Directory of pictures and figures.",
)
@click.option(
    "--format",
    "picture",
    type=click.Choice(["svg", "png"]),
    default="svg",
    show_default=True,
    help="Format of pictures (with matplotlib).",
)
@click.option(
    "--workers",
    type=WholeNumber(1, 100_000),
    default=1,
    show_default=True,
    metavar="N",
    help="Processes for the runs of models and numbers of ranks.",
)
@click.option("--scheduler", metavar="ADDRESS", help="A scheduler of Dask whose workers run them.")
@click.option(
    "--page",
    metavar="FILE.md",
    help="Write the page of all studies, and those of the papers in a directory beside it.",
)
def command(
    names: tuple[str, ...],
    quick: bool,
    output: str,
    picture: str,
    workers: int,
    scheduler: str | None,
    page: str | None,
) -> None:
    """Repeat figures and tables of five papers on the performance of MPI, and compare.

    NAME is a study, a paper, or all. Without a name, lists the studies. Each prints a table, and
    writes its figures and its picture. The exit status is 0 also if a finding does not hold.
    """
    from pysmpi.studies.framework import choose, registry
    from pysmpi.studies.runs import SPREAD

    SPREAD.workers, SPREAD.scheduler = workers, scheduler
    if not names and page is None:
        lines = [(study.name, study.figure, study.finding) for study in registry().values()]
        echo(_table(("study", "figure", "finding"), lines))
        return
    try:
        studies = choose(names)
    except KeyError as error:
        name = error.args[0]
        raise UsageError(
            f"study {name}: no such study{did_you_mean(name, registry())}; pysmpi study lists them"
        ) from None
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    for number, study in enumerate(studies):
        if number:
            echo("")
        _run(study, quick, folder, picture)
    if page is not None:
        from pysmpi.studies.page import pages

        for place, text in pages(list(registry().values()), folder).items():
            path = Path(page).parent / place if place else Path(page)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def _run(study: PaperStudy, quick: bool, folder: Path, picture: str) -> None:
    """Run a study, print it, and write its files."""
    start = time.perf_counter()
    result = study.run(quick)
    record = study.record(result, quick, time.perf_counter() - start)
    _show(study, result, quick)
    path = folder / f"{study.name}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if result.panels:
        path = folder / f"{study.name}.{picture}"
        try:
            from pysmpi.studies.drawing import draw

            draw(study, result, path)
            echo(f"picture: {path}")
        except ImportError:
            echo(f"no picture: {installs('plots')}", err=True)


def _show(study: PaperStudy, result: StudyResult, quick: bool) -> None:
    """Print the table of a study and its verdict."""
    holds = {True: "yes", False: "NO", None: ""}
    rows = [(*row.cells(), holds[row.holds]) for row in result.rows]
    echo(f"{study.name}: {study.paper}, {study.figure}")
    echo(_table(("figure", "paper", "fitted", "predicted", "holds"), rows))
    verdict = "holds" if result.holds else "does not hold in full"
    if result.holds and result.variant:
        verdict += ", but not by the paper's formula"
    if quick:
        verdict += " as far as the quick sizes show"
    echo(f"finding {verdict}: {study.finding}")
    if result.variant:
        echo(f"another formula: {result.variant}")
    if result.remark:
        echo(f"remark: {result.remark}")


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table for a terminal."""
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    lines = [heads, tuple("-" * width for width in widths), *rows]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
