"""Run studies: `python -m studies NAME...`; without a name, list them.

    python -m studies                              the list
    python -m studies smpi.alltoall                one study: table, picture, verdict
    python -m studies smpi                         all studies of a paper
    python -m studies all --page docs/papers/studies.md   all, and the pages of them

The exit status is 0 also if a finding does not hold: that is a result. It is 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from studies.framework import Result, Study, choose, registry
from studies.runs import SPREAD


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table for a terminal."""
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    lines = [heads, tuple("-" * width for width in widths), *rows]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def show(study: Study, result: Result, quick: bool) -> None:
    """Print the table of a study and its verdict."""
    holds = {True: "yes", False: "NO", None: ""}
    rows = [(*row.cells(), holds[row.holds]) for row in result.rows]
    print(f"{study.name}: {study.paper}, {study.figure}")
    print(table(("figure", "paper", "fitted", "predicted", "holds"), rows))
    verdict = "holds" if result.holds else "does not hold in full"
    if quick:
        verdict += " as far as the quick sizes show"
    print(f"finding {verdict}: {study.finding}")
    if result.remark:
        print(f"remark: {result.remark}")


def main(words: list[str] | None = None) -> int:
    """Parse the command line and run the chosen studies."""
    parser = argparse.ArgumentParser(
        prog="python -m studies", description="Repeat the figures and tables of the papers."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a study, a paper, or all")
    parser.add_argument("--quick", action="store_true", help="few and small sizes")
    parser.add_argument(
        "--output", type=Path, default=Path("studies-output"), metavar="DIR",
        help="folder for pictures and figures (studies-output)",
    )  # fmt: skip
    parser.add_argument("--format", choices=("svg", "png"), default="svg", help="of pictures (svg)")
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE.md",
        help="write the page of all studies, and those of the papers in a folder beside it",
    )
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N",
        help="processes for the runs of models and numbers of ranks, by pysmpi sweep (1: none)",
    )  # fmt: skip
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers run them"
    )
    chosen = parser.parse_args(words)
    if chosen.workers < 1:
        parser.error(f"--workers: expected at least 1, got {chosen.workers}")
    SPREAD.workers, SPREAD.scheduler = chosen.workers, chosen.scheduler
    if not chosen.names and chosen.page is None:
        rows = [(study.name, study.figure, study.finding) for study in registry().values()]
        print(table(("study", "figure", "finding"), rows))
        return 0
    try:
        studies = choose(chosen.names)
    except KeyError as error:
        parser.error(f"{error.args[0]}: no such study; python -m studies lists them")
    chosen.output.mkdir(parents=True, exist_ok=True)
    for index, study in enumerate(studies):
        if index:
            print()
        start = time.perf_counter()
        result = study.run(chosen.quick)
        record = study.record(result, chosen.quick, time.perf_counter() - start)
        show(study, result, chosen.quick)
        base = chosen.output / study.name
        base.with_name(f"{study.name}.json").write_text(json.dumps(record, indent=1) + "\n")
        if result.panels:
            picture = base.with_name(f"{study.name}.{chosen.format}")
            try:
                from studies.drawing import draw

                draw(study, result, picture)
                print(f"picture: {picture}", flush=True)
            except ImportError:
                print("no picture: pip install 'pysmpi[plots]'", file=sys.stderr)
    if chosen.page is not None:
        from studies.page import pages

        for place, text in pages(list(registry().values()), chosen.output).items():
            path = chosen.page.parent / place if place else chosen.page
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
