"""The page of all studies, from the results that runs have left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from studies.framework import Row, Study

HEAD = """# The papers' figures, repeated

`python -m studies` lists the studies, `python -m studies smpi.alltoall` runs one, and
`python -m studies all --page docs/papers/studies.md` runs all and writes this page.
`--quick` uses few sizes. A run writes the picture and the figures of each study into the folder of
`--output`.

The texts of the papers that were used have no pictures, so the values of graphs are known only
where the text states them. An empty field of the column "paper" is such a value. "Fitted" are
our figures that a parameter was chosen or measured to give; "predicted" are those that follow from
the other parameters. A finding that does not hold is marked, with the reason.

Some figures have no study: figures 1, 2, 3 and 5 of the paper on SMPI and figure 3 of Putigny et
al. show models and machines, figures 2 and 4 of Ramos and Hoefler and figure 1 of Tu et al. show
diagrams. `pysmpi models --explain loggps` and `hybrid` have these models, `pysmpi platform show`
the machines. Figures 7 and 8 of the paper on SMPI are Gantt charts of real runs, whose records are
not in its text. The text of Tu et al. ends with figure 4. `--workers 4` runs the cases of a study
on four cores, and `--scheduler ADDRESS` on the workers of a Dask scheduler
([sweeps](../reference/sweep.md)).
"""


def cell(text: str) -> str:
    """A text in a cell of a table."""
    return text.replace("|", "\\|")


def section(study: Study, record: dict[str, Any] | None) -> list[str]:
    """The lines of one study."""
    lines = ["", f"### {study.name}", "", f"{study.figure}. {study.finding}.", ""]
    if record is None:
        return [*lines, f"Not run: `python -m studies {study.name}`."]
    lines += ["| figure | paper | fitted | predicted | holds |", "| --- | --- | --- | --- | --- |"]
    for row in record["rows"]:
        holds = {True: "yes", False: "**no**", None: ""}[row["holds"]]
        lines.append(f"| {' | '.join(map(cell, (*Row(**row).cells(), holds)))} |")
    verdict = "The finding holds." if record["holds"] else "**The finding does not hold in full.**"
    remark = f" {record['remark']}" if record["remark"] else ""
    how = " with `--quick`" if record["quick"] else ""
    return [*lines, "", f"{verdict}{remark} `python -m studies {study.name}`{how}."]


def page(studies: list[Study], folder: Path) -> str:
    """The page, from the JSON files of a folder."""
    records = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    lines = [HEAD, "| study | figure | finding |", "| --- | --- | --- |"]
    for study in studies:
        record = records.get(study.name)
        holds = "not run" if record is None else "holds" if record["holds"] else "does not hold"
        lines.append(f"| [{study.name}](#{anchor(study.name)}) | {study.figure} | {holds} |")
    paper = ""
    for study in studies:
        if study.paper != paper:
            paper = study.paper
            lines += ["", f"## {paper}"]
        lines += section(study, records.get(study.name))
    return "\n".join(lines) + "\n"


def anchor(name: str) -> str:
    """The anchor of a heading, as in GitHub's pages."""
    return name.replace(".", "").lower()
