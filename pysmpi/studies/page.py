"""The pages of all studies, from the results that runs have left.

One page says what was found. A page for each paper has the figures of its studies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pysmpi.studies.framework import FigureRow, PaperStudy

HEAD = """# Five papers, repeated

pysmpi implements the models of five papers on the performance of MPI. Does it find what the papers
found? Each figure and table of the papers that has numbers is a *study*: a small program that
repeats it. This page lists the studies, and says which of them find the same.

**{holding} of {all} studies find what the paper found.** {others}

## An example

```
pysmpi study smpi.alltoall
```

This study repeats figure 9 of the paper on SMPI: an Alltoall on the cluster graphene, with three
models. The paper found that LogGPS is too fast by up to a factor of 4, since it does not know that
cabinets share a link. The study finds a factor of almost 5 on 128 ranks. It prints a table, draws
the figure, and leaves both in the folder of `--output`.
"""

TAIL = """
## How to read the tables

- "Paper" is the value that the paper prints. The texts of the papers that were used have no
  pictures, so the values of graphs are known only where the text states them. An empty field is
  such a value.
- "Fitted" is a figure of ours that a parameter was chosen or measured to give.
- "Predicted" is a figure that follows from the other parameters. It is the real test.
- A finding that does not hold is marked, with the reason.

## Run them

`pysmpi study` lists the studies. `pysmpi study all --page FILE.md` runs all, and writes
this page and those of the papers. `--quick` uses few sizes. `--workers 4` runs the cases of a study
on four cores, and `--scheduler ADDRESS` on the workers of a Dask scheduler
([sweeps](../reference/sweep.md)).

## What has no study

| figures | reason |
| --- | --- |
| 1, 2, 3 and 5 of the paper on SMPI | models: `pysmpi models --explain loggps` |
| 3 of Putigny et al. | a machine: `pysmpi platform show xeon-e5-2650` |
| 7 and 8 of the paper on SMPI | Gantt charts of real runs, whose records are not in its text |
| 2 and 4 of Ramos and Hoefler, 1 of Tu et al. | diagrams |
| after 4 of Tu et al. | not in the text that was used |
"""


def cell(text: str) -> str:
    """A text in a cell of a table."""
    return text.replace("|", "\\|")


def section(study: PaperStudy, record: dict[str, Any] | None) -> list[str]:
    """The lines of one study."""
    lines = ["", f"## {study.name}", "", f"{study.figure}. {study.finding}.", ""]
    if record is None:
        return [*lines, f"Not run: `pysmpi study {study.name}`."]
    lines += ["| figure | paper | fitted | predicted | holds |", "| --- | --- | --- | --- | --- |"]
    for row in record["rows"]:
        holds = {True: "yes", False: "**no**", None: ""}[row["holds"]]
        lines.append(f"| {' | '.join(map(cell, (*FigureRow(**row).cells(), holds)))} |")
    verdict = "The finding holds." if record["holds"] else "**The finding does not hold in full.**"
    if record["variant"]:
        verdict += f" **Not by the paper's formula**: {record['variant']}"
    remark = f" {record['remark']}" if record["remark"] else ""
    how = " with `--quick`" if record["quick"] else ""
    return [*lines, "", f"{verdict}{remark} `pysmpi study {study.name}`{how}."]


def pages(studies: list[PaperStudy], folder: Path) -> dict[str, str]:
    """The pages by their paths, from the JSON files of a folder; "" is the first."""
    records = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    papers: dict[str, list[PaperStudy]] = {}
    for study in studies:
        papers.setdefault(study.paper, []).append(study)
    found = {"": summary(studies, papers, records)}
    for paper, own in papers.items():
        lines = [
            f"# The figures of {paper}",
            "",
            f"These are the figures of {len(own)} studies. [Five papers, repeated](../studies.md) "
            "says how to read and to run them.",
        ]
        for study in own:
            lines += section(study, records.get(study.name))
        found[place(own[0])] = "\n".join(lines) + "\n"
    return found


def summary(
    studies: list[PaperStudy],
    papers: Mapping[str, list[PaperStudy]],
    records: Mapping[str, dict[str, Any]],
) -> str:
    """The page that says what was found."""
    fails = [study for study in studies if study.name in records]
    fails = [study for study in fails if not records[study.name]["holds"]]
    known = sum(study.name in records for study in studies)
    others = f"The other {len(fails)} find a part of it." if fails else ""
    variants = sum(record["holds"] and bool(record["variant"]) for record in records.values())
    if variants:
        others += f" {variants} of those that hold need another formula than the paper's."
    lines = [HEAD.format(holding=known - len(fails), all=known, others=others).rstrip()]
    if fails:
        lines += ["", "## What does not hold", "", "| study | why |", "| --- | --- |"]
        for study in fails:
            remark = cell(records[study.name]["remark"] or "")
            lines.append(f"| {link(study)} | {remark} |")
    lines += ["", "## All studies"]
    for paper, own in papers.items():
        lines += ["", f"### {paper}", "", "| study | figure | finding |", "| --- | --- | --- |"]
        for study in own:
            record = records.get(study.name)
            holds = "not run" if record is None else "holds" if record["holds"] else "in part"
            if record is not None and record["holds"] and record["variant"]:
                holds = "holds by another formula"
            lines.append(f"| {link(study)} | {study.figure} | {holds} |")
    return "\n".join(lines) + "\n" + TAIL


def place(study: PaperStudy) -> str:
    """The path of the page of a study, beside the first page."""
    return f"studies/{study.name.partition('.')[0].replace('_', '-')}.md"


def link(study: PaperStudy) -> str:
    """A link to the section of a study."""
    return f"[{study.name}]({place(study)}#{anchor(study.name)})"


def anchor(name: str) -> str:
    """The anchor of a heading, as in GitHub's pages."""
    return name.replace(".", "").lower()
