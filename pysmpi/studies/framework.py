"""Studies and their outcomes; the registry of all studies."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

PREDICTED, FITTED = "predicted", "fitted"


@dataclass(frozen=True)
class FigureRow:
    """A figure of the paper beside that of pysmpi.

    `paper` is empty if the paper does not print the figure. `kind` says whether a parameter was
    chosen or measured to give it (`FITTED`), or it follows from the others (`PREDICTED`). `other`
    is the figure of the other kind where there are both. `holds` judges `ours`; it is None if
    nothing can be judged.
    """

    what: str
    paper: str
    ours: str
    kind: str = PREDICTED
    holds: bool | None = None
    other: str = ""

    def cells(self) -> tuple[str, str, str, str]:
        """The cells: the name, the figure of the paper, ours fitted, and ours predicted."""
        both = (self.ours, self.other) if self.kind == FITTED else (self.other, self.ours)
        return self.what, self.paper, *both


@dataclass(frozen=True)
class PictureCurve:
    """A line of a picture; `style` is one of matplotlib's format strings."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = "o-"


@dataclass(frozen=True)
class Panel:
    """One pair of axes of a picture. `log` names the logarithmic axes: "", "x", "y", "xy".

    `ticks` are the names of the places 0, 1, 2... on the axis of x.
    """

    title: str
    x: str
    y: str
    curves: Sequence[PictureCurve]
    log: str = ""
    ticks: Sequence[str] = ()


@dataclass(frozen=True)
class StudyResult:
    """The outcome of a study. `remark` explains deviations and assumptions.

    `variant` says by which formula the rows hold, if it is not the paper's.
    """

    rows: Sequence[FigureRow]
    panels: Sequence[Panel] = ()
    remark: str = ""
    variant: str = ""

    @property
    def holds(self) -> bool:
        """Whether all rows that can be judged hold."""
        return all(row.holds is not False for row in self.rows)


@dataclass(frozen=True)
class PaperStudy:
    """A figure or table of a paper, its subject, and the function that repeats it."""

    name: str
    paper: str
    figure: str
    finding: str
    run: Callable[[bool], StudyResult] = field(repr=False)

    def record(self, result: StudyResult, quick: bool, seconds: float) -> dict[str, Any]:
        """The result as JSON has it."""
        return {
            "name": self.name,
            "paper": self.paper,
            "figure": self.figure,
            "finding": self.finding,
            "quick": quick,
            "seconds": round(seconds, 1),
            "holds": result.holds,
            "remark": result.remark,
            "variant": result.variant,
            "rows": [asdict(row) for row in result.rows],
        }


@dataclass(frozen=True)
class Declaration:
    """The object that `study` leaves in a module."""

    figure: str
    finding: str
    run: Callable[[bool], StudyResult]


def study(figure: str, finding: str) -> Callable[[Callable[[bool], StudyResult]], Declaration]:
    """Declare the study of a module: `run(quick)` gives its StudyResult; `quick`: of few sizes."""
    return lambda run: Declaration(figure, finding, run)


@cache
def registry() -> dict[str, PaperStudy]:
    """All studies by name, in the order of their papers and files."""
    package = importlib.import_module("pysmpi.studies")
    found: dict[str, PaperStudy] = {}
    for folder in pkgutil.iter_modules(package.__path__):
        if folder.ispkg:
            paper = importlib.import_module(f"pysmpi.studies.{folder.name}")
            for file in pkgutil.iter_modules(paper.__path__):
                module = importlib.import_module(f"pysmpi.studies.{folder.name}.{file.name}")
                for declared in declared_in(module):
                    name = f"{folder.name}.{file.name}"
                    found[name] = PaperStudy(
                        name, paper.PAPER, declared.figure, declared.finding, declared.run
                    )
    return found


def declared_in(module: ModuleType) -> list[Declaration]:
    """The study of a module; none, if it is a helper of others."""
    found = [value for value in vars(module).values() if isinstance(value, Declaration)]
    if len(found) > 1:
        raise ValueError(f"{module.__name__}: expected one study, got {len(found)}")
    return found


def choose(words: Sequence[str]) -> list[PaperStudy]:
    """The studies whose name is, or begins with, one of the words; KeyError names a wrong word."""
    studies = registry()
    chosen: dict[str, PaperStudy] = {}
    for word in words:
        names = [name for name in studies if name == word or name.startswith(f"{word}.")]
        if not names and word != "all":
            raise KeyError(word)
        chosen.update((name, studies[name]) for name in names or studies)
    return list(chosen.values())
