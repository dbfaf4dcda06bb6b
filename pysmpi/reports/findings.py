"""Findings: the problems that checkers find in a program, with the lines of the program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from pysmpi import text
from pysmpi.diagnostics import Diagnostic
from pysmpi.python.frames import CallSite, shorten
from pysmpi.python.installed import package
from pysmpi.python.records import record


@record
class Place:
    """A line of the program that takes part in a problem: the ranks, and the call there.

    `what` is the call as the program made it, such as `Isend(dest=1, tag=7)`, or another use of
    memory. `note` explains its part in the problem, if the call alone does not. `library` is the
    place in a library that made the call for this line.
    """

    ranks: list[int]
    what: str
    site: CallSite | None
    note: str = ""
    library: CallSite | None = None

    @property
    def package(self) -> str:
        """The package, or the module of the program, whose code made the call."""
        made = self.library or self.site
        return "" if made is None else package(made.file)

    @property
    def line(self) -> str:
        """The file and the line: `heat.py:31`; empty if unknown."""
        return "" if self.site is None else f"{shorten(self.site.file)}:{self.site.line}"


@record(frozen=True)
class OtherMatch:
    """A receive from any source, and the source whose message it could take instead.

    It is the `index`-th receive (or probe) of rank `destination` in a context. `taken` and `other`
    are the sources, as ranks of the communicator.
    """

    context: int
    destination: int
    index: int
    taken: int
    other: int


@record
class Finding:
    """A problem of a program.

    `kind` is its documented diagnostic, `what` one line that describes this case, `rule` the rule
    of MPI with its section, and `cure` the remedy. `places` are the lines of the program, the one
    to correct first. A finding that is not an `error` depends on something that MPI leaves open
    and is harmless in this run. One that is `doubtful` counts only if the program has another
    result with `match`.
    """

    kind: type[Diagnostic]
    what: str
    places: list[Place]
    rule: str
    cure: str
    error: bool = True
    more: list[str] = field(default_factory=list)
    match: OtherMatch | None = None
    doubtful: bool = False

    @property
    def code(self) -> str:
        """The code of the diagnostic."""
        return self.kind.code

    def key(self) -> tuple[Any, ...]:
        """Equal for findings at the same lines, which are shown once."""
        places = tuple(
            (place.site, place.library, place.note, _verb(place.what)) for place in self.places
        )
        return self.code, places, self.rule

    def __str__(self) -> str:
        lines = [f"{self.code} {self.kind.title}: {self.what}"]
        rows = [
            (
                text.ranks(place.ranks) if place.ranks else "",
                place.what,
                _at(place.site),
                f"<- {place.note}" if place.note else "",
            )
            for place in self.places
        ]
        widths = [min(60, max((len(row[i]) for row in rows), default=0)) for i in range(3)]
        for row, place in zip(rows, self.places, strict=True):
            cells = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
            if place.library is not None:
                lines.append(f"    made by the package {place.package}: {place.library}")
        lines += [f"  {line}" for line in self.more]
        lines.append(f"  why: {self.rule}")
        lines.append(f"  do: {self.cure}   help: pysmpi explain {self.code}")
        if self.places and self.places[0].library is not None:
            left_out = f"-{self.code}:{self.places[0].package}"
            lines.append(f"  not your code? --check all,{left_out} leaves this out")
        return "\n".join(lines)

    def plain(self) -> dict[str, object]:
        """The finding as plain data, for reports."""
        return {
            "code": self.code,
            "title": self.kind.title,
            "error": self.error,
            "what": self.what,
            "places": [
                {
                    "ranks": place.ranks,
                    "what": place.what,
                    "file": None if place.site is None else os.fspath(place.site.file),
                    "line": None if place.site is None else place.site.line,
                    "note": place.note,
                    "library": None if place.library is None else str(place.library),
                }
                for place in self.places
            ],
            "rule": self.rule,
            "cure": self.cure,
        }


def _verb(what: str) -> str:
    return what.partition("(")[0]


def _at(site: CallSite | None) -> str:
    if site is None:
        return ""
    place = f"{shorten(site.file)}:{site.line}"
    return place if site.function == "<module>" else f"{place} in {site.function}"


def joined(findings: Iterable[Finding]) -> list[Finding]:
    """Findings at the same lines in several ranks as one finding of these ranks."""
    result: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        first = result.setdefault(finding.key(), finding)
        if first is not finding:
            for place, more in zip(first.places, finding.places, strict=True):
                place.ranks = sorted({*place.ranks, *more.ranks})
    return list(result.values())


def report(findings: Sequence[Finding], most: int = 20) -> str:
    """The text of findings, errors first."""
    ordered = sorted(findings, key=lambda finding: not finding.error)
    parts = [str(finding) for finding in ordered[:most]]
    if len(ordered) > most:
        parts.append(f"and {text.count(len(ordered) - most, 'more finding')}")
    return "\n".join(parts)
