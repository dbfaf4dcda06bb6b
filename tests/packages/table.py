"""The table of results, on the terminal and as pages of the documentation."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence

from .entries import Entry
from .running import Result

HEAD = """# Published packages that run under pysmpi

Does your program run? The best evidence is that programs of other people do. This page is the
result of running published packages that use mpi4py, without changes, under a real MPI library and
under pysmpi.

## The result

{summary}

{fields}
[The table of all packages](packages-results.md) has versions and times.

## How they were compared

Each package is installed from PyPI. Its programs or its own tests run under a real MPICH
(`mpiexec -n 4`) and under `pysmpi run -n 4`, with the same arguments and without any option of
pysmpi's. (Some need another number of ranks: `tests/packages/lists/` has all commands.) A package
is *equal* if exit statuses, test outcomes and all printed text are the same, number by number.

The times are those of the whole command. MPICH's four ranks run in four processes, pysmpi's in
one. So on two idle cores, pysmpi takes 1.5 times as long as MPICH if the ratio of processor times
is 0.75.

`python -m tests.packages` runs them, and writes this page.

## Limits

A package that runs on four ranks with its own examples may use other parts of MPI elsewhere.
Packages whose compiled code calls an MPI library run if that is for MPICH or Open MPI
([which were compared](compiled-packages.md)).
pysmpi [refuses others](../explanation/ranks.md#refused-programs) with a message.
"""

RESULTS = """# The table of all packages

Results of [published packages](packages.md) under MPICH and under pysmpi. Ratios are pysmpi's time
divided by MPICH's: wall time, and processor time of all processes. Wall times are left out where
the two were not measured one after the other, or other programs used the machine.

"""


def line(entry: Entry, result: Result) -> str:
    """One result on the terminal."""
    mpich, pysmpi = result.seconds
    verdict = "equal" if result.equal else "invalid" if result.invalid else "UNEQUAL"
    if verdict == "UNEQUAL" and entry.unequal:
        verdict = "unequal"
    return (f"{entry.package:24} {entry.version:12} {verdict:8} "
            f"{mpich:6.1f} {pysmpi:6.1f} {_ratio(result.seconds) or '-':>5} "
            f"{_ratio(result.processor) or '-':>9}  {result.mpich} | {result.pysmpi}")  # fmt: skip


def _ratio(times: tuple[float, float]) -> str:
    return f"{times[1] / times[0]:.2f}" if times[0] and times[1] else ""


def failure(entry: Entry, result: Result) -> str | None:
    """The reason why a result makes the whole fail, or None."""
    if result.invalid:
        return f"{entry.package}: {result.invalid}"
    if result.equal and entry.unequal:
        return f"{entry.package}: equal now; take `unequal` out of its entry"
    if entry.says and not re.search(entry.says, result.message or ""):
        return f"{entry.package}: pysmpi says {result.message!r}, expected {entry.says!r}"
    if not result.equal and not entry.unequal:
        said = f" [{result.message}]" if result.message else ""
        return f"{entry.package}: {result.difference}{said}"
    return None


def rows(text: str) -> dict[str, Result]:
    """The results that the pages hold: the inverse of `page` and `results_page`."""
    said: dict[str, tuple[str, str]] = {}
    found: dict[str, Result] = {}
    for one in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", one)[1:-1]]
        if len(cells) == 3:
            said[cells[0]] = cells[1], cells[2].replace("\\|", "|")
        if len(cells) != 10 or cells[5] not in ("yes", "no"):
            continue
        _, package, version, mpich, pysmpi, equal, wall, ratio, processor, other = cells
        found[package] = Result(
            package, version, equal == "yes", mpich, pysmpi, _pair(wall),
            reused=not wall, processor=_pair(processor),
            ratios=(float(ratio or 0), float(other or 0)),
        )  # fmt: skip
    for package, (why, message) in said.items():
        if package in found:
            found[package].difference, found[package].message = why, message
    return found


def _pair(cell: str) -> tuple[float, float]:
    one, _, other = cell.partition(",")
    return (float(one), float(other)) if other else (0.0, 0.0)


def merged(
    entries: Sequence[Entry], before: Mapping[str, Result], now: Mapping[str, Result]
) -> dict[str, Result]:
    """The results of both, one of each package.

    An earlier one stays if there is no later one, or if the later one has no times that can be
    compared, and says the same nevertheless: of other programs or tests, the times are others.
    """
    kept: dict[str, Result] = {}
    for entry in entries:
        old, new = before.get(entry.package), now.get(entry.package)
        old = old if old is not None and old.version == entry.version else None
        if new is None or (
            old is not None and old.comparable and not new.comparable
            and (old.equal, old.mpich) == (new.equal, new.mpich)
        ):  # fmt: skip
            new = old
        if new is not None:
            kept[entry.package] = new
    return kept


def summary(pairs: Sequence[tuple[Entry, Result]]) -> str:
    """The number of equal ones, and the medians of the ratios of times."""
    equal = [result for _, result in pairs if result.equal]
    wall = [result.ratios[0] or result.seconds[1] / result.seconds[0] for result in equal
            if result.comparable]  # fmt: skip
    processor = [result.ratios[1] or result.processor[1] / result.processor[0] for result in equal
                 if all(result.processor)]  # fmt: skip
    part = 100 * len(equal) / max(1, len(pairs))
    text = f"{len(equal)} of {len(pairs)} packages are equal ({part:.0f} %)"
    medians = [f"{name} time under pysmpi is {statistics.median(ratios):.2f} × MPICH's "
               f"(median of {len(ratios)})"
               for name, ratios in {"wall": wall, "processor": processor}.items()
               if ratios]  # fmt: skip
    return "; ".join([text, *medians]) + "."


def page(entries: Sequence[Entry], results: Mapping[str, Result]) -> str:
    """The page that says what was found."""
    pairs = _known(entries, results)
    names = list(dict.fromkeys(entry.field for entry, _ in pairs))
    fields = f"They are of {len(names)} fields, such as {', '.join(names[:4])}."
    found = "\n".join(f"- {part}" for part in summary(pairs).removesuffix(".").split("; "))
    parts = [HEAD.format(summary=found, fields=fields)]
    left = len(entries) - len(pairs)
    if left:
        parts.append(f"\nAnother {left} packages of the list have not been run yet.\n")
    unequal = [(entry, result) for entry, result in pairs if not result.equal]
    if unequal:
        parts.append("\n## Unequal\n\n| package | why | what pysmpi says |\n| --- | --- | --- |\n")
        for entry, result in unequal:
            why = entry.unequal or result.difference or result.invalid or ""
            said = result.message or ""
            parts.append(f"| {entry.package} | {_cell(why)} | {_cell(said)} |\n")
    remarks = [entry for entry, _ in pairs if entry.notes]
    if remarks:
        parts.append("\n## Remarks\n\n")
        parts += [f"- {entry.package}: {entry.notes}\n" for entry in remarks]
    return "".join(parts)


def results_page(entries: Sequence[Entry], results: Mapping[str, Result]) -> str:
    """The page with the result of each package."""
    parts = [
        RESULTS,
        "| field | package | version | MPICH | pysmpi | equal "
        "| wall, s | ratio | processor, s | ratio |\n"
        "| --- | --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: |\n",
    ]
    for entry, result in sorted(_known(entries, results), key=lambda pair: pair[0].field.lower()):
        known = result.seconds if result.comparable else (0.0, 0.0)
        times = f"{_times(known, result.ratios[0])} | "
        times += _times(result.processor, result.ratios[1])
        parts.append(
            f"| {entry.field} | {entry.package} | {entry.version} | {result.mpich} "
            f"| {result.pysmpi} | {'yes' if result.equal else 'no'} | {times} |\n"
        )
    return "".join(parts)


def _known(entries: Sequence[Entry], results: Mapping[str, Result]) -> list[tuple[Entry, Result]]:
    return [(entry, results[entry.package]) for entry in entries if entry.package in results]


def _times(times: tuple[float, float], ratio: float) -> str:
    """Two cells: both times, and their ratio; empty where they are unknown."""
    if not all(times):
        return " | "
    return f"{times[0]:.1f}, {times[1]:.1f} | {f'{ratio:.2f}' if ratio else _ratio(times)}"


def _cell(text: str) -> str:
    # Paths of the machine that ran it are not printed.
    text = re.sub(r"/\S*/(tests/packages|site-packages)/", "", text)
    return " ".join(text.split()).replace("|", "\\|")
